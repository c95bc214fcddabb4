// What people's own clients make of the server: every endpoint that they call, whole and streamed, and errors as they raise
// them. Started by tests/clients/run, with the program's path in TROUPE.
import Anthropic from '@anthropic-ai/sdk';
import {jsonSchemaOutputFormat} from '@anthropic-ai/sdk/helpers/json-schema';
import OpenAI from 'openai';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {serve, tiny, tinyThatSpeaksAs} from './server.mjs';

const name = 'tiny-qwen2moe-q8_0';
let server, openai, anthropic;

function clientOf({address}) {
  return new OpenAI({baseURL: `${address}/v1`, apiKey: 'secret', maxRetries: 0});
}
before(async () => {
  server = await serve(tiny, '--parallel', '4', '--ctx', '2048', '--pooling', 'mean');
  openai = clientOf(server);
  anthropic = new Anthropic({baseURL: server.address, apiKey: 'secret', maxRetries: 0});
});
after(() => server.stop());

const hello = {model: name, messages: [{role: 'user', content: 'Hello'}], max_tokens: 12, seed: 4, ignore_eos: true};

test('openai lists the model', async () => {
  const models = await openai.models.list();
  assert.deepEqual(models.data.map((found) => found.id), [name]);
  assert.deepEqual(await openai.models.retrieve(name), models.data[0]);
  await assert.rejects(openai.models.retrieve('another'), OpenAI.NotFoundError);
});

test('anthropic lists the model', async () => {
  const models = await anthropic.models.list();
  assert.deepEqual(models.data.map(({id, type, display_name}) => [id, type, display_name]), [[name, 'model', name]]);
  assert.equal(models.has_more, false);
  assert.ok(Date.parse(models.data[0].created_at) > 0);
  const all = [];
  for await (const model of anthropic.models.list()) all.push(model.id);
  assert.deepEqual(all, [name]);
  assert.deepEqual(await anthropic.models.retrieve(name), models.data[0]);
});

test('both find the id of a request where they look for it', async () => {
  assert.match((await openai.chat.completions.create(hello))._request_id, /^req_/);
  assert.match((await anthropic.messages.create(message))._request_id, /^req_/);
  await assert.rejects(openai.models.retrieve('another'), (error) => error.code === 'model_not_found' && /^req_/.test(error.requestID));
});

test('openai counts the tokens that a response would read', async () => {
  const {input_tokens: count} = await openai.responses.inputTokens.count({model: name, input: 'Hello'});
  const {usage} = await openai.responses.create({model: name, input: 'Hello', max_output_tokens: 1});
  assert.equal(count, usage.input_tokens);
});

test('openai gets a chat answer, and the same one as a stream', async () => {
  const whole = await openai.chat.completions.create(hello);
  assert.equal(whole.choices[0].message.role, 'assistant');
  assert.equal(whole.choices[0].finish_reason, 'length');
  assert.equal(whole.usage.completion_tokens, 12);
  const stream = await openai.chat.completions.create({...hello, stream: true, stream_options: {include_usage: true}});
  let text = '', usage, reason;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    reason = chunk.choices[0]?.finish_reason ?? reason;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(reason, 'length');
  // The same prompt again: all but its last token was found in the prefix cache.
  assert.deepEqual(usage, {...whole.usage, prompt_tokens_details: {cached_tokens: usage.prompt_tokens - 1}});
});

test('the stream helper of openai puts a chat together', async () => {
  const helper = openai.chat.completions.stream({...hello, n: 2});
  const final = await helper.finalChatCompletion();
  const whole = await openai.chat.completions.create({...hello, n: 2});
  assert.deepEqual(final.choices.map((choice) => choice.message.content),
                   whole.choices.map((choice) => choice.message.content));
});

test('openai reads logprobs', async () => {
  const answer = await openai.chat.completions.create({...hello, logprobs: true, top_logprobs: 3});
  const tokens = answer.choices[0].logprobs.content;
  assert.equal(tokens.length, 12);
  for (const token of tokens) {
    assert.ok(token.logprob <= 0);
    assert.equal(token.top_logprobs.length, 3);
    assert.equal(Buffer.from(token.bytes).length, token.bytes.length);
  }
});

