// The live figures in a browser, before a server that works: they move, rest and come back, and the map is the server's.
// Leaves pictures under build/page.
import assert from 'node:assert/strict';
import {after, afterEach, before, test} from 'node:test';
import {layerRows, mapGeometry} from '../../src/server/page/expert_map.mjs';
import {answered, ask, checkAccess, closePage, openBench, openPage, setSettings, startServer, stateOf, takePicture, work} from './serving.mjs';

let bench;
before(async () => bench = await openBench());
afterEach(() => bench.tidy());
after(() => bench.close());

const number = async (page, id) => Number((await page.locator(id).textContent()).replace(/[^\d.]/g, ''));

// Nothing on the page moves any more for what the server has told first.
async function mapDrawn(page) {
  await page.locator('#map-note', {hasText: 'in memory'}).waitFor();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

// For each of these parts of a cell's height: the colours of the map's cells there, in the middle of their width.
async function coloursOf(page, map, heights) {
  const {width} = await page.locator('#map').boundingBox();
  const {left, top, cellWidth, cellHeight} = mapGeometry(width, map.layers, map.experts);
  const points = heights.map((height) => map.places.map((places, layer) => [...places].map((_, expert) => (
      [left + (expert + 0.45) * cellWidth, top + (layer + height) * cellHeight]))));
  return page.locator('#map').evaluate((canvas, asked) => {
    const scale = canvas.width / canvas.clientWidth;
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return asked.map((rows) => rows.map((layer) => layer.map(([x, y]) => {
      const at = (Math.floor(y * scale) * canvas.width + Math.floor(x * scale)) * 4;
      return [...data.slice(at, at + 4)].join();
    })));
  }, points);
}

test('the page says which model it is and how memory is divided', async () => {
  const {facts} = await stateOf(bench.address);
  const page = await openPage(bench.browser, bench.address);
  await page.locator('#link[data-state=live]').waitFor();
  assert.equal(await page.title(), `${facts.model} – Troupe`);
  assert.equal(await page.locator('#model-name').textContent(), facts.model);
  const parts = await page.locator('#memory-legend .name').allTextContents();
  assert.deepEqual(parts.filter((name) => name !== 'free'), facts.memory.parts.map(({name}) => name));
  const widths = await page.locator('#memory-stack span').evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  const whole = await page.locator('#memory-stack').evaluate((bar) => bar.getBoundingClientRect().width - bar.children.length + 1);
  facts.memory.parts.forEach(({bytes}, i) => assert.ok(Math.abs(widths[i] / whole - bytes / facts.memory.budget) < 0.01));
  await closePage(page);
});

test('figures move while something runs, and rest when nothing does', async () => {
  const page = await openPage(bench.browser, bench.address, {colorScheme: 'dark'});
  await page.locator('#link[data-state=live]').waitFor();
  const running = Promise.all([work(bench, 1500), work(bench, 1500, 2)]);
  const row = page.locator('.request[data-stage=decoding]');
  await row.first().waitFor();
  assert.match(await row.first().textContent(), /tokens? written after/);
  await page.waitForFunction(() => Number(document.getElementById('speed').textContent) > 5);
  const line = await page.locator('#speed-spark .line').getAttribute('d');
  await page.waitForFunction((before) => document.querySelector('#speed-spark .line').getAttribute('d') !== before, line);
  await page.waitForFunction(() => document.querySelectorAll('#time-stack span').length === 4);
  assert.match(await page.locator('#time-note').textContent(), /a token/);
  assert.ok(await number(page, '#hits') > 0 && await number(page, '#hits') <= 100);
  await takePicture(page, 'live-dark');
  await running;
  await page.getByText('None at the moment.').waitFor();
  await page.waitForFunction(() => document.getElementById('speed').textContent === '0');
  assert.ok(await number(page, '#gap') > 0);
  assert.ok(await number(page, '#first-token') > 0);
  await closePage(page);
});

test('the map is what the server says, cell by cell', async () => {
  await work(bench, 40);
  const page = await openPage(bench.browser, bench.address, {reducedMotion: 'reduce'});
  await page.locator('#link[data-state=live]').waitFor();
  let map;
  for (let i = 0; !map || map.places.join('').includes('1'); ++i) {
    assert.ok(i < 100, 'prefetches that never end');
    map = (await stateOf(bench.address)).state.experts;
  }
  const inMemory = map.places.join('').split('2').length - 1;
  assert.ok(inMemory > 80 && inMemory <= 96, `${inMemory} of 96 slots`);
  await page.getByText(`${inMemory} of ${map.layers * map.experts} in memory`).waitFor();
  await page.getByText('As a table').click();
  await page.locator('#map-table tbody tr').nth(map.layers - 1).waitFor();
  const shown = await page.locator('#map-table tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(shown, layerRows(map).map(({layer, memory, loading, hottest}) => (
      [`${layer}`, `${memory} of ${map.experts}`, `${loading}`, hottest.join(', ') || 'none'])));
  // One colour for those on disk, others for those in memory, hotter ones others.
  const [colours] = await coloursOf(page, map, [0.45]);
  const kinds = new Map();
  for (let layer = 0; layer < map.layers; ++layer) {
    for (let expert = 0; expert < map.experts; ++expert) {
      const place = map.places[layer][expert], kind = place === '2' ? `memory ${map.heat[layer][expert]}` : place;
      if (!kinds.has(kind)) kinds.set(kind, colours[layer][expert]);
      assert.equal(colours[layer][expert], kinds.get(kind), `layer ${layer}, expert ${expert}: ${kind}`);
    }
  }
  assert.equal(new Set(kinds.values()).size, kinds.size, 'each kind has a colour of its own');
  assert.ok(kinds.size >= 4);
  await closePage(page);
});

