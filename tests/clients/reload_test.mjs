// What the SDKs make of streams that wait while the model is replaced by another: pings and queued responses that go on as
// the answers. Started by tests/clients/run, with the program's path in TROUPE.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import assert from 'node:assert/strict';
import {utimesSync} from 'node:fs';
import {after, before, test} from 'node:test';
import {serve, tinyThatSpeaksAs} from './server.mjs';

let speaker, server, openai, anthropic;
before(async () => {
  speaker = tinyThatSpeaksAs('Qwen-Qwen3-0.6B.jinja', '<|im_start|>', '<|im_end|>', '<think>', '</think>');
  server = await serve(speaker.model, '--parallel', '2', '--queue', '32', '--ctx', '65536');
  openai = new OpenAI({baseURL: `${server.address}/v1`, apiKey: 'secret', maxRetries: 0});
  anthropic = new Anthropic({baseURL: server.address, apiKey: 'secret', maxRetries: 0});
});
after(() => {
  server.stop();
  speaker.remove();
});

const respond = {model: 'm', input: 'Hello', instructions: 'Be brief.', max_output_tokens: 12, seed: 4, ignore_eos: true};
const message = {model: 'm', max_tokens: 12, messages: [{role: 'user', content: 'Hello'}], ignore_eos: true, seed: 4};
const chat = {model: 'm', messages: [{role: 'user', content: 'Hello'}], max_tokens: 12, seed: 4, ignore_eos: true};

async function eventsOf(stream, onEvent = () => {}) {
  const events = [];
  for await (const event of stream) {
    events.push(event);
    onEvent(event);
  }
  return events;
}

// The server waits for this one before it replaces its model.
async function holdTheModel() {
  const long = await openai.completions.create({model: 'm', prompt: 'a', max_tokens: 60000, ignore_eos: true, stream: true});
  let letGo;
  const told = new Promise((resolve) => letGo = resolve);
  const read = (async () => { for await (const ignored of long) letGo(); })();
  await told;
  return async () => {
    long.controller.abort();
    await read;
  };
}

test('streams that wait for a model hear of it in the events of their API, and then get the same answers', async () => {
  const alone = {respond: await openai.responses.create(respond), message: await anthropic.messages.create(message),
                 chat: await openai.chat.completions.create(chat)};
  const release = await holdTheModel();
  utimesSync(speaker.model, new Date(), new Date(0));
  server.reload();
  await server.says('reloading');

  let queued = 0, beatTwice;
  const beats = new Promise((resolve) => beatTwice = resolve);
  const response = openai.responses.create({...respond, stream: true}).then((stream) => eventsOf(stream, (event) => {
    if (event.type === 'response.queued' && ++queued === 2) beatTwice();
  }));
  const wrongResponse = openai.responses.create({...respond, background: true, stream: true}).then((stream) => eventsOf(stream));
  const helped = openai.responses.stream(respond).finalResponse();
  const streamed = anthropic.messages.stream(message).finalMessage();
  const raw = anthropic.messages.create({...message, stream: true}).asResponse().then((answer) => answer.text());
  const wrongMessage = assert.rejects(anthropic.messages.stream({...message, messages: []}).finalMessage(),
                                      (error) => error instanceof Anthropic.APIError && /messages/.test(error.message));
  const chatted = openai.chat.completions.stream(chat).finalChatCompletion();
  await beats;
  await release();

  const events = await response;
  events.forEach((event, number) => assert.equal(event.sequence_number, number));
  const types = events.map((event) => event.type);
  const waited = types.indexOf('response.in_progress');
  assert.deepEqual(types.slice(0, waited), ['response.created', ...Array(waited - 1).fill('response.queued')]);
  assert.ok(waited >= 3);
  assert.equal(types.lastIndexOf('response.created'), 0);
  assert.ok(events.slice(0, waited).every((event) => event.response.status === 'queued'));
  assert.equal(events[waited].response.instructions, 'Be brief.');
  const ids = events.filter((event) => event.response).map((event) => event.response.id);
  assert.equal(new Set(ids).size, 1);
  const text = events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join('');
  assert.equal(text, alone.respond.output_text);
  assert.equal((await helped).output_text, alone.respond.output_text);

  const failed = await wrongResponse;
  assert.deepEqual([failed[0].type, failed.at(-1).type], ['response.created', 'response.failed']);
  failed.forEach((event, number) => assert.equal(event.sequence_number, number));
  assert.equal(failed.at(-1).response.error.code, 'invalid_prompt');
  assert.match(failed.at(-1).response.error.message, /background/);

  assert.deepEqual((await streamed).content, alone.message.content);
  const names = [...(await raw).matchAll(/^event: (.*)$/gm)].map((found) => found[1]);
  const started = names.indexOf('message_start');
  assert.ok(started >= 2);
  assert.deepEqual(names.slice(0, started), Array(started).fill('ping'));
  assert.equal(names.at(-1), 'message_stop');
  await wrongMessage;

  assert.equal((await chatted).choices[0].message.content, alone.chat.choices[0].message.content);
});
