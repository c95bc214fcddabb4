// What llama.cpp's tokenizer makes of texts, with a file that has a vocabulary and no weights:
//   node peer_vocab.mjs VOCABULARY.gguf TEXTS
// TEXTS are each followed by a line __ggml_vocab_test__; prints a line of ids a text.
import fs from "node:fs";
import {openRuntime} from "./peer.mjs";

const [modelPath, textsPath] = process.argv.slice(2);
const runtime = await openRuntime(1);
const model = await runtime.loadModel(
  {modelPath, vocabOnly: true, gpuLayers: 0, ignoreMemorySafetyChecks: true});
const texts = fs.readFileSync(textsPath, "utf8").split("\n__ggml_vocab_test__\n").slice(0, -1);
for (const text of texts) process.stdout.write([...model.tokenize(text, false)].map((id) => ` ${id}`).join("") + "\n");
await model.dispose();
process.exit(0);