test('each place of an expert has the colour that the legend gives it, loading ones too', async () => {
  const {facts, state} = await stateOf(bench.address);
  const map = {layers: 4, layer_numbers: [0, 1, 2, 3], experts: 8, places: ['00001111', '22222222', '33333333', '01230123'],
               heat: ['00000000', '00000000', 'ffffffff', 'ffffffff']};
  for (const colorScheme of ['dark', 'light']) {
    const page = await openPageOf([['facts', facts], ['state', {...state, experts: map}]], {colorScheme});
    await page.getByText('20 of 32 in memory').waitFor();
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const named = await page.evaluate(() => Object.fromEntries(['map-absent', 'map-load', 'heat-0', 'heat-4'].map((name) => {
      const digits = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim().slice(1);
      return [name, [...[0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)), 255].join()];
    })));
    assert.equal(new Set(Object.values(named)).size, 4);
    const [cold, loading, clear] = [named['map-absent'], named['map-load'], '0,0,0,0'];
    const [above, below] = await coloursOf(page, map, [0.3, 0.7]);
    for (const [rows, low] of [[above, clear], [below, named['heat-4']]]) {
      assert.deepEqual(rows[0], [cold, cold, cold, cold, loading, loading, loading, loading]);
      assert.deepEqual(rows[1], Array(8).fill(named['heat-0']));
      assert.deepEqual(rows[2], Array(8).fill(low));  // of lower precision: the lower half
      const mixed = [cold, loading, named['heat-4'], low];
      assert.deepEqual(rows[3], [...mixed, ...mixed]);
    }
    const legend = await page.locator('#map-legend .key').evaluateAll((keys) => keys.map((key) => [key.className, getComputedStyle(key).backgroundColor]));
    const asText = (colour) => `rgb(${colour.split(',').slice(0, 3).join(', ')})`;
    assert.deepEqual(legend.slice(0, 2), [['key absent', asText(cold)], ['key loading', asText(loading)]]);
    await page.locator('#map-table summary').click();
    assert.equal(await page.locator('#map-table tbody tr').first().locator('td').nth(1).textContent(), '4');
    await takePicture(page, `map-places-${colorScheme}`);
    await closePage(page);
  }
});

// What a page shows of these events in place of the server's own.
async function openPageOf(events, options) {
  const page = await openPage(bench.browser, 'about:blank', options);
  await page.addInitScript((text) => {
    const fetched = window.fetch;
    window.fetch = (path, ...more) => path !== 'live' ? fetched(path, ...more) : Promise.resolve(
        new Response(new ReadableStream({start: (stream) => stream.enqueue(new TextEncoder().encode(text))})));
  }, events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''));
  await page.goto(bench.address);
  return page;
}

test('a card is a row of its own, with its slots and what it did; without one there is none', async () => {
  const {facts, state} = await stateOf(bench.address);
  assert.equal(state.card, null);
  const card = {name: 'RTX 3060', slots: 40, held: 30, bytes: 3 * 2 ** 30, hits: 11, rows: 100, copies: 33, failed: false};
  for (const colorScheme of ['dark', 'light']) {
    const page = await openPageOf([['facts', facts], ['state', {...state, seconds: 100, card}],
                                   ['state', {...state, seconds: 102, card: {...card, rows: 160}}]], {colorScheme});
    await page.getByText('160 rows of experts answered · 30 a second now · 11 asks found the expert there · 33 experts copied in').waitFor();
    assert.equal(await page.locator('#card-note').textContent(), 'RTX 3060 · 3 GiB of its memory');
    assert.deepEqual(await page.locator('#card-legend .value').allTextContents(), ['30 · 75.0 %', '10 · 25.0 %']);
    const widths = await page.locator('#card-stack span').evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    assert.ok(Math.abs(widths[0] / widths[1] - 3) < 0.1, `${widths}`);
    await checkAccess(page, `a card, ${colorScheme}`);
    await takePicture(page, `card-${colorScheme}`);
    await closePage(page);
  }
  const failed = await openPageOf([['facts', facts], ['state', {...state, card: {...card, failed: true}}]]);
  await failed.getByText('it has failed: the processor goes on alone').waitFor();
  await closePage(failed);
  const without = await openPage(bench.browser, bench.address);
  await without.locator('#link[data-state=live]').waitFor();
  await mapDrawn(without);
  assert.ok(await without.locator('#card').isHidden());
  await closePage(without);
});

