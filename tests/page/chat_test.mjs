// What the chat sends and what it makes of a stream; events; the map's cells.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Conversation, settingOf, takeChunk} from '../../src/server/page/conversation.mjs';
import {EventReader} from '../../src/server/page/events.mjs';
import {cellAt, describeCell, layerRows, mapGeometry} from '../../src/server/page/expert_map.mjs';
import {reasoningTitle} from '../../src/server/page/reasoning.mjs';

test('events come whole however their bytes are cut', () => {
  const text = ': comment\n\nevent: state\ndata: {"a":1}\n\ndata: one\r\ndata: two\r\n\r\nevent: empty\n\ndata:x\n\ndata: half';
  const expected = [{name: 'state', data: '{"a":1}'}, {name: 'message', data: 'one\ntwo'}, {name: 'message', data: 'x'}];
  for (let size = 1; size <= text.length; ++size) {
    const reader = new EventReader(), events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.take(text.slice(at, at + size)));
    assert.deepEqual(events, expected, `cut every ${size}`);
  }
});

test('a request holds the conversation and the settings that are set', () => {
  const chat = new Conversation();
  chat.say('Hello');
  assert.deepEqual(chat.toRequest(), {messages: [{role: 'user', content: 'Hello'}], stream: true,
                                      stream_options: {include_usage: true}, return_progress: true});
  const request = chat.toRequest({system: 'Be brief.', temperature: 0, tokens: 20, seed: 3});
  assert.deepEqual(request.messages[0], {role: 'system', content: 'Be brief.'});
  assert.equal(request.temperature, 0);
  assert.equal(request.max_tokens, 20);
  assert.equal(request.seed, 3);
});

test('editing and regenerating forget what followed', () => {
  const chat = new Conversation();
  chat.say('a');
  chat.beginAnswer().content = 'b';
  chat.say('c');
  chat.beginAnswer().content = 'd';
  chat.forgetFrom(3);
  assert.deepEqual(chat.messages.map(({content}) => content), ['a', 'b', 'c']);
  chat.resay(0, 'A');
  assert.deepEqual(chat.messages, [{role: 'user', content: 'A'}]);
});

test('answers that failed or are empty are not sent back', () => {
  const chat = new Conversation();
  chat.say('a');
  Object.assign(chat.beginAnswer(), {content: 'half', error: 'lost'});
  chat.say('b');
  chat.beginAnswer();
  assert.deepEqual(chat.toRequest().messages.map(({content}) => content), ['a', 'b']);
});

test('what a tab has kept is taken only if it is a conversation', () => {
  assert.deepEqual(new Conversation([{role: 'user', content: 'a'}, {role: 'system', content: 'x'}, null, {role: 'assistant'}, 5]).messages,
                   [{role: 'user', content: 'a'}]);
});

test('chunks become an answer', () => {
  const answer = {content: ''};
  const chunks = [
    [{choices: [{delta: {role: 'assistant', content: ''}}]}, 'nothing'],
    [{choices: [], prompt_progress: {processed: 5, total: 9}}, 'progress'],
    [{choices: [{delta: {content: 'He'}}]}, 'text'],
    [{choices: [{delta: {content: 'llo'}}]}, 'text'],
    [{choices: [{delta: {}, finish_reason: 'length'}]}, 'end'],
    [{choices: [], usage: {completion_tokens: 2}, troupe: {seed: 1}}, 'end'],
  ];
  for (const [chunk, kind] of chunks) assert.equal(takeChunk(answer, chunk), kind);
  assert.equal(answer.content, 'Hello');
  assert.equal(answer.finish, 'length');
  assert.deepEqual(answer.usage, {completion_tokens: 2});
  assert.deepEqual(answer.progress, {processed: 5, total: 9});
  assert.throws(() => takeChunk(answer, {error: {message: 'broken'}}), /broken/);
});

