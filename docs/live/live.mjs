// The page: one learner, one task, and what the visitor does to them. `TASKS` and `Learner` come before this.
import { CartPole, Sensor, randomFrom } from "./tasks.mjs";
import { paintCartPole, paintCurve, paintSensor } from "./scenes.mjs";

const KINDS = { cartpole: { Task: CartPole, paint: paintCartPole }, sensor: { Task: Sensor, paint: paintSensor } };
const SPEEDS = [0.25, 1, 4, 20, Infinity]; // times the task's own pace; without end: as fast as this machine can
const FRAME = 12; // milliseconds of a frame that are for learning
const by = (id) => document.getElementById(id);
const grouped = (n) => Math.round(n).toLocaleString("en");

// A learner in a task, and all that happened to them so far.
class Run {
  constructor(name, learner, seed) {
    Object.assign(this, { name, learner, returns: [], steps: 0, action: null, reward: 0, open: false });
    this.task = new KINDS[name].Task(randomFrom(seed));
    this.state = this.task.reset();
    this.q = learner.qValues(0, this.state);
  }

  // One step, or between two episodes the beginning of the next: planning.
  step() {
    if (!this.open) {
      this.learner.beginEpisode();
      Object.assign(this, { state: this.task.reset(), h: 0, paid: 0, open: true, action: null });
      return;
    }
    const { learner, h, state } = this;
    this.q = learner.qValues(h, state);
    this.action = learner.act(h, state);
    const { state: next, reward, terminated } = this.task.step(this.action);
    learner.observe(h, state, this.action, reward, next, terminated);
    this.steps++;
    Object.assign(this, { state: next, h: h + 1, paid: this.paid + reward, reward });
    if (terminated || h + 1 === learner.H) {
      learner.endEpisode();
      this.returns.push(this.paid);
      this.open = false;
    }
  }
}

class Page {
  constructor() {
    Object.assign(this, { tasks: TASKS, owed: 0, before: 0, seed: 1, modules: new Map() });
    for (const input of document.querySelectorAll("nav input"))
      input.addEventListener("change", () => this.choose(input.value));
    by("play").addEventListener("click", () => this.play(!this.playing));
    by("reset").addEventListener("click", () => this.restart());
    by("memory").addEventListener("change", () => this.restart());
    for (const id of ["memory", "beta", "speed"]) by(id).addEventListener("input", () => this.read());
    this.play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    requestAnimationFrame((now) => this.frame(now));
  }

  async choose(name) {
    const given = TASKS[name];
    document.querySelector(`nav input[value="${name}"]`).checked = true;
    [this.name, this.run] = [name, null]; // nothing to show until there is a learner for it
    by("what").textContent = given.what;
    [by("memory").max, by("memory").value] = [given.builds.length - 1, given.start.memory];
    [by("beta").max, by("beta").value] = [given.betas.length - 1, given.start.beta];
    const task = new KINDS[name].Task();
    by("beliefs").innerHTML = task.actions
      .map((action) => `<span class="name">${action}</span><i></i><span class="value"></span>`).join("");
    await this.restart();
  }

  // A learner that knows nothing, with other random numbers than the last.
  async restart() {
    const name = this.name, at = +by("memory").value, key = `${name} ${at}`;
    if (!this.modules.has(key)) this.modules.set(key, decoded(TASKS[name].builds[at].wasm));
    const learner = await Learner.from(this.modules.get(key), this.seed);
    if (name !== this.name || at !== +by("memory").value) return; // the visitor has moved on
    this.run = new Run(name, learner, this.seed++);
    this.owed = 0;
    this.read();
  }

  // What the sliders say.
  read() {
    const given = TASKS[this.name], build = given.builds[by("memory").value], beta = given.betas[by("beta").value];
    const speed = SPEEDS[by("speed").value];
    by("speed-value").textContent = speed === Infinity ? "as fast as it can" : `${speed}×`;
    by("memory-value").textContent = `${grouped(build.bytes)} bytes`;
    by("beta-value").textContent = beta === 0 ? "0: none" : beta;
    for (const id of ["speed", "memory", "beta"]) by(id).setAttribute("aria-valuetext", by(`${id}-value`).textContent);
    by("command").textContent = `The same from the command line: linmdp run ${given.env} ${given.agent},M=${build.M},beta=${beta} -k 100`;
    if (this.run) this.run.learner.beta = beta;
  }

  play(playing) {
    this.playing = playing;
    by("play").textContent = playing ? "Pause" : "Go on";
  }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    const passed = Math.min(now - this.before, 100);
    this.before = now;
    if (!this.run) return;
    if (this.playing) this.advance(passed);
    this.show();
  }

  // As many steps as are due by now, or as there is time for.
  advance(passed) {
    const end = performance.now() + FRAME;
    this.owed += (passed / 1000) * TASKS[this.name].pace * SPEEDS[by("speed").value];
    for (; this.owed >= 1 && performance.now() < end; this.owed--) this.run.step();
    this.owed = Math.min(this.owed, 1); // what a slow machine could not do is not owed
  }

  show() {
    const { run } = this, given = TASKS[this.name], recent = run.returns.slice(-20);
    const colours = Object.fromEntries(COLOURS.map((name) => [name, colourOf(name)]));
    painted(by("scene"), (pen, w, h) => KINDS[this.name].paint(pen, w, h, colours, run.task, run.action, run.reward));
    painted(by("curve"), (pen, w, h) => paintCurve(pen, w, h, colours, run.returns, given));
    const least = Math.min(0, ...run.q);
    [...by("beliefs").querySelectorAll("i")].forEach((bar, a) => {
      bar.style.setProperty("--part", `${(100 * (run.q[a] - least)) / (given.cap - least)}%`);
      bar.nextSibling.textContent = run.q[a].toFixed(2);
      for (const part of [bar, bar.previousSibling]) part.classList.toggle("chosen", a === run.action);
    });
    by("episodes").textContent = grouped(run.returns.length);
    by("recent").textContent = recent.length ? (recent.reduce((x, y) => x + y) / recent.length).toFixed(1) : "–";
    by("bytes").textContent = grouped(run.learner.bytes);
    by("seen").textContent = grouped(run.steps * given.sample);
  }
}

const COLOURS = ["ground", "raised", "ink", "soft", "rule", "accent", "warm", "good"];
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));

// The value of a colour in the theme of now: a canvas does not know light-dark().
function colourOf(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

// Paint in CSS pixels, sharp on every screen.
function painted(canvas, paint) {
  const { clientWidth: w, clientHeight: h } = canvas, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * ratio)) canvas.width = Math.round(w * ratio);
  if (canvas.height !== Math.round(h * ratio)) canvas.height = Math.round(h * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  paint(pen, w, h);
}

function decoded(base64) { return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)); }

// In a frame of the site: its theme comes as a message, and our height goes back.
if (parent !== window) {
  document.documentElement.classList.add("embedded");
  addEventListener("message", ({ data }) => {
    if (["light", "dark", "auto"].includes(data?.theme)) document.documentElement.dataset.theme = data.theme;
  });
  new ResizeObserver(() => parent.postMessage({ liveHeight: document.body.offsetHeight }, "*")).observe(document.body);
}

window.live = new Page(); // for the console, and for tests
await window.live.choose(location.hash === "#sensor" ? "sensor" : "cartpole");
