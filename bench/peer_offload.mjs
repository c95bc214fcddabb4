// One measurement of llama.cpp under a memory limit that somebody else has set, in a process of its
// own, weights mapped; prints one line of JSON.
//   node peer_offload.mjs decode MODEL IDS THREADS SECONDS  token by token, for at most SECONDS
//   node peer_offload.mjs prefill MODEL IDS THREADS         all of the prompt in one batch, twice
//   node peer_offload.mjs program THREADS                   the memory of a process without a model
// IDS: a file {"prompt": [id, …], "decode": [id, …]}, what another engine has read and written.
import fs from "node:fs";
import {cpuLibrary, loadModel, openRuntime, peakRssBytes} from "./peer.mjs";

if (process.argv[2] === "program") {
  await openRuntime(Number(process.argv[3]));
  fs.writeSync(1, JSON.stringify({peak_rss_bytes: peakRssBytes()}) + "\n");
  process.exit(0);
}

const [phase, model, idsFile, threadsText, secondsText] = process.argv.slice(2);
const threads = Number(threadsText);
const ids = JSON.parse(fs.readFileSync(idsFile, "utf8"));

const runtime = await openRuntime(threads);
const contextSize = ids.prompt.length + ids.decode.length + 32;
const peer = await loadModel(runtime, model, {threads, contextSize, batchSize: ids.prompt.length});
const result = {cpu_library: cpuLibrary()};
if (phase === "prefill") {
  // The first time reads every weight from the disk whatever the limit: the faster one counts.
  const times = [await peer.timePrefill(ids.prompt), await peer.timePrefill(ids.prompt)];
  result.prefill_tokens_per_s = ids.prompt.length / Math.min(...times);
} else {
  result.decode_tokens_per_s = await peer.timeDecode(ids.prompt, ids.decode, Number(secondsText));
  result.decoded_tokens = peer.decoded;
}
result.peak_rss_bytes = peakRssBytes();
fs.writeSync(1, JSON.stringify(result) + "\n");
process.exit(0);  // the runtime keeps threads alive that nobody waits for
