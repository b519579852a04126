// Draws the plots of a report and answers its switches. All state is in the page; nothing is fetched.
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const darkSystem = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 600px)");
  const touch = matchMedia("(pointer: coarse)");
  root.classList.remove("no-js");

  // ---- words and numbers

  // plotly reads a little HTML in its texts: a name must stay a name
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text) => plain(text.length > 48 ? text.slice(0, 47) + "…" : text);

  function number(value) {
    const size = Math.abs(value);
    if (size < 1e-9) return "0"; // a rounding error
    if (size >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
    return size > 0 && size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
  }

  const interval = (mean, low, high) =>
    low === high ? number(mean) : `${number(mean)} [${number(low)}, ${number(high)}]`;

  // ---- colours

  const isDark = () => {
    const theme = root.dataset.theme || "auto";
    return theme === "dark" || (theme === "auto" && darkSystem.matches);
  };
  const colourOf = (style) => (isDark() ? style.dark : style.light);
  const faint = (hex, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;

  function inks(element) {
    const style = getComputedStyle(element);
    const soft = getComputedStyle(document.querySelector(".kicker")).color;
    return { ink: style.color, rule: style.borderTopColor, ground: style.backgroundColor, soft };
  }

  // ---- what every plot shares

  function axis(title, colours, more) {
    return {
      title: { text: title, standoff: 8, font: { size: 13 } },
      gridcolor: colours.rule, linecolor: colours.soft, zeroline: false, automargin: true,
      tickfont: { size: 12 }, separatethousands: true, exponentformat: "none", ...more,
    };
  }

  function layout(colours, xaxis, yaxis, more) {
    return {
      font: { family: getComputedStyle(document.body).fontFamily, color: colours.soft, size: 13 },
      paper_bgcolor: colours.ground, plot_bgcolor: colours.ground, showlegend: false, xaxis, yaxis,
      margin: { l: 56, r: 14, t: 36, b: 44 }, dragmode: touch.matches ? false : "zoom", hovermode: "closest",
      hoverlabel: { bgcolor: colours.ground, bordercolor: colours.rule, font: { color: colours.ink, size: 12 }, align: "left", namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.soft, activecolor: colours.ink }, ...more,
    };
  }

  const CONFIG = {
    responsive: true, displaylogo: false, scrollZoom: false,
    // named one by one: plotly's own choice has a button that sends the plot to its maker's site
    toImageButtonOptions: { format: "svg" }, modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]], plotlyServerURL: "",
  };

  // the range of a logarithmic axis: rounding errors of a policy without regret must not stretch it
  function logRange(values) {
    const top = Math.max(...values, 0);
    const seen = values.filter((v) => v > top * 1e-5);
    if (!seen.length) return undefined;
    const [low, high] = [Math.log10(Math.min(...seen)), Math.log10(top)];
    const slack = 0.05 * Math.max(high - low, 0.2);
    return [low - slack, high + slack];
  }

  // 1, 2, 5, 10 where there is space for them, else the powers of ten
  function logTicks([low, high]) {
    const steps = high - low < 0.7 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high - low < 2.3 ? [1, 2, 5] : [1];
    const tickvals = [];
    for (let power = Math.floor(low); power <= high; power++)
      for (const step of steps) tickvals.push(step * 10 ** power);
    return { tickmode: "array", tickvals, ticktext: tickvals.map(number) };
  }

  function scaled(log, values, more) {
    if (!log) return { type: "linear", rangemode: "tozero", ...more };
    const range = logRange(values);
    return { type: "log", ...(range ? { range, ...logTicks([range[0] - 0.2, range[1] + 0.2]) } : {}), ...more };
  }

  // ---- the plots: each is a function of a panel and its state

  function curves(panel, state, colours, kind) {
    const steps = kind !== "profile"; // a profile is drawn over values, not over episodes
    const shown = panel[kind].filter((c) => state.shown.has(c.agent));
    const bands = panel.bands && state.bands ? shown : [];
    const together = shown.length <= 7 && !narrow.matches; // one box for all, as long as it leaves the curves in sight
    const traces = bands.map((c) => ({
      x: [...c.x, ...[...c.x].reverse()], y: [...c.high, ...[...c.low].reverse()], type: "scatter", mode: "lines",
      fill: "toself", line: { width: 0 }, fillcolor: faint(colourOf(data.styles[c.agent]), 0.16), hoverinfo: "skip", meta: "band",
    }));
    for (const c of shown) {
      const style = data.styles[c.agent];
      traces.push({
        x: c.x, y: c.mean, type: "scatter", mode: "lines", name: short(style.name), meta: "curve",
        line: { color: colourOf(style), width: c.width, dash: style.dash },
        customdata: c.mean.map((m, i) => interval(m, c.low[i], c.high[i])),
        hovertemplate: together
          ? `%{customdata}<extra>${short(style.name)}</extra>`
          : `${short(style.name)}<br>${steps ? "episode %{x:,d}" : "%{x:.3g}"}: %{customdata}<extra></extra>`,
      });
    }
    const ys = shown.flatMap((c) => c.mean);
    const logX = steps && state.scale === "loglog";
    const x = axis(steps ? "episode" : panel.end, colours, scaled(logX, shown.flatMap((c) => c.x), { hoverformat: steps ? ",d" : ".3g" }));
    Object.assign(x, { rangemode: "normal", unifiedhovertitle: { text: steps ? "episode %{x:,d}" : "%{x:.3g}" } });
    const log = steps && state.scale !== "linear" && (kind === "curves" || Math.min(...ys) > 0); // returns may be negative
    const y = axis(panel.y[kind], colours, scaled(log, ys));
    return [traces, layout(colours, x, y, { hovermode: together ? "x unified" : "closest" })];
  }

  function frontOf(points, less) {
    const sign = less ? 1 : -1;
    const front = [];
    for (const p of [...points].sort((a, b) => a.x - b.x || sign * (a.y[0] - b.y[0]))) {
      const last = front[front.length - 1];
      if (!last || sign * p.y[0] < sign * last.y[0] || (p.x === last.x && p.y[0] === last.y[0])) front.push(p);
    }
    return front;
  }

  function tradeoff(panel, state, colours) {
    const shown = panel.points.filter((p) => state.shown.has(p.agent));
    const learners = shown.filter((p) => !data.styles[p.agent].baseline);
    const baselines = shown.filter((p) => data.styles[p.agent].baseline);
    const logY = state.scale !== "linear";
    const front = frontOf(learners, panel.less);
    const traces = [{
      x: front.map((p) => p.x), y: front.map((p) => p.y[0]), type: "scatter", mode: "lines", hoverinfo: "skip", meta: "front",
      line: { shape: "hv", color: colours.soft, width: 1.2, dash: "solid" },
    }];
    for (const p of learners) {
      const style = data.styles[p.agent];
      const [mean, low, high] = p.y;
      traces.push({
        x: [p.x], y: [mean], type: "scatter", mode: "markers", name: short(style.name), meta: "point",
        error_y: { array: [Math.max(high - mean, 0)], arrayminus: [Math.max(mean - low, 0)], color: colourOf(style), thickness: 1.6, width: 4, visible: state.bands },
        marker: { size: 12, symbol: style.symbol, color: front.includes(p) ? colourOf(style) : colours.ground, line: { width: 2.4, color: colourOf(style) } },
        hovertemplate: `${short(style.name)}<br>${number(p.x)} ${panel.unit}<br>${panel.end} ${interval(mean, low, high)}<extra></extra>`,
      });
    }
    const ys = shown.flatMap((p) => [p.y[0], state.bands ? p.y[2] : p.y[0]]);
    const y = axis(panel.end, colours, scaled(logY, ys));
    if (!logY && panel.less) y.range = [0, 1.1 * Math.max(...ys, 1e-9)];
    if (!logY && !panel.less) y.range = padded(shown.flatMap((p) => p.y));
    const xs = learners.map((p) => p.x);
    const logX = panel.wide || state.scale === "loglog";
    const x = axis(`peak memory of the agent, ${panel.unit}`, colours, scaled(logX && xs.every((v) => v > 0), xs));
    if (x.type === "linear") x.range = [0, 1.12 * Math.max(...xs, 0) || 1];
    else if (x.range) x.range = [x.range[0] - 0.08, x.range[1] + 0.08];
    const drawn = baselines.filter((p) => !logY || (y.range && p.y[0] > 0 && Math.log10(p.y[0]) >= y.range[0]));
    return [traces, layout(colours, x, y, { shapes: drawn.map(level), annotations: drawn.map((p, i) => levelName(p, i, logY, colours)) })];
  }

  function padded(values) {
    const [low, high] = [Math.min(...values, Infinity), Math.max(...values, -Infinity)];
    const slack = 0.08 * (high - low || Math.abs(high) || 1);
    return Number.isFinite(low) && Number.isFinite(high) ? [low >= 0 ? Math.max(0, low - slack) : low - slack, high + slack] : [0, 1];
  }

  const level = (p) => ({
    type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: p.y[0], y1: p.y[0], layer: "below",
    line: { color: colourOf(data.styles[p.agent]), width: 1.6, dash: data.styles[p.agent].dash },
  });

  // names of lines that lie close together stand at different ends
  const levelName = (p, i, log, colours) => ({
    text: short(data.styles[p.agent].name), xref: "paper", x: [0, 1, 0.5][i % 3], xanchor: ["left", "right", "center"][i % 3],
    yref: "y", y: log ? Math.log10(p.y[0]) : p.y[0], yanchor: "bottom", showarrow: false,
    font: { size: 12, color: colourOf(data.styles[p.agent]) },
  });

  let printing = false; // then every plot is drawn, as wide as a sheet

  // ---- panels: an element with switches and plots that obey them

  function draw(plot, panel, state) {
    const kind = plot.dataset.plot;
    const make = { curves, returns: curves, profile: curves, tradeoff }[kind];
    const [traces, layout] = make(panel, state, inks(plot), kind);
    layout.uirevision = `${state.scale} ${state.zoom}`;
    if (printing) layout.width = 660;
    return Plotly.react(plot, traces, layout, CONFIG);
  }

  function setUp(element) {
    const panel = data.panels[element.id];
    const boxes = [...element.querySelectorAll("[data-agent]")];
    const plots = [...element.querySelectorAll(".plot")];
    const chosen = () => new Set(boxes.filter((b) => b.checked).map((b) => Number(b.dataset.agent)));
    const state = { shown: chosen(), scale: "linear", bands: true, zoom: 0 };
    const drawn = new Set();
    const redraw = () => (printing ? plots : drawn).forEach((plot) => draw(plot, panel, state));

    function read() {
      state.shown = chosen();
      state.scale = element.querySelector("[data-scale]:checked").dataset.scale;
      const bands = element.querySelector("[data-bands]");
      state.bands = !bands || bands.checked;
      redraw();
    }

    element.querySelector(".controls").addEventListener("change", read);
    for (const button of element.querySelectorAll("[data-all]"))
      button.addEventListener("click", () => { boxes.forEach((b) => { b.checked = button.dataset.all === "1"; }); read(); });
    element.querySelector("[data-reset]").addEventListener("click", () => { state.zoom += 1; redraw(); });
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting || drawn.has(entry.target)) continue;
        drawn.add(entry.target);
        draw(entry.target, panel, state);
      }
    }, { rootMargin: "600px" });
    for (const plot of plots) {
      near.observe(plot);
      plot.addEventListener("keydown", (event) => { if (event.key === "0") { state.zoom += 1; redraw(); } else steer(event, plot); });
    }
    return redraw;
  }

  // arrow keys move a plot, plus and minus zoom its episodes
  function steer(event, plot) {
    const x = plot.layout && plot.layout.xaxis;
    if (!x || !x.range || event.ctrlKey || event.metaKey || event.altKey) return;
    const [low, high] = x.range;
    const [middle, half] = [(low + high) / 2, (high - low) / 2];
    const moves = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.7], "=": [0, 0.7], "-": [0, 1 / 0.7] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const centre = middle + 2 * move[0] * half;
    Plotly.relayout(plot, { "xaxis.range": [centre - move[1] * half, centre + move[1] * half] });
  }

  const redraws = [...document.querySelectorAll(".panel")].map(setUp);
  const redrawAll = () => redraws.forEach((redraw) => redraw());

  // ---- the switch of colours; what was chosen is remembered where the browser lets a file do so

  const themes = [...document.querySelectorAll("input[name=theme]")];
  function setTheme(theme) {
    root.dataset.theme = theme;
    themes.forEach((input) => { input.checked = input.value === theme; });
    redrawAll();
  }
  themes.forEach((input) => input.addEventListener("change", () => {
    try { localStorage.setItem("linmdp-theme", input.value); } catch { /* not allowed here */ }
    setTheme(input.value);
  }));
  try {
    const kept = localStorage.getItem("linmdp-theme");
    if (kept === "light" || kept === "dark") setTheme(kept);
  } catch { /* not allowed here */ }
  darkSystem.addEventListener("change", redrawAll);
  narrow.addEventListener("change", redrawAll);

  // ---- tables that sort by a column

  function keyOf(row, column) {
    const cell = row.cells[column];
    const value = parseFloat(cell.dataset.key ?? cell.textContent.replace(/,/g, ""));
    return Number.isNaN(value) ? cell.textContent : value;
  }

  function compare(a, b) {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1;
  }

  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
      rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
      table.tBodies[0].append(...rows.map((pair) => pair[1]));
    }));
  }

  // ---- folded parts open when they are linked to, and for printing

  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", reveal);
  for (const link of document.querySelectorAll('a[href^="#section-"]')) link.addEventListener("click", () => setTimeout(reveal));
  reveal();
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((d) => { d.open = true; });
    printing = true;
    redrawAll();
  });
  addEventListener("afterprint", () => {
    opened.forEach((d) => { d.open = false; });
    opened = [];
    printing = false;
    redrawAll();
  });
})();
