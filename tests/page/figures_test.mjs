// Figures as the page writes them, and rates from the server's sums.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {bytesText, costText, countText, percentText, shortNumber, timeText} from '../../src/server/page/format.mjs';
import {History, timeSplit} from '../../src/server/page/rates.mjs';
import {linePath} from '../../src/server/page/charts.mjs';
import {answersText, slotParts} from '../../src/server/page/card.mjs';

test('numbers have three digits at most', () => {
  assert.deepEqual([0, 0.5, 1.234, 12.34, 99.94, 99.96, 123.4, 12345].map(shortNumber), ['0', '0.5', '1.23', '12.3', '99.9', '100', '123', '12,345']);
  assert.equal(shortNumber(NaN), '–');
  assert.equal(shortNumber(2), '2');
});

test('times have the unit that people would say', () => {
  assert.deepEqual([0.00042, 0.0123, 0.0994, 0.0996, 1.5, 9.99, 12.34, 125, 7200].map(timeText),
                   ['0.42 ms', '12.3 ms', '99.4 ms', '0.10 s', '1.50 s', '9.99 s', '12.3 s', '2 min', '2 h']);
});

test('bytes are counted in powers of 1024', () => {
  assert.deepEqual([0, 1000, 1024, 1536, 5 << 20, 3.25 * 2 ** 30].map(bytesText), ['0 bytes', '1000 bytes', '1 KiB', '1.5 KiB', '5 MiB', '3.25 GiB']);
});

test('100 % means all and 0 % none', () => {
  assert.deepEqual([0, 0.0001, 0.5, 0.8765, 0.99999, 1].map(percentText), ['0 %', '0.1 %', '50.0 %', '87.6 %', '99.9 %', '100 %']);
  assert.equal(percentText(0 / 0), '–');
});

test('counts have their plural', () => {
  assert.equal(countText(1, 'token'), '1 token');
  assert.equal(countText(1200, 'token'), '1,200 tokens');
});

test('the cost of an answer is a line of what is known', () => {
  const troupe = {queue_s: 0.1, first_token_s: 0.25, decode_s: 2, expert_hits: 75, expert_misses: 25, bytes_read: 3 << 20, stall_s: 0.5, substitutions: 0};
  assert.equal(costText({completion_tokens: 41}, troupe), '41 tokens · 20 tokens/s · first token 0.35 s · 75.0 % hits · 3 MiB read · waited 0.50 s');
  assert.equal(costText({completion_tokens: 1}, {...troupe, expert_hits: 0, expert_misses: 0, bytes_read: 0, stall_s: 0}), '1 token · first token 0.35 s');
  assert.equal(costText(undefined, undefined), '');
});

function state(seconds, sums, requests = 0) {
  const zero = {passes: 0, pass_seconds: 0, prompt_tokens: 0, generated_tokens: 0, hits: 0, misses: 0, bytes_read: 0, reading_seconds: 0, stall_seconds: 0, deciding_seconds: 0};
  return {seconds, sums: {...zero, ...sums}, requests_now: {waiting: 0, reading: 0, decoding: requests}};
}

test('a rate is the growth of a sum over the last seconds', () => {
  const history = new History();
  assert.equal(history.rate('generated_tokens', 2), 0);
  for (let i = 0; i <= 40; ++i) history.add(state(100 + i * 0.25, {generated_tokens: i < 20 ? 0 : (i - 20) * 5}));
  assert.equal(history.rate('generated_tokens', 2), 20);
  assert.equal(history.rate('generated_tokens', 10), 10);
  history.add(state(200, {generated_tokens: 100}));
  assert.equal(history.rate('generated_tokens', 2), 0, 'after a pause the state before it is the one to compare with');
});

test('a server that was started anew counts from nothing', () => {
  const history = new History();
  history.add(state(100, {passes: 50, generated_tokens: 70}));
  history.add(state(101, {passes: 2, generated_tokens: 3}));
  assert.equal(history.rate('generated_tokens', 2), 0);
  history.add(state(102, {passes: 3, generated_tokens: 10}));
  assert.equal(history.rate('generated_tokens', 2), 7);
});

test('the split of time counts only when something ran', () => {
  const history = new History();
  history.add(state(0, {}, 1));
  assert.equal(history.work(10), null);
  const sums = {passes: 4, pass_seconds: 0.9, stall_seconds: 0.3, deciding_seconds: 0.1, generated_tokens: 4};
  history.add(state(1, sums, 1));
  history.add(state(30, sums));
  const work = history.work(10);
  assert.equal(work.seconds, 1);
  assert.equal(work.tokens, 4);
  const split = timeSplit(work).map(({seconds}) => Math.round(seconds * 1000));
  assert.deepEqual(split, [500, 300, 100, 100]);
});

test('rest before a request is not time between passes', () => {
  const history = new History();
  history.add(state(0, {}));
  history.add(state(10, {passes: 2, pass_seconds: 0.5, generated_tokens: 2}, 1));
  assert.equal(history.work(10).seconds, 0.5);
  assert.equal(timeSplit(history.work(10)).at(-1).seconds, 0);
});

test('who has just come is told of the time since the start', () => {
  const history = new History();
  assert.equal(history.workSinceStart(), null);
  history.add(state(50, {passes: 10, pass_seconds: 2, stall_seconds: 0.5, generated_tokens: 8, prompt_tokens: 2}));
  const work = history.workSinceStart();
  assert.equal(work.tokens, 10);
  assert.deepEqual(timeSplit(work).map(({seconds}) => seconds), [1.5, 0.5, 0, 0]);
});

test('the course of a rate reaches as far back as it is shown', () => {
  const history = new History();
  for (let i = 0; i <= 400; ++i) history.add(state(i * 0.25, {generated_tokens: i}));
  const course = history.course('generated_tokens', 1, 60);
  assert.equal(course.at(-1).ago, 0);
  assert.ok(course[0].ago <= 60 && course[0].ago > 59);
  for (const {rate} of course) assert.equal(rate, 4);
});

test('a line goes from its oldest point to the right edge', () => {
  assert.equal(linePath([{ago: 60, rate: 0}, {ago: 30, rate: 5}, {ago: 0, rate: 10}], 60, 10, 240, 48), 'M0.0 48.0L120.0 25.0L240.0 2.0');
  assert.equal(linePath([], 60, 10, 240, 48), '');
});

test('slots of a card are shown by whether they hold an expert', () => {
  assert.deepEqual(slotParts({slots: 40, held: 30}).map(({name, size, text}) => [name, size, text]),
                   [['hold an expert', 30, '30 · 75.0 %'], ['free', 10, '10 · 25.0 %']]);
  assert.deepEqual(slotParts({slots: 0, held: 0}).map(({text}) => text), ['0 · 0 %', '0 · 0 %']);
});

test('what a card did is a line that says when it has failed', () => {
  const card = {rows: 1200, hits: 1, copies: 33, failed: false};
  assert.equal(answersText(card, 0), '1,200 rows of experts answered · 1 ask found the expert there · 33 experts copied in');
  assert.equal(answersText(card, 12.34), '1,200 rows of experts answered · 12.3 a second now · 1 ask found the expert there · 33 experts copied in');
  assert.match(answersText({...card, failed: true}, 0), / · it has failed: the processor goes on alone, with the same answers$/);
});
