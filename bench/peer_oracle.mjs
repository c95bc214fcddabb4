// llama.cpp as an oracle: answers requests, one line of JSON each on stdin, with one line of JSON
// each on stdout. Logits go to files, as float32 rows over the vocabulary.
//
//   {op: "tokenize", model, text}                    -> {ids}
//   {op: "greedy", model, prompt, count, logits}     -> {tokens, margins}   and a row a token
//   {op: "teacher", model, ids, logits}              -> {}                  and a row for each id
//   {op: "search", model, copies, count, prompts, min_margin, min_distinct}
//                                                    -> {found}: index of the first prompt that
//                                                       will do, or null (see search below)
// A margin is the distance between the two largest logits, in standard deviations of the row.
import fs from "node:fs";
import readline from "node:readline";
import {loadModel, openRuntime} from "./peer.mjs";

// Scores and sums of attention in float32, as troupe has them: the comparison is about the model.
const OPTIONS = {threads: 1, contextSize: 640, batchSize: 64, flashAttention: false};

const runtime = await openRuntime(OPTIONS.threads);
const loaded = new Map();

/** The models of the request under way stay loaded; others are let go. */
async function withModels(paths) {
  for (const [path, peer] of loaded) {
    if (paths.includes(path)) continue;
    loaded.delete(path);
    await peer.dispose();
  }
  for (const path of paths) {
    if (!loaded.has(path)) loaded.set(path, await loadModel(runtime, path, OPTIONS));
  }
  return paths.map((path) => loaded.get(path));
}

function deviation(row) {
  let sum = 0, squares = 0;
  for (const x of row) {
    sum += x;
    squares += x * x;
  }
  return Math.sqrt(Math.max(0, squares / row.length - (sum / row.length) ** 2));
}

function margin(row) {
  let first = -Infinity, second = -Infinity;
  for (const x of row) {
    if (x > first) [first, second] = [x, first];
    else if (x > second) second = x;
  }
  return (first - second) / deviation(row);
}

/** Calls produce(writeRow), with the rows going to the file `path`. */
async function savingRows(path, produce) {
  const file = fs.openSync(path, "w");
  try {
    await produce((row) => fs.writeSync(file, row));
  } finally {
    fs.closeSync(file);
  }
}

async function greedy({model, prompt, count, logits}) {
  const [peer] = await withModels([model]);
  const tokens = [], margins = [];
  await savingRows(logits, (write) => peer.greedy(prompt, count, (token, row) => {
    tokens.push(token);
    margins.push(margin(row));
    write(row);
    return true;
  }));
  return {tokens, margins};
}

async function teacher({model, ids, logits}) {
  const [peer] = await withModels([model]);
  await savingRows(logits, (write) => peer.logitsOfAll(ids, write));
  return {};
}

/** The greedy tokens after `prompt`, as far as accept(step, token, row) says yes. */
async function greedyWhile(peer, prompt, count, accept) {
  const tokens = [];
  await peer.greedy(prompt, count, (token, row) => {
    if (!accept(tokens.length, token, row)) return false;
    tokens.push(token);
    return true;
  });
  return tokens;
}

/**
 * The first prompt whose greedy continuation has no near tie: each step's margin is at least
 * `min_margin`, `min_distinct` different tokens come, and the `copies` of the model, whose
 * activations were disturbed by as much as rounding may, continue in the same way.
 */
async function search({model, copies, count, prompts, min_margin, min_distinct}) {
  const [peer, ...disturbed] = await withModels([model, ...copies]);
  for (const [index, prompt] of prompts.entries()) {
    const tokens = await greedyWhile(peer, prompt, count,
      (step, token, row) => margin(row) >= min_margin);
    let good = tokens.length === count && new Set(tokens).size >= min_distinct;
    for (const copy of disturbed) {
      if (!good) break;
      const same = await greedyWhile(copy, prompt, count, (step, token) => token === tokens[step]);
      good = same.length === count;
    }
    if (good) return {found: index};
  }
  return {found: null};
}

async function tokenize({model, text}) {
  const [peer] = await withModels([model]);
  return {ids: peer.tokenize(text)};
}

const operations = {tokenize, greedy, teacher, search};
for await (const line of readline.createInterface({input: process.stdin})) {
  const request = JSON.parse(line);
  fs.writeSync(1, JSON.stringify(await operations[request.op](request)) + "\n");
}
process.exit(0);  // the runtime keeps threads alive that nobody waits for