test('openai gets JSON of a schema, whole and parsed by its helper', async () => {
  const schema = {
    type: 'object',
    properties: {size: {type: 'integer', minimum: 1, maximum: 9}, colour: {enum: ['red', 'green']}},
    required: ['size', 'colour'],
    additionalProperties: false,
  };
  const ask = {...hello, max_tokens: 60, ignore_eos: false,
               response_format: {type: 'json_schema', json_schema: {name: 'thing', schema, strict: true}}};
  for (let seed = 0; seed < 8; ++seed) {
    const answer = await openai.chat.completions.create({...ask, seed, temperature: 1.5});
    const thing = JSON.parse(answer.choices[0].message.content);
    assert.ok(thing.size >= 1 && thing.size <= 9);
    assert.ok(['red', 'green'].includes(thing.colour));
  }
  const parsed = await openai.chat.completions.parse(ask);
  checkPaint(parsed.choices[0].message.parsed);
});

test('openai gets any JSON object, to its end', async () => {
  let ended = 0;
  for (let seed = 0; seed < 12; ++seed) {
    const any = await openai.chat.completions.create({...hello, seed, max_tokens: 400, ignore_eos: false, temperature: 1.5,
                                                      response_format: {type: 'json_object'}});
    if (any.choices[0].finish_reason !== 'stop') continue;
    assert.equal(typeof JSON.parse(any.choices[0].message.content), 'object');
    ++ended;
  }
  assert.ok(ended > 0, 'no answer of twelve came to its end');
});

test('openai gets embeddings, by its default as base64', async () => {
  const texts = ['The kernel', 'Dear reader'];
  const both = await openai.embeddings.create({model: name, input: texts});
  const plain = await openai.embeddings.create({model: name, input: texts, encoding_format: 'float'});
  assert.ok(both.usage.total_tokens > 0);
  both.data.forEach(({embedding, index}, i) => {
    assert.equal(index, i);
    assert.deepEqual(Array.from(embedding), plain.data[i].embedding.map(Math.fround));
    assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
  });
  assert.notDeepEqual(both.data[0].embedding, both.data[1].embedding);
});

test('openai has a model with marks fill a gap', async () => {
  const {model, remove} = tinyThatSpeaksAs('Qwen-Qwen2.5-7B-Instruct.jinja', '<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>');
  const filling = await serve(model);
  try {
    const client = clientOf(filling);
    const ask = {model: name, prompt: 'int main() {', suffix: '}', max_tokens: 8, temperature: 0};
    const {choices: [whole], usage} = await client.completions.create(ask);
    assert.notEqual(whole.text, (await client.completions.create({...ask, suffix: null})).choices[0].text);
    assert.ok(usage.prompt_tokens > (await client.completions.create({...ask, suffix: null})).usage.prompt_tokens);
    let text = '';
    for await (const chunk of await client.completions.create({...ask, stream: true})) text += chunk.choices[0]?.text ?? '';
    assert.equal(text, whole.text);
  } finally {
    filling.stop();
    remove();
  }
  await assert.rejects(openai.completions.create({model: name, prompt: 'a', suffix: 'b'}), (error) => error.param === 'suffix');
});

test('openai completes texts and tokens', async () => {
  const ask = {model: name, prompt: ['The kernel', 'One'], max_tokens: 6, temperature: 0};
  const both = await openai.completions.create(ask);
  assert.equal(both.choices.length, 2);
  const one = await openai.completions.create({...ask, prompt: 'One'});
  assert.equal(both.choices[1].text, one.choices[0].text);
  let text = '';
  for await (const chunk of await openai.completions.create({...ask, prompt: 'One', stream: true})) {
    text += chunk.choices[0]?.text ?? '';
  }
  assert.equal(text, one.choices[0].text);
});

