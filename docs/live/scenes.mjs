// How the tasks look. Each function paints one moment into a box of w x h.

export function paintCartPole(pen, w, h, colours, { state: [x, , angle] }, action) {
  const scale = w / 6, ground = h - 34, cart = { w: 0.9 * scale, h: 0.42 * scale }, at = w / 2 + x * scale;
  const reach = Math.min(1.55 * scale, ground - cart.h - 18);
  pen.lineCap = "round";
  line(pen, [12, ground], [w - 12, ground], colours.rule, 3);
  for (const end of [-2.4, 2.4]) line(pen, [w / 2 + end * scale, ground - 12], [w / 2 + end * scale, ground + 12], colours.soft, 2);
  pen.fillStyle = colours.ink;
  pen.beginPath();
  pen.roundRect(at - cart.w / 2, ground - cart.h - 6, cart.w, cart.h, 7);
  pen.fill();
  for (const side of [-0.28, 0.28]) disc(pen, at + side * scale, ground - 5, 6, colours.soft);
  const hinge = [at, ground - cart.h - 4], tip = [at + reach * Math.sin(angle), hinge[1] - reach * Math.cos(angle)];
  line(pen, hinge, tip, colours.warm, Math.max(7, 0.09 * scale));
  disc(pen, ...hinge, 4.5, colours.ground);
  if (action === null) return;
  const side = action === 1 ? 1 : -1, from = at + side * (cart.w / 2 + 8), to = from + side * 26, y = ground - cart.h / 2 - 6;
  line(pen, [from, y], [to, y], colours.accent, 3);
  line(pen, [to - side * 8, y - 6], [to, y], colours.accent, 3);
  line(pen, [to - side * 8, y + 6], [to, y], colours.accent, 3);
}

export function paintSensor(pen, w, h, colours, { state: [battery, queue, bright] }, action, reward) {
  const middle = w / 2, base = h - 30, unit = Math.min(w / 11, 34);
  pen.lineCap = "round";
  line(pen, [12, base], [w - 12, base], colours.rule, 3);
  paintWeather(pen, Math.min(56, w * 0.14), 48, bright, colours);
  // the panel, towards the weather
  line(pen, [middle - 2.6 * unit, base - 1.1 * unit], [middle - 1.4 * unit, base - 2.5 * unit], colours.accent, 7);
  line(pen, [middle - 2 * unit, base], [middle - 2 * unit, base - 1.7 * unit], colours.soft, 3);
  // the node with its battery
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 2.5;
  pen.beginPath();
  pen.roundRect(middle - unit, base - 2.6 * unit, 2 * unit, 2.6 * unit - 2, 6);
  pen.stroke();
  for (let i = 0; i < 3; i++) {
    pen.fillStyle = i < battery ? colours.good : colours.rule;
    pen.beginPath();
    pen.roundRect(middle - 0.75 * unit, base - (0.85 + 0.75 * i) * unit, 1.5 * unit, 0.6 * unit, 3);
    pen.fill();
  }
  // the queue of readings
  for (let i = 0; i < 2; i++) {
    pen.fillStyle = i < queue ? colours.warm : colours.rule;
    pen.beginPath();
    pen.roundRect(middle + (1.5 + 1.05 * i) * unit, base - 1.05 * unit, 0.85 * unit, 0.95 * unit, 4);
    pen.fill();
  }
  // the mast, and what is sent
  line(pen, [middle, base - 2.6 * unit], [middle, base - 3.7 * unit], colours.ink, 3);
  disc(pen, middle, base - 3.8 * unit, 4, colours.ink);
  const sent = action === 2;
  for (const radius of sent ? [12, 21, 30] : []) {
    pen.strokeStyle = reward > 0 ? colours.good : colours.soft;
    pen.lineWidth = 2.5;
    for (const towards of [0, Math.PI]) {
      pen.beginPath();
      pen.arc(middle, base - 3.8 * unit, radius, towards - 0.6, towards + 0.6);
      pen.stroke();
    }
  }
  pen.fillStyle = colours.soft;
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(`battery ${battery}/3`, middle, base + 20);
  pen.fillText(`queue ${queue}/2`, middle + 2.45 * unit, base + 20);
  pen.fillText(bright ? "bright" : "dark", Math.min(56, w * 0.14), 102);
}

function paintWeather(pen, x, y, bright, colours) {
  disc(pen, x, y, 17, bright ? colours.warm : colours.soft);
  if (!bright) return disc(pen, x + 8, y - 6, 15, colours.raised); // a moon
  for (let i = 0; i < 8; i++) {
    const [cos, sin] = [Math.cos((i * Math.PI) / 4), Math.sin((i * Math.PI) / 4)];
    line(pen, [x + 24 * cos, y + 24 * sin], [x + 31 * cos, y + 31 * sin], colours.warm, 3);
  }
}

// Returns as points, their mean over the last 20 as a line, and two levels to compare with.
export function paintCurve(pen, w, h, colours, returns, { random, best, bestWords }) {
  const left = 40, right = w - 16, top = 22, bottom = h - 34;
  const most = Math.max(30, Math.ceil(returns.length / 25) * 25), highest = 1.08 * Math.max(best, ...returns);
  const x = (k) => left + ((right - left) * k) / most, y = (value) => bottom - ((bottom - top) * value) / highest;
  pen.font = "12px system-ui, sans-serif";
  pen.lineCap = "butt";
  pen.fillStyle = colours.soft;
  pen.textAlign = "center";
  for (let k = 0; k <= most; k += niceStep(most, 5)) pen.fillText(k, x(k), bottom + 17);
  pen.fillText("episode", (left + right) / 2, bottom + 31);
  pen.textAlign = "right";
  for (let value = 0; value <= highest; value += niceStep(highest, 4)) {
    line(pen, [left, y(value)], [right, y(value)], colours.rule, 1);
    pen.fillText(value, left - 7, y(value) + 4);
  }
  pen.textAlign = "left";
  pen.fillText("return", 4, 12);
  pen.setLineDash([5, 4]);
  for (const value of [best, random]) line(pen, [left, y(value)], [right, y(value)], colours.soft, 1.5);
  pen.setLineDash([]);
  pen.globalAlpha = 0.45;
  returns.forEach((value, k) => disc(pen, x(k + 1), y(value), returns.length > 300 ? 1.5 : 2.5, colours.accent));
  pen.globalAlpha = 1;
  pen.beginPath();
  let sum = 0;
  returns.forEach((value, k) => {
    sum += value - (k >= 20 ? returns[k - 20] : 0);
    pen.lineTo(x(k + 1), y(sum / Math.min(k + 1, 20)));
  });
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 2.5;
  pen.lineJoin = "round";
  pen.stroke();
  pen.textAlign = "right";
  for (const [value, words] of [[best, bestWords], [random, `random play ${random.toFixed(1)}`]]) {
    pen.strokeStyle = colours.raised; // a halo, where curves run behind the words
    pen.lineWidth = 4;
    pen.strokeText(words, right, y(value) - 6);
    pen.fillStyle = colours.ink;
    pen.fillText(words, right, y(value) - 6);
  }
}

// 1, 2 or 5 times a power of ten, so that `most` has about so many steps.
function niceStep(most, steps) {
  const power = 10 ** Math.floor(Math.log10(most / steps));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => most / step <= steps + 0.5);
}

function line(pen, from, to, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

function disc(pen, x, y, radius, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}
