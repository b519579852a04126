// For docs/live_page.py: plays whole runs in Node, and prints the mean return of the last episodes of each seed.
import { readFileSync } from "node:fs";
import { Learner } from "./linmdp.mjs";
import { CartPole, Sensor, randomFrom } from "./tasks.mjs";

const { name, wasm, beta, seeds, episodes, tail } = JSON.parse(readFileSync(0, "utf8"));

async function ended(seed) {
  const learner = await Learner.from(Buffer.from(wasm, "base64"), seed);
  const task = new { cartpole: CartPole, sensor: Sensor }[name](randomFrom(seed)), returns = [];
  learner.beta = beta;
  for (let k = 0; k < episodes; k++) {
    let state = task.reset(), over = false;
    returns.push(0);
    learner.beginEpisode();
    for (let h = 0; h < learner.H && !over; h++) {
      const action = learner.act(h, state), next = task.step(action);
      learner.observe(h, state, action, next.reward, next.state, next.terminated);
      returns[k] += next.reward;
      [state, over] = [next.state, next.terminated];
    }
    learner.endEpisode();
  }
  return returns.slice(-tail).reduce((x, y) => x + y) / tail;
}

const found = [];
for (let seed = 1000; seed < 1000 + seeds; seed++) found.push(await ended(seed));
console.log(JSON.stringify(found));
