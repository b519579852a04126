// The two tasks, step by step as in Python: gymnasium's CartPole-v1, and `sensor` of linmdp/envs/linear_devices.py.

// Random numbers in [0, 1) that a seed repeats (mulberry32).
export function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class CartPole {
  actions = ["push left", "push right"];

  constructor(random) { this.random = random; }

  reset() {
    this.state = [0, 0, 0, 0].map(() => 0.1 * this.random() - 0.05);
    return this.observed();
  }

  // As many bits as Gymnasium shows of a state.
  observed() { return this.state.map(Math.fround); }

  step(action) {
    const [x, speed, angle, spin] = this.state, [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const force = action === 1 ? 10 : -10, poleMoment = 0.05, totalMass = 1.1, seconds = 0.02;
    const push = (force + poleMoment * spin ** 2 * sin) / totalMass;
    const spinning = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - (0.1 * cos ** 2) / totalMass));
    const moving = push - (poleMoment * spinning * cos) / totalMass;
    this.state = [x + seconds * speed, speed + seconds * moving, angle + seconds * spin, spin + seconds * spinning];
    const terminated = Math.abs(this.state[0]) > 2.4 || Math.abs(this.state[2]) > (12 * 2 * Math.PI) / 360;
    return { state: this.observed(), reward: 1, terminated };
  }
}

const BATTERY = 3, QUEUE = 2, UNITS = 2, HARVEST = [0, 0.9], PERSISTENCE = 0.75, SAMPLE_COST = 1, SEND_COST = 2;

export class Sensor {
  actions = ["sleep", "sample", "send"];

  constructor(random) { this.random = random; }

  static encode([battery, queue, bright]) { return (battery * (QUEUE + 1) + queue) * 2 + bright; }

  reset() {
    this.state = [0, 0, 0]; // battery, queue, weather: empty, in the dark
    return Sensor.encode(this.state);
  }

  // What an action pays in a state, and all that can follow: [chance, state].
  static outcomes([battery, queue, bright], action) {
    let delivered = 0;
    if (action === 1 && battery >= SAMPLE_COST) {
      battery -= SAMPLE_COST;
      queue = Math.min(queue + 1, QUEUE);
    } else if (action === 2 && battery >= SEND_COST) {
      battery -= SEND_COST;
      [delivered, queue] = [queue, 0];
    }
    const next = [];
    for (const harvested of [0, 1])
      for (const weather of [0, 1]) {
        const chance = (harvested ? HARVEST[bright] : 1 - HARVEST[bright]) *
          (weather === bright ? PERSISTENCE : 1 - PERSISTENCE);
        const charge = Math.min(battery + UNITS * harvested, BATTERY);
        next.push([chance, [charge, charge ? queue : 0, weather]]); // an empty battery forgets the queue
      }
    return { reward: delivered / QUEUE, next };
  }

  step(action) {
    const { reward, next } = Sensor.outcomes(this.state, action);
    let u = this.random();
    this.state = (next.find(([chance]) => (u -= chance) < 0) ?? next.at(-1))[1];
    return { state: Sensor.encode(this.state), reward, terminated: false };
  }
}
