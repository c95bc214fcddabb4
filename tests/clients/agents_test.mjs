// Whole talks as Codex and Claude Code have them with a server, over HTTP: every field that they send, the history that
// they send again with each turn, and what they make of the events of a stream. Their own programs do not run here: what
// they send and read is written from their sources (Codex: codex-rs/codex-api) and from what was seen on the wire.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {serve, tinyThatSpeaksAs} from './server.mjs';

let server, speaker;
before(async () => {
  speaker = tinyThatSpeaksAs('Qwen-Qwen3-0.6B.jinja', '<|im_start|>', '<|im_end|>', '<think>', '</think>', '<tool_call>',
                             '</tool_call>');
  server = await serve(speaker.model, '--parallel', '2', '--ctx', '4096');
});
after(() => {
  server.stop();
  speaker.remove();
});

async function post(path, headers, body) {
  return fetch(server.address + path, {method: 'POST', headers: {'content-type': 'application/json', ...headers},
                                       body: JSON.stringify(body)});
}

// The events of a stream; every one must have the name that its data have, and nothing may follow the last.
async function eventsOf(response) {
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const events = [];
  for (const part of (await response.text()).split('\n\n')) {
    if (part === '' || part.startsWith(':')) continue;
    const [, name, data] = part.match(/^event: (.*)\ndata: (.*)$/);
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    events.push(event);
  }
  return events;
}

const seeding = {seed: 7, temperature: 1};  // the one thing that neither sends: so that a failure comes again

// ---- Codex

const codexHeaders = {authorization: 'Bearer secret', accept: 'text/event-stream', originator: 'codex_cli_rs',
                      session_id: '0199', 'user-agent': 'codex_cli_rs/0.154.0 (Debian 12; x86_64)'};
const shell = {type: 'object', properties: {command: {type: 'string', enum: ['ls', 'cat a.txt']}, timeout_ms: {type: 'number'}},
               required: ['command'], additionalProperties: false};
function said(role, ...content) {
  return {type: 'message', role, content: content.map((part) => typeof part === 'string' ? {type: 'input_text', text: part} : part)};
}
const codexTurn = (input, more) => ({
  model: 'big', instructions: `You are a coding agent. ${'Be precise, safe and helpful. '.repeat(30)}`, input,
  tools: [{type: 'function', name: 'shell', description: 'Runs a command.', strict: false, parameters: shell},
          {type: 'function', name: 'update_plan', description: 'Plans.', strict: false,
           parameters: {type: 'object', properties: {plan: {type: 'array', items: {type: 'string'}}}, required: ['plan'],
                        additionalProperties: false}},
          {type: 'custom', name: 'apply_patch', description: 'Edits.', format: {type: 'grammar', syntax: 'lark', definition: 'start: "a"'}},
          {type: 'web_search', external_web_access: true}, {type: 'image_generation', output_format: 'png'},
          {type: 'namespace', name: 'mcp__docs', tools: []}, {type: 'tool_search'}, {type: 'computer'}],
  tool_choice: 'auto', parallel_tool_calls: false, reasoning: {effort: 'medium', summary: 'auto'}, store: false, stream: true,
  include: ['reasoning.encrypted_content'], prompt_cache_key: '0199', text: {verbosity: 'medium'},
  client_metadata: {'x-codex-installation-id': '1'}, ...seeding, ...more});

