// linmdp.mjs: the learner in linmdp.wasm, for browsers, Node, Deno and Bun. Written by `linmdp export`.
//
//     const learner = await Learner.from(bytes, seed);     bytes: linmdp.wasm, from fetch or a file
//     for (;;) {
//       learner.beginEpisode();                             planning happens here
//       for (let h = 0; h < learner.H && !ended; h++) {
//         const action = learner.act(h, state);
//         ... do it, see reward and nextState ...
//         learner.observe(h, state, action, reward, nextState, ended);
//         state = nextState;
//       }
//       learner.endEpisode();
//     }
//
// A state is a whole number below `S` where states are finite, else an array of `N` numbers.

const REFUSED = {
  [-1]: "the step is not the one that comes next, or no episode has begun",
  [-2]: "no state of this task",
  [-3]: "no action of this task",
  [-4]: "a reward outside the range of this task, or not a number",
  [-5]: "rounding has eaten the regression: reset the learner",
};

export class Learner {
  #wasm; #state; #next; #q; #memory;

  static async from(bytes, seed = 0) {
    const module = await WebAssembly.compile(bytes);
    return new Learner((await WebAssembly.instantiate(module)).exports, seed);
  }

  constructor(wasm, seed) {
    const { buffer } = wasm.memory;
    const [H, A, d, S, N, real, size, learner, state, next, q] = new Uint32Array(buffer, wasm.layout(), 11);
    const Reals = real === 4 ? Float32Array : Float64Array;
    const slot = (at) => (S > 0 ? new Uint32Array(buffer, at, 1) : new Reals(buffer, at, N));
    Object.assign(this, { H, A, d, S, N, bytes: size }); // `bytes`: all the memory that the learner has
    this.#wasm = wasm;
    [this.#state, this.#next] = [slot(state), slot(next)];
    this.#q = new Reals(buffer, q, A);
    this.#memory = new Uint8Array(buffer, learner, size);
    this.reset(seed);
  }

  // Forget everything.
  reset(seed = 0) { this.#checked(this.#wasm.init(seed)); }

  beginEpisode() { this.#checked(this.#wasm.begin_episode()); }

  // The action for a state at step h.
  act(h, state) {
    this.#write(this.#state, state);
    return this.#checked(this.#wasm.act(h));
  }

  // What came of it; `terminated` where nothing follows.
  observe(h, state, action, reward, nextState, terminated = false) {
    this.#write(this.#state, state);
    this.#write(this.#next, nextState);
    this.#checked(this.#wasm.observe(h, action, reward, terminated));
  }

  endEpisode() { this.#checked(this.#wasm.end_episode()); }

  // What each action is believed to be worth: an upper bound.
  qValues(h, state) {
    this.#write(this.#state, state);
    this.#checked(this.#wasm.q_values(h));
    return Array.from(this.#q);
  }

  // The width of the bonus. It can be changed at any time, unless it comes from the data.
  get beta() { return this.#wasm.beta(); }

  set beta(width) {
    if (!this.#wasm.set_beta) throw new Error("beta comes from the data");
    this.#wasm.set_beta(width);
  }

  // All that it has learned, and the way back, into the same linmdp.wasm.
  save() { return this.#memory.slice(); }

  restore(saved) {
    if (saved.length !== this.bytes) throw new Error(`a saved learner has ${this.bytes} bytes, not ${saved.length}`);
    this.#memory.set(saved);
  }

  #write(slot, state) {
    if (this.S > 0) slot[0] = state;
    else slot.set(state);
  }

  #checked(status) {
    if (status < 0) throw new Error(REFUSED[status]);
    return status;
  }
}
