// What people's own clients make of an answer that begins with blank lines, as it takes long (--silence-s), and of an error
// behind these. Started by tests/clients/run, with the program's path in TROUPE.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {after, before, test} from 'node:test';
import {promisify} from 'node:util';
import {serve, tiny} from './server.mjs';

const name = 'tiny-qwen2moe-q8_0';
const hello = {model: name, messages: [{role: 'user', content: 'Hello'}], max_tokens: 4, seed: 4};
const headers = {authorization: 'Bearer secret', 'content-type': 'application/json'};
let server, openai, anthropic;

before(async () => {
  server = await serve(tiny, '--parallel', '1', '--ctx', '32768', '--silence-s', '1', '--pooling', 'mean');
  openai = new OpenAI({baseURL: `${server.address}/v1`, apiKey: 'secret', maxRetries: 0});
  anthropic = new Anthropic({baseURL: server.address, apiKey: 'secret', maxRetries: 0});
});
after(() => server.stop());

// What `ask` gives while another request has the only sequence for longer than a beat of five seconds.
async function askedBehindAnother(ask) {
  const gone = new AbortController();
  const body = JSON.stringify({prompt: 'a', max_tokens: 30000, ignore_eos: true, stream: true});
  const held = await fetch(`${server.address}/v1/completions`, {method: 'POST', headers, body, signal: gone.signal});
  const reader = held.body.getReader();
  await reader.read();
  const drained = (async () => { while (!(await reader.read()).done); })().catch(() => {});
  const asked = ask();
  asked.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 7000));
  gone.abort();
  await drained;
  return asked;
}

test('an answer behind blanks is one like any other', async () => {
  const curl = promisify(execFile);
  const [chat, message, response, embeddings, raw, byCurl] = await askedBehindAnother(() => Promise.all([
    openai.chat.completions.create(hello),
    anthropic.messages.create(hello),
    openai.responses.create({model: name, input: 'Hello', max_output_tokens: 4}),
    openai.embeddings.create({model: name, input: 'Hello'}),
    fetch(`${server.address}/v1/chat/completions`, {method: 'POST', headers, body: JSON.stringify(hello)}).then((r) => r.text()),
    curl('curl', ['-sSf', '-H', 'authorization: Bearer secret', '-d', JSON.stringify(hello), `${server.address}/v1/chat/completions`]),
  ]));
  assert.match(raw, /^\n+\{/);  // there were some
  assert.match(byCurl.stdout, /^\n+\{/);
  assert.equal(chat.choices[0].message.content, JSON.parse(raw).choices[0].message.content);
  assert.equal(JSON.parse(byCurl.stdout).choices[0].message.content, chat.choices[0].message.content);
  assert.equal(message.content[0].type, 'text');
  assert.equal(response.status === 'completed' || response.status === 'incomplete', true);
  assert.ok(embeddings.data[0].embedding.length > 0);
});

test('an error behind blanks is no answer', async () => {
  const late = {...hello, timeout: 6};
  const [chat, message, byCurl] = await askedBehindAnother(() => Promise.all([
    openai.chat.completions.create(late).catch((error) => error),
    anthropic.messages.create(late).catch((error) => error),
    promisify(execFile)('curl', ['-sS', '-H', 'authorization: Bearer secret', '-d', JSON.stringify(late), `${server.address}/v1/chat/completions`])
        .catch((error) => error),
  ]));
  assert.ok(chat instanceof Error, JSON.stringify(chat));
  assert.ok(message instanceof Error, JSON.stringify(message));
  assert.equal(byCurl.code, 18, byCurl.stderr);  // a partial file
});