// What Codex makes of a stream: it takes whole items from output_item.done, needs created and completed, and tries a turn
// again after any other end.
function readAsCodex(events) {
  const turn = {items: [], deltas: '', added: 0};
  assert.equal(events[0].type, 'response.created');
  events.forEach((event, number) => {
    assert.equal(event.sequence_number, number);
    assert.equal(turn.completed ?? turn.failed, undefined, 'nothing follows the end');
    const {item} = event;
    switch (event.type) {
      case 'response.output_item.added': ++turn.added; break;
      case 'response.output_text.delta':
      case 'response.reasoning_text.delta':
        assert.equal(typeof event.delta, 'string');
        assert.equal(event.content_index, 0);
        assert.equal(turn.added, turn.items.length + 1, 'text comes within an item');
        turn.deltas += event.delta;
        break;
      case 'response.output_item.done':
        if (item.type === 'message') {
          assert.equal(item.role, 'assistant');
          item.content.forEach((part) => assert.deepEqual([part.type, typeof part.text], ['output_text', 'string']));
        } else if (item.type === 'reasoning') {
          assert.deepEqual(item.summary, []);
          item.content.forEach((part) => assert.equal(part.type, 'reasoning_text'));
        } else {
          assert.equal(item.type, 'function_call');
          for (const field of ['name', 'arguments', 'call_id']) assert.equal(typeof item[field], 'string');
        }
        turn.items.push(item);
        break;
      case 'response.completed': turn.completed = event.response; break;
      case 'response.failed': turn.failed = event.response; break;
      case 'response.incomplete': assert.fail('Codex tries again after it');
    }
  });
  const texts = turn.items.flatMap((item) => item.type === 'function_call' ? [] : item.content.map((part) => part.text));
  assert.equal(turn.deltas, texts.join(''));
  if (turn.completed) {
    const {id, usage} = turn.completed;
    assert.equal(typeof id, 'string');
    for (const count of [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens,
                         usage.output_tokens_details.reasoning_tokens, usage.total_tokens]) assert.ok(Number.isInteger(count));
  }
  return turn;
}
async function codex(input, more) {
  const response = await post('/v1/responses', codexHeaders, codexTurn(input, more));
  assert.equal(response.status, 200, await response.clone().text());
  return readAsCodex(await eventsOf(response));
}

test('Codex asks which models there are before its first turn', async () => {
  const response = await fetch(`${server.address}/v1/models?client_version=0.154.0`, {headers: codexHeaders});
  assert.deepEqual((await response.json()).models, []);
});

