// How fast llama.cpp writes a text that is given to it, with its own look-up decoding and without;
// prints one line of JSON.
//   node peer_lookup.mjs MODEL PROMPT ANSWER THREADS MOST,MOST,…
// The tokens of ANSWER are fed behind those of PROMPT as a model would choose them: node-llama-cpp's
// InputLookupTokenPredictor guesses, MOST tokens at most (0: nobody does), a batch checks the
// guesses, and those that ANSWER has stay. Nothing is sampled, which costs llama.cpp nothing.
import fs from "node:fs";
import {InputLookupTokenPredictor} from "node-llama-cpp";
import {loadModel, openRuntime} from "./peer.mjs";

const seconds = () => Number(process.hrtime.bigint()) / 1e9;
const MOST_SECONDS = 60;

const [model, promptFile, answerFile, threadCount, mosts] = process.argv.slice(2);
const threads = Number(threadCount);
const runtime = await openRuntime(threads);
const peer = await loadModel(runtime, model, {threads, contextSize: 2048, batchSize: 512});
const prompt = peer.tokenize(fs.readFileSync(promptFile, "utf8"));
const answer = peer.tokenize(fs.readFileSync(answerFile, "utf8"));

function guesses(predictor, most, at) {
  return predictor === null ? [] : predictor.predictTokens().slice(0, Math.min(most, answer.length - at - 2));
}

/** As many of the guesses as the text goes on with behind token `at`. */
function right(guessed, at) {
  let count = 0;
  while (count < guessed.length && guessed[count] === answer[at + 1 + count]) ++count;
  return count;
}

async function write(most) {
  await peer.timePrefill(prompt);
  const addon = peer.context._ctx;
  const predictor = most === 0 ? null : new InputLookupTokenPredictor({predictionLength: {max: most}});
  predictor?.updateInputTokens(prompt);
  predictor?.reset({stateTokens: [...prompt, answer[0]]});
  const result = {most, tokens: 0, drafted: 0, accepted: 0};
  const start = seconds();
  let at = 0;  // the last token that is known; it is fed next
  while (at < answer.length - 1 && seconds() - start < MOST_SECONDS) {
    const guessed = guesses(predictor, most, at);
    const fed = [answer[at], ...guessed];
    addon.initBatch(fed.length);
    addon.addToBatch(0, prompt.length + at, Uint32Array.from(fed), Uint32Array.from(fed.keys()));
    await addon.decodeBatch();
    const accepted = right(guessed, at);
    if (accepted < guessed.length) {
      addon.removeTokenCellsFromSequence(0, prompt.length + at + 1 + accepted, -1);
    }
    predictor?.pushTokens(answer.slice(at + 1, at + 2 + accepted));
    at += 1 + accepted;
    result.drafted += guessed.length;
    result.accepted += accepted;
  }
  result.tokens = at;
  result.tokens_per_s = at / (seconds() - start);
  addon.removeTokenCellsFromSequence(0, 0, -1);
  await peer.forget();
  return result;
}

const runs = [];
for (const most of mosts.split(",").map(Number)) {
  await write(most);  // warms up
  runs.push(await write(most));
}
fs.writeSync(1, JSON.stringify({prompt: prompt.length, answer: answer.length, runs}) + "\n");
process.exit(0);  // the runtime keeps threads alive that nobody waits for
