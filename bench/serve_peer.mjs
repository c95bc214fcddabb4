// llama.cpp batching the requests of bench/serve, in a process of its own without a server before it; prints one
// line of JSON.
//   node serve_peer.mjs MODEL REQUESTS THREADS CONTEXT SECONDS
// REQUESTS: a file {"clients": [[{"prompt": [id, …], "max_tokens": n, "seed": n}, …], …]}. Each client has a
// sequence, and asks one request after the other; after SECONDS it asks no more, and stops: "finished" is false then.
import fs from "node:fs";
import {cpuLibrary, openRuntime, peakRssBytes} from "./peer.mjs";

const [model, file, ...numbers] = process.argv.slice(2);
const [threads, contextSize, mostSeconds] = numbers.map(Number);
const {clients} = JSON.parse(fs.readFileSync(file, "utf8"));
const seconds = () => Number(process.hrtime.bigint()) / 1e9;

const runtime = await openRuntime(threads);
const loaded = await runtime.loadModel({modelPath: model, gpuLayers: 0, ignoreMemorySafetyChecks: true});
const context = await loaded.createContext({
  contextSize, batchSize: 512, sequences: clients.length, threads: {ideal: threads, min: threads},
  ignoreMemorySafetyChecks: true,
});
const sequences = clients.map(() => context.getSequence());

const gaps = [], firsts = [];
let generated = 0, read = 0;
const start = seconds();
let late = false;

async function ask(sequence, {prompt, max_tokens: most, seed}) {
  await sequence.clearHistory();
  const asked = seconds();
  let last = 0, count = 0;
  for await (const token of sequence.evaluate(prompt, {temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, seed,
    yieldEogToken: true})) {
    const now = seconds();
    if (last === 0) {
      firsts.push(now - asked);
      read += prompt.length;
    } else {
      gaps.push(now - last);
    }
    last = now;
    ++generated;
    if (++count >= most || token === undefined) break;
    if (now - start > mostSeconds) {
      late = true;
      break;
    }
  }
}

await Promise.all(clients.map(async (requests, i) => {
  for (const request of requests) {
    if (late) return;
    await ask(sequences[i], request);
  }
}));
const took = seconds() - start;
fs.writeSync(1, JSON.stringify({generated, read, seconds: took, finished: !late, gaps, firsts, cpu_library: cpuLibrary(),
  peak_rss_bytes: peakRssBytes()}) + "\n");
process.exit(0);  // the runtime keeps threads alive that nobody waits for