test('a talk of several turns goes as Codex sends it', async () => {
  const talk = [said('developer', '<permissions instructions>Ask first.</permissions instructions>'),
                said('user', '<environment_context><cwd>/src</cwd></environment_context>'), said('user', 'List the files.')];
  // The small model calls nothing by itself: the first turn makes it.
  const first = await codex(talk, {tool_choice: 'required'});
  const call = first.items.at(-1);
  assert.equal(call.type, 'function_call');
  assert.ok(['shell', 'update_plan'].includes(call.name));
  assert.equal(typeof JSON.parse(call.arguments), 'object');

  talk.push(...first.items, {type: 'function_call_output', call_id: call.call_id, output: 'a.txt\nb.png'});
  const second = await codex(talk, {text: {verbosity: 'low', format: {
    type: 'json_schema', strict: true, name: 'codex_output_schema',
    schema: {type: 'object', properties: {done: {type: 'boolean'}}, required: ['done'], additionalProperties: false}}}});
  assert.ok(second.completed);
  const {usage} = second.completed;
  // All of the first turn's prompt was read before; the last token is read again.
  assert.ok(usage.input_tokens_details.cached_tokens >= first.completed.usage.input_tokens - 8, JSON.stringify(usage));
  assert.equal(usage.input_tokens_details.cached_tokens, second.completed.troupe.shared_prefix_tokens);

  // What a talk holds that was begun with OpenAI's models, or in which the user showed a picture.
  talk.push(...second.items,
            said('user', 'See this, and search.', {type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo='}),
            {type: 'reasoning', summary: [{type: 'summary_text', text: 'Searching.'}], encrypted_content: 'gAAAA'},
            {type: 'web_search_call', status: 'completed', action: {type: 'search', query: 'a'}},
            {type: 'custom_tool_call', status: 'completed', call_id: 'c8', name: 'apply_patch', input: '*** Begin Patch\n*** End Patch'},
            {type: 'custom_tool_call_output', call_id: 'c8', output: 'Done.'},
            {type: 'local_shell_call', call_id: 'c9', status: 'completed', action: {type: 'exec', command: ['ls']}},
            {type: 'function_call_output', call_id: 'c9', output: [{type: 'input_text', text: 'a.txt'},
                                                                  {type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo='}]});
  const third = await codex(talk, {tool_choice: 'required'});
  assert.equal(third.items.at(-1).type, 'function_call');
});

test('Codex learns in the stream that the context is full', async () => {
  const {failed, items} = await codex([said('user', 'a b c d e f g h '.repeat(2000))]);
  assert.equal(failed.error.code, 'context_length_exceeded');
  assert.deepEqual(items, []);
  // Here an answer fills it: Codex would ask for it again, were it merely incomplete.
  const {items: written, failed: full} = await codex([said('user', 'Go on.')], {tool_choice: 'none', ignore_eos: true,
                                                                               instructions: 'Be long.'});
  assert.equal(full.error.code, 'context_length_exceeded');
  assert.ok(written.length > 0);
});

test('Codex is told at once what it cannot have', async () => {
  const response = await post('/v1/responses', codexHeaders, codexTurn([said('user', 'Hi')], {previous_response_id: 'resp_1'}));
  assert.equal(response.status, 400);
  assert.equal((await response.json()).error.param, 'previous_response_id');
});

// ---- Claude Code

const claudeHeaders = {'x-api-key': 'secret', 'anthropic-version': '2023-06-01', 'x-app': 'cli',
                       'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
                       'user-agent': 'claude-cli/2.1.100 (external, cli)'};
const cached = {cache_control: {type: 'ephemeral'}};
const claudeTurn = (messages, billing, more) => ({
  model: 'claude-opus-4-6', max_tokens: 32000, stream: true, messages,
  system: [{type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.100.abc; cc_entrypoint=cli; cch=${billing};`},
           {type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude.", ...cached},
           {type: 'text', text: `\nYou help users with their code. ${'Be concise and direct. '.repeat(30)}`, ...cached}],
  tools: [{name: 'Read', description: 'Reads a file.', input_schema: {
             $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object',
             properties: {file_path: {type: 'string', enum: ['/src/a.txt', '/src/b.png']}}, required: ['file_path'],
             additionalProperties: false}},
          {name: 'Ask', description: 'Asks the user.', input_schema: {
             type: 'object', properties: {yes: {type: 'boolean'}}, required: ['yes'], additionalProperties: false}}],
  metadata: {user_id: 'user_1_account__session_2'}, thinking: {type: 'adaptive'}, output_config: {effort: 'medium'},
  context_management: {edits: [{type: 'clear_thinking_20251015', keep: 'all'}]}, ...seeding, ...more});

// The order that Claude Code relies on: a message that starts and stops, blocks one after the other in between.
function readAsClaude(events) {
  assert.equal(events[0].type, 'message_start');
  assert.equal(events.at(-1).type, 'message_stop');
  assert.equal(events.at(-2).type, 'message_delta');
  const {message} = events[0];
  assert.deepEqual(message.content, []);
  let open = null;
  for (const event of events.slice(1, -2)) {
    if (event.type === 'ping') continue;
    if (event.type === 'content_block_start') {
      assert.equal(open, null, 'one block at a time');
      assert.equal(event.index, message.content.length);
      open = event.content_block;
      if (open.type === 'tool_use') {
        assert.deepEqual(open.input, {});
        open.json = '';
      }
      message.content.push(open);
      continue;
    }
    assert.equal(event.index, message.content.length - 1);
    if (event.type === 'content_block_stop') {
      if (open.type === 'tool_use') open.input = JSON.parse(open.json);
      delete open.json;
      open = null;
      continue;
    }
    assert.equal(event.type, 'content_block_delta');
    const {delta} = event;
    const [kind, field] = {text: ['text_delta', 'text'], thinking: ['thinking_delta', 'thinking'],
                           tool_use: ['input_json_delta', 'partial_json']}[open.type];
    assert.equal(delta.type, kind);
    open[open.type === 'tool_use' ? 'json' : field] += delta[field];
  }
  assert.equal(open, null, 'every block is closed');
  return {...message, ...events.at(-2).delta, usage: {...message.usage, ...events.at(-2).usage}, troupe: events.at(-2).troupe};
}
async function claude(messages, billing, more) {
  const response = await post('/v1/messages?beta=true', claudeHeaders, claudeTurn(messages, billing, more));
  assert.equal(response.status, 200, await response.clone().text());
  return readAsClaude(await eventsOf(response));
}

test('a talk of several turns goes as Claude Code sends it, and is not read again', async () => {
  const messages = [{role: 'user', content: [{type: 'text', text: '<system-reminder>Today is a day.</system-reminder>'},
                                             {type: 'text', text: 'What is in a.txt?', ...cached}]}];
  // The small model would think to the end of its context, and calls nothing by itself.
  const thinking = {type: 'enabled', budget_tokens: 40};
  const first = await claude(messages, 'a81f3', {tool_choice: {type: 'any', disable_parallel_tool_use: true}, thinking});
  assert.equal(first.stop_reason, 'tool_use');
  const uses = first.content.filter((block) => block.type === 'tool_use');
  assert.ok(uses.length > 0 && uses.every((use) => ['Read', 'Ask'].includes(use.name)));

  messages.push({role: 'assistant', content: first.content},
                {role: 'user', content: uses.map((use) => ({type: 'tool_result', tool_use_id: use.id, content: [
                   {type: 'text', text: '1: hello'},
                   {type: 'image', source: {type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo='}}], ...cached}))},
                // Claude Code counts down its tokens after the results of tools.
                {role: 'system', content: [{type: 'text', text: 'Token usage: 1000/200000; 199000 remaining'}]});
  const second = await claude(messages, '00c27', {max_tokens: 90, thinking});
  const read = first.usage.input_tokens + first.usage.cache_read_input_tokens;
  // The block that says who pays is another one, and yet all of the first turn is found.
  assert.ok(second.usage.cache_read_input_tokens >= read - 8, JSON.stringify([first.usage, second.usage]));
  assert.equal(second.usage.cache_read_input_tokens, second.troupe.shared_prefix_tokens);
  assert.ok(['end_turn', 'max_tokens'].includes(second.stop_reason));

  const count = await post('/v1/messages/count_tokens?beta=true', claudeHeaders, (({model, messages, system, tools, thinking}) =>
    ({model, messages, system, tools, thinking}))(claudeTurn(messages, '99999')));
  const again = await claude(messages, '12345', {max_tokens: 1, output_config: undefined});
  assert.equal((await count.json()).input_tokens, again.usage.input_tokens + again.usage.cache_read_input_tokens);
});

test('Claude Code tries its quota by a message of one token', async () => {
  const response = await post('/v1/messages?beta=true', claudeHeaders, {
    model: 'claude-haiku', max_tokens: 1, messages: [{role: 'user', content: 'quota'}], metadata: {user_id: 'u'}});
  assert.equal((await response.json()).usage.output_tokens, 1);
});

test('Claude Code learns that its talk is too long, and how long it may be', async () => {
  const talk = [{role: 'user', content: 'a b c d e f g h '.repeat(2000)}];
  const count = await post('/v1/messages/count_tokens', claudeHeaders, {model: 'm', messages: talk});
  const response = await post('/v1/messages?beta=true', claudeHeaders, {model: 'm', max_tokens: 100, stream: true, messages: talk});
  assert.equal(response.status, 400);
  const {error} = await response.json();
  assert.equal(error.type, 'invalid_request_error');
  const [, has, most] = error.message.match(/prompt is too long:?\s*(\d+)\s*tokens?\s*>\s*(\d+)\s*maximum/i);
  assert.deepEqual([Number(has), most], [(await count.json()).input_tokens, '4096']);
});

test('Claude Code is told which tool this server does not have', async () => {
  const response = await post('/v1/messages?beta=true', claudeHeaders, claudeTurn(
    [{role: 'user', content: 'Search.'}], '1', {tools: [{type: 'web_search_20250305', name: 'web_search', max_uses: 8}]}));
  assert.equal(response.status, 400);
  const {type, error} = await response.json();
  assert.deepEqual([type, error.type], ['error', 'invalid_request_error']);
  assert.match(error.message, /tools\[0\]\.type: "web_search_20250305"/);
});