test('the map can be read by mouse and by keys', async () => {
  const page = await openPage(bench.browser, bench.address);
  await mapDrawn(page);
  const canvas = page.locator('#map'), readout = page.locator('#map-readout');
  await canvas.hover({position: {x: 40, y: 30}});
  await page.waitForFunction(() => document.getElementById('map-readout').textContent.startsWith('Layer '));
  await page.mouse.move(10, 10);
  assert.match(await readout.textContent(), /^Point at an expert/);
  await page.locator('#theme').focus();
  await page.keyboard.press('Tab');
  while (await page.evaluate(() => document.activeElement.id) !== 'map') await page.keyboard.press('Tab');
  assert.match(await readout.textContent(), /^Layer 0, expert 0: /);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  assert.match(await readout.textContent(), /^Layer 1, expert 1: /);
  await page.keyboard.press('End');
  assert.match(await readout.textContent(), /^Layer 1, expert 31: /);
  await page.keyboard.press('ArrowRight');
  assert.match(await readout.textContent(), /^Layer 1, expert 31: /);
  await closePage(page);
});

test('a pointer that rests where the map comes to lie is told of what it points at', async () => {
  const tall = {view: {width: 1440, height: 2400}};
  const earlier = await openPage(bench.browser, bench.address, tall);
  await mapDrawn(earlier);
  const {x, y, width, height} = await earlier.locator('#map').boundingBox();
  await closePage(earlier);
  const page = await openPage(bench.browser, 'about:blank', tall);
  let letTell;
  const mayTell = new Promise((resolve) => letTell = resolve);
  await page.route('**/live', (route) => mayTell.then(() => route.continue()));
  await page.goto(bench.address);
  await page.mouse.move(x + width / 2, y + height / 2);
  letTell();
  await mapDrawn(page);
  await page.locator('#map-readout', {hasText: /^Layer /}).waitFor();
  await closePage(page);
});

test('a model that is in memory as a whole has nothing on disk', async () => {
  const whole = await startServer([], {slots: null});
  const page = await openPage(bench.browser, whole.address);
  await page.getByText('256 of 256 in memory').waitFor();
  assert.equal(await page.locator('#hits-note').textContent(), 'all are in memory');
  await closePage(page);
  await whole.stop();
});

// A page that has just been closed still counts until the server could not write to it.
async function watch(address) {
  for (let tries = 0; tries < 100; ++tries) {
    const stop = new AbortController();
    const {status} = await fetch(`${address}/live`, {signal: stop.signal});
    if (status === 200) return stop;
    assert.equal(status, 429);
    await new Promise((waited) => setTimeout(waited, 100));
  }
  assert.fail('none of those who watched has left in 10 s');
}

test('who comes when too many watch is told so, and the chat works all the same', async () => {
  const watching = await Promise.all(Array.from({length: 16}, () => watch(bench.address)));
  const page = await openPage(bench.browser, bench.address, {allowed: /status of 429/});
  await page.getByText('16 watch already, no more may').waitFor();
  await setSettings(page, {'Most tokens': '6'});
  await ask(page, 'Hello');
  await answered(page);
  watching.forEach((stop) => stop.abort());
  await page.locator('#link[data-state=live]').waitFor({timeout: 15_000});
  await closePage(page);
});

test('a page that nobody can see lets the server rest', async () => {
  const page = await openPage(bench.browser, bench.address);
  await page.locator('#link[data-state=live]').waitFor();
  const ended = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/live'));
  const show = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => value});
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await show(true);
  await ended;
  const begun = page.waitForRequest('**/live');
  await show(false);
  await begun;
  await closePage(page);
});

test('a server that ends and comes again is found again', async () => {
  const first = await startServer();
  const port = new URL(first.address).port;
  const page = await openPage(bench.browser, first.address, {allowed: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY/});
  await page.locator('#link[data-state=live]').waitFor();
  await first.stop();
  await page.locator('#link[data-state=lost]').waitFor();
  const second = await startServer([], {port});
  await page.locator('#link[data-state=live]').waitFor();
  await closePage(page);
  await second.stop();
});
