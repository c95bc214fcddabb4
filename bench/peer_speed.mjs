// One measurement of llama.cpp's speed and memory in a process of its own; prints one line of JSON.
//   node peer_speed.mjs MODEL TEXT THREADS PREFILL PROMPT DECODE REPS mmap|nommap
// Reads the tokens of TEXT: PREFILL of them in one batch; DECODE of them one by one after PROMPT.
import fs from "node:fs";
import {cpuLibrary, loadModel, openRuntime, peakRssBytes} from "./peer.mjs";

// On a busy machine unpinned threads have needed minutes for 128 tokens: enough is known sooner.
const MOST_SECONDS = 30;

const [model, textFile, ...numbers] = process.argv.slice(2);
const [threads, prefill, prompt, decode, reps] = numbers.map(Number);
const mmap = numbers[5] === "mmap";

const runtime = await openRuntime(threads);
const contextSize = Math.max(prefill, prompt + decode) + 32;
const peer = await loadModel(runtime, model, {threads, contextSize, batchSize: prefill, mmap});
const ids = peer.tokenize(fs.readFileSync(textFile, "utf8"));
const wanted = Math.max(prefill, prompt + decode);
if (ids.length < wanted) {
  process.stderr.write(`${textFile}: ${ids.length} tokens, ${wanted} needed\n`);
  process.exit(1);
}

await peer.timePrefill(ids.slice(0, prefill));  // touches every page, reserves every buffer
const result = {prefill: [], decode: [], cpu_library: cpuLibrary()};
for (let i = 0; i < reps; ++i) {
  result.prefill.push(prefill / await peer.timePrefill(ids.slice(0, prefill)));
}
for (let i = 0; i <= reps; ++i) {
  const speed = await peer.timeDecode(ids.slice(0, prompt), ids.slice(prompt, prompt + decode),
    MOST_SECONDS);
  if (i > 0) result.decode.push(speed);  // the first one warms up
}
result.peak_rss_bytes = peakRssBytes();
fs.writeSync(1, JSON.stringify(result) + "\n");
process.exit(0);  // the runtime keeps threads alive that nobody waits for
