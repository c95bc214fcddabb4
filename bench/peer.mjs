// llama.cpp as node-llama-cpp ships it, on the CPU alone, for the comparisons of this folder: loads
// a GGUF, gives raw logits, greedy continuations and the times of prefill and decode. Knows nothing
// of troupe, of files with cases or of tables.
import fs from "node:fs";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const seconds = () => Number(process.hrtime.bigint()) / 1e9;

/** The most memory that this process has held, in bytes. */
export function peakRssBytes() {
  return 1024 * Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1]);
}

/** Which of its builds for different processors llama.cpp has chosen here. */
export function cpuLibrary() {
  return /libggml-cpu-[^/\s]*/.exec(fs.readFileSync("/proc/self/maps", "utf8"))?.[0] ?? "none";
}

/** The runtime, once a process: `threads` is the most that any of its models will use. */
export function openRuntime(threads) {
  return getLlama({
    gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: threads,
    logLevel: LlamaLogLevel.error, logger: (level, message) => process.stderr.write(message),
  });
}

/**
 * One model with one context. `flashAttention` "auto" is what llama.cpp does when nobody asks, and
 * what speed is measured with; without it scores and sums are float32, which is what its logits are
 * compared with.
 */
export async function loadModel(runtime, modelPath,
  {threads = 1, contextSize = 1024, batchSize = 512, mmap = true, flashAttention = "auto"} = {}) {
  const model = await runtime.loadModel(
    {modelPath, gpuLayers: 0, useMmap: mmap, ignoreMemorySafetyChecks: true});
  const context = await model.createContext({
    contextSize, batchSize, sequences: 1, threads: {ideal: threads, min: threads}, flashAttention,
    ignoreMemorySafetyChecks: true,
  });
  return new Peer(model, context, batchSize);
}

class Peer {
  constructor(model, context, batchSize) {
    this.model = model;
    this.context = context;
    this.batchSize = batchSize;
    this.sequence = context.getSequence();
  }

  async dispose() {
    await this.context.dispose();
    await this.model.dispose();
  }

  /** Token ids of a text, without BOS; what looks like a special token is text. */
  tokenize(text) {
    return [...this.model.tokenize(text, false)];
  }

  forget() {
    return this.sequence.clearHistory();
  }

  /**
   * Up to `count` greedy steps after `ids`: calls onRow(token, logits by id) for each, and stops
   * where that returns false. Temperature 0 leaves the logits as the model gave them; any other
   * would cut them to the sampler's top 40.
   */
  async greedy(ids, count, onRow) {
    await this.forget();
    const want = {generateNext: {token: true, logits: true, options: {temperature: 0}}};
    let next = ids;
    for (let i = 0; i < count; ++i) {
      const last = next.length - 1;
      const got = await this.sequence.controlledEvaluate(
        [...next.slice(0, last), [next[last], want]]);
      const {token, logits} = got[last].next;
      if (onRow(token, byId(logits)) === false) return;
      next = [token];
    }
  }

  /** Teacher forcing: calls onRow(logits by id) for what follows each of `ids`. */
  async logitsOfAll(ids, onRow) {
    await this.forget();
    const want = {generateNext: {logits: true, options: {temperature: 0}}};
    // A full row is a Map of the vocabulary: small batches bound what is alive at once.
    for (let start = 0; start < ids.length; start += this.batchSize) {
      const part = ids.slice(start, start + this.batchSize).map((id) => [id, want]);
      for (const {next} of await this.sequence.controlledEvaluate(part)) onRow(byId(next.logits));
    }
  }

  /** Seconds that reading `ids` takes, nothing sampled. */
  async timePrefill(ids) {
    await this.forget();
    const start = seconds();
    await this.sequence.evaluateWithoutGeneratingNewTokens(ids);
    return seconds() - start;
  }

  /**
   * Tokens/s of reading `ids` one by one after `prompt`, cut short after `limit` seconds: `decoded` says after how many. Calls
   * llama_decode through the addon itself: the queue of the public interface and its sampler would
   * cost llama.cpp some 15 %.
   */
  async timeDecode(prompt, ids, limit) {
    await this.timePrefill(prompt);
    const addon = this.context._ctx;
    const wantLogits = Uint32Array.from([0]);
    const start = seconds();
    let done = 0, took = 0;
    while (done < ids.length && took < limit) {
      addon.initBatch(1);
      addon.addToBatch(0, prompt.length + done, Uint32Array.from([ids[done]]), wantLogits);
      await addon.decodeBatch();
      ++done;
      took = seconds() - start;
    }
    addon.removeTokenCellsFromSequence(0, 0, -1);
    await this.forget();
    this.decoded = done;
    return done / took;
  }
}

function byId(logits) {
  const row = new Float32Array(logits.size);
  for (const [id, logit] of logits) row[id] = logit;
  return row;
}