test('openai raises what is wrong, by its field', async () => {
  await assert.rejects(openai.chat.completions.create({...hello, temperature: 'hot'}),
                       (error) => error instanceof OpenAI.BadRequestError && /temperature: "hot"/.test(error.message));
  await assert.rejects(openai.chat.completions.create({...hello, messages: []}), OpenAI.BadRequestError);
  const stranger = openai.withOptions({apiKey: 'wrong'});
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

test('a client of openai that leaves is not waited for', async () => {
  const stream = await openai.chat.completions.create({...hello, max_tokens: 100, stream: true});
  for await (const ignored of stream) break;
  stream.controller.abort();
  assert.equal((await openai.chat.completions.create(hello)).usage.completion_tokens, 12);
});

const paint = {
  type: 'object',
  properties: {size: {type: 'integer', minimum: 1, maximum: 9}, colour: {type: 'string', enum: ['red', 'green']}},
  required: ['size', 'colour'],
  additionalProperties: false,
};
function checkPaint(call) {
  assert.deepEqual(Object.keys(call).sort(), ['colour', 'size']);
  assert.ok(call.size >= 1 && call.size <= 9);
  assert.ok(['red', 'green'].includes(call.colour));
}
// The small model calls nothing by itself: it is made to.
const call = {model: name, messages: [{role: 'user', content: 'Paint it.'}], max_tokens: 300, seed: 4, temperature: 1.2,
              tools: [{type: 'function', function: {name: 'paint', description: 'Paints.', parameters: paint}}],
              tool_choice: 'required', parallel_tool_calls: false};

test('openai gets calls of tools, whole and as a stream, and sends back what came of them', async () => {
  for (let seed = 0; seed < 5; ++seed) {
    const whole = (await openai.chat.completions.create({...call, seed})).choices[0];
    assert.equal(whole.finish_reason, 'tool_calls');
    assert.equal(whole.message.content, null);
    const [made] = whole.message.tool_calls;
    assert.equal(made.function.name, 'paint');
    checkPaint(JSON.parse(made.function.arguments));
    const streamed = (await openai.chat.completions.stream({...call, seed}).finalChatCompletion()).choices[0];
    assert.equal(streamed.finish_reason, 'tool_calls');
    assert.equal(streamed.message.tool_calls[0].function.arguments, made.function.arguments);
    const next = await openai.chat.completions.create({...call, seed, tool_choice: 'none', max_tokens: 5, messages: [
      ...call.messages, whole.message, {role: 'tool', tool_call_id: made.id, content: 'It is painted.'}]});
    assert.equal(typeof next.choices[0].message.content, 'string');
  }
  const named = await openai.chat.completions.create({...call, tool_choice: {type: 'function', function: {name: 'paint'}}});
  checkPaint(JSON.parse(named.choices[0].message.tool_calls[0].function.arguments));
});

test('the tool runner of openai runs the tool that is called', async () => {
  let painted;
  const tool = {name: 'paint', parameters: paint, parse: JSON.parse, function: (given) => { painted = given; }};
  const runner = openai.chat.completions.runTools(
      {...call, tool_choice: {type: 'function', function: {name: 'paint'}}, tools: [{type: 'function', function: tool}]});
  await runner.done();
  checkPaint(painted);
});

test('openai names the field and the code of an error', async () => {
  await assert.rejects(openai.chat.completions.create({...hello, tool_choice: 'required'}),
                       (error) => error.param === 'tool_choice' && error.code === null);
});

const respond = {model: name, input: 'Hello', max_output_tokens: 12, seed: 4, ignore_eos: true};

test('openai gets a response, and the same one as a stream of numbered events', async () => {
  const whole = await openai.responses.create({...respond, instructions: 'Be brief.'});
  assert.equal(whole.status, 'incomplete');
  assert.equal(whole.incomplete_details.reason, 'max_output_tokens');
  assert.equal(whole.usage.output_tokens, 12);
  let text = '', number = 0;
  for await (const event of await openai.responses.create({...respond, instructions: 'Be brief.', stream: true})) {
    assert.equal(event.sequence_number, number++);
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  assert.equal(text, whole.output_text);
  const helper = openai.responses.stream({...respond, instructions: 'Be brief.'});
  assert.equal((await helper.finalResponse()).output_text, whole.output_text);
});

test('openai gets calls and schemas as responses', async () => {
  const tools = [{type: 'function', name: 'paint', parameters: paint, strict: true}];
  const ask = {...respond, ignore_eos: false, max_output_tokens: 300, tools, tool_choice: 'required',
               parallel_tool_calls: false, temperature: 1.2};
  const whole = await openai.responses.create(ask);
  const made = whole.output.find((item) => item.type === 'function_call');
  checkPaint(JSON.parse(made.arguments));
  const streamed = await openai.responses.stream(ask).finalResponse();
  assert.equal(streamed.output.find((item) => item.type === 'function_call').arguments, made.arguments);
  const next = await openai.responses.create({...respond, tools, tool_choice: 'none', input: [
    {role: 'user', content: 'Paint it.'}, made,
    {type: 'function_call_output', call_id: made.call_id, output: 'It is painted.'}]});
  assert.equal(typeof next.output_text, 'string');
  const format = {type: 'json_schema', name: 'thing', schema: paint, strict: true};
  checkPaint(JSON.parse((await openai.responses.create({...respond, ignore_eos: false, max_output_tokens: 300,
                                                        text: {format}})).output_text));
  await assert.rejects(openai.responses.create({...respond, previous_response_id: 'resp_1'}),
                       (error) => error.param === 'previous_response_id');
});

const message = {model: name, max_tokens: 12, messages: [{role: 'user', content: 'Hello'}], system: 'Be brief.',
                 ignore_eos: true, seed: 4};

test('anthropic gets a message, and the same one as a stream', async () => {
  const whole = await anthropic.messages.create(message);
  assert.equal(whole.stop_reason, 'max_tokens');
  assert.equal(whole.usage.output_tokens, 12);
  const streamed = await anthropic.messages.stream(message).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.deepEqual(streamed.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(streamed.stop_reason, 'max_tokens');
});

test('anthropic gets JSON of a schema, parsed by its helper', async () => {
  const ask = {...message, max_tokens: 100, ignore_eos: false, temperature: 1, output_config: {
    // Its helper would move limits that Anthropic does not know into descriptions.
    format: jsonSchemaOutputFormat(paint, {transform: false})}};
  for (let seed = 0; seed < 4; ++seed) {
    const parsed = await anthropic.messages.parse({...ask, seed});
    assert.equal(parsed.stop_reason, 'end_turn');
    checkPaint(parsed.parsed_output);
    const streamed = await anthropic.messages.stream({...ask, seed}).finalMessage();
    assert.deepEqual(streamed.content.map((block) => block.text), parsed.content.map((block) => block.text));
  }
});

test('anthropic counts the tokens that a message would read', async () => {
  const {max_tokens: ignored, ignore_eos: unused, seed: drawn, ...asked} = message;
  const count = await anthropic.messages.countTokens(asked);
  const {usage} = await anthropic.messages.create(message);
  assert.equal(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

test('anthropic raises what is wrong, by its field', async () => {
  await assert.rejects(anthropic.messages.create({...message, messages: [{role: 'king', content: 'a'}]}),
                       (error) => error instanceof Anthropic.BadRequestError && /messages\[0\]\.role/.test(error.message));
  const stranger = anthropic.withOptions({apiKey: 'wrong'});
  await assert.rejects(stranger.messages.create(message), Anthropic.AuthenticationError);
});

test('anthropic gets calls of tools, whole and as a stream, and sends back what came of them', async () => {
  const ask = {model: name, max_tokens: 300, messages: [{role: 'user', content: 'Paint it.'}], temperature: 1,
               tools: [{name: 'paint', description: 'Paints.', input_schema: paint}],
               tool_choice: {type: 'any', disable_parallel_tool_use: true}};
  for (let seed = 0; seed < 5; ++seed) {
    const whole = await anthropic.messages.create({...ask, seed});
    assert.equal(whole.stop_reason, 'tool_use');
    const made = whole.content.find((block) => block.type === 'tool_use');
    assert.equal(made.name, 'paint');
    checkPaint(made.input);
    const streamed = await anthropic.messages.stream({...ask, seed}).finalMessage();
    assert.equal(streamed.stop_reason, 'tool_use');
    assert.deepEqual(streamed.content.find((block) => block.type === 'tool_use').input, made.input);
    const next = await anthropic.messages.create({...ask, tool_choice: {type: 'none'}, max_tokens: 5, messages: [
      ...ask.messages, {role: 'assistant', content: whole.content},
      {role: 'user', content: [{type: 'tool_result', tool_use_id: made.id, content: 'It is painted.'}]}]});
    assert.equal(next.content[0].type, 'text');
  }
});

test('anthropic goes on with an answer that is begun', async () => {
  const begun = await anthropic.messages.create({...message, messages: [...message.messages,
                                                                        {role: 'assistant', content: 'It is'}]});
  assert.equal(begun.usage.output_tokens, 12);
});