test('reasoning is taken apart from the answer and never sent back', () => {
  const chat = new Conversation();
  chat.say('Why?');
  const answer = chat.beginAnswer();
  assert.equal(takeChunk(answer, {choices: [{delta: {reasoning_content: 'Let me '}}]}), 'text');
  assert.equal(takeChunk(answer, {choices: [{delta: {reasoning_content: 'see.'}}]}), 'text');
  assert.equal(answer.content, '');
  assert.equal(takeChunk(answer, {choices: [{delta: {content: 'So.'}}]}), 'text');
  assert.equal(answer.reasoning, 'Let me see.');
  assert.equal(answer.content, 'So.');
  chat.say('And?');
  assert.deepEqual(chat.toRequest().messages, [{role: 'user', content: 'Why?'}, {role: 'assistant', content: 'So.'}, {role: 'user', content: 'And?'}]);
});

test('the line above reasoning says how long it took', () => {
  const usage = {completion_tokens_details: {reasoning_tokens: 120}};
  assert.equal(reasoningTitle({content: ''}, true), 'Thinking …');
  assert.equal(reasoningTitle({content: 'So', thought_s: 3.2}, true), 'Thought for 3.20 s');
  assert.equal(reasoningTitle({content: 'So', thought_s: 3.2, usage}, false), 'Thought for 3.20 s · 120 tokens');
  assert.equal(reasoningTitle({content: '', usage: {}}, false), 'Thoughts');
});

test('a setting is a number in its range or the server\'s', () => {
  assert.equal(settingOf('', 0, 5), null);
  assert.equal(settingOf(' ', 0, 5), null);
  assert.equal(settingOf('0', 0, 5), 0);
  assert.equal(settingOf('0.7', 0, 5), 0.7);
  assert.equal(settingOf('7', 0, 5), null);
  assert.equal(settingOf('x', 0, 5), null);
});

const map = {layers: 2, layer_numbers: [1, 3], experts: 3, places: ['012', '322'], heat: ['0f4', '000']};

test('every point of a cell is that cell\'s, and none is outside', () => {
  for (const [width, layers, experts] of [[560, 8, 32], [320, 48, 128], [300, 61, 256], [560, 1, 1]]) {
    const geometry = mapGeometry(width, layers, experts);
    for (const [layer, expert] of [[0, 0], [layers - 1, experts - 1], [layers >> 1, experts >> 1]]) {
      const x = geometry.left + (expert + 0.5) * geometry.cellWidth, y = geometry.top + (layer + 0.5) * geometry.cellHeight;
      assert.deepEqual(cellAt(geometry, x, y, layers, experts), {layer, expert});
    }
    assert.equal(cellAt(geometry, geometry.left - 1, 1, layers, experts), null);
    assert.equal(cellAt(geometry, geometry.left + 1, geometry.height + 1, layers, experts), null);
    assert.equal(cellAt(geometry, geometry.left + 1, 1, layers, experts), null);
    assert.ok(geometry.left + experts * geometry.cellWidth <= width + 0.001 || geometry.cellWidth === 1);
  }
});

test('a cell is described by its place and its heat', () => {
  assert.equal(describeCell(map, {layer: 0, expert: 0}), 'Layer 1, expert 0: on disk, not used lately');
  assert.equal(describeCell(map, {layer: 0, expert: 1}), 'Layer 1, expert 1: loading, chosen by about 100 % of the last tokens');
  assert.equal(describeCell(map, {layer: 0, expert: 2}), 'Layer 1, expert 2: in memory, chosen by about 7.1 % of the last tokens');
  assert.equal(describeCell(map, {layer: 1, expert: 0}), 'Layer 3, expert 0: in memory, in lower precision, not used lately');
});

test('the table counts what the map shows', () => {
  assert.deepEqual(layerRows(map), [
    {layer: 1, memory: 1, loading: 1, hottest: ['1 (100 %)', '2 (7.0 %)']},
    {layer: 3, memory: 3, loading: 0, hottest: []},
  ]);
});
