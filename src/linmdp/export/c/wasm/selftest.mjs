// selftest.mjs: plays what Python recorded and compares. `node selftest.mjs`. Written by `linmdp export`.
import { readFileSync } from "node:fs";

const bytes = readFileSync(new URL("selftest.wasm", import.meta.url));
const test = (await WebAssembly.instantiate(bytes)).instance.exports;
const failed = test.selftest();
for (const name of Object.keys(test).filter((name) => !["memory", "selftest"].includes(name)))
  console.log(name, test[name]());
console.log(failed ? "FAILED" : "passed");
process.exitCode = failed;
