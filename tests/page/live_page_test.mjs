// The live figures in a browser, before a server that works: they move, rest and come back, and the map is the server's.
// Leaves pictures under build/page.
import assert from 'node:assert/strict';
import {after, afterEach, before, test} from 'node:test';
import {layerRows, mapGeometry} from '../../src/server/page/expert_map.mjs';
import {answered, ask, closePage, openBench, openPage, setSettings, startServer, stateOf, takePicture, work} from './serving.mjs';

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
  // The colour in the middle of each cell: one for those on disk, others for those in memory, hotter ones others.
  const {width} = await page.locator('#map').boundingBox();
  const {left, top, cellWidth, cellHeight} = mapGeometry(width, map.layers, map.experts);
  const middles = map.places.map((places, layer) => [...places].map((_, expert) => (
      [left + (expert + 0.45) * cellWidth, top + (layer + 0.45) * cellHeight])));
  const colours = await page.locator('#map').evaluate((canvas, points) => {
    const scale = canvas.width / canvas.clientWidth;
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return points.map((layer) => layer.map(([x, y]) => {
      const at = (Math.floor(y * scale) * canvas.width + Math.floor(x * scale)) * 4;
      return data.slice(at, at + 4).join();
    }));
  }, middles);
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

test('who comes when too many watch is told so, and the chat works all the same', async () => {
  const watching = await Promise.all(Array.from({length: 16}, () => {
    const stop = new AbortController();
    return fetch(`${bench.address}/live`, {signal: stop.signal}).then((response) => ({response, stop}));
  }));
  assert.deepEqual([...new Set(watching.map(({response}) => response.status))], [200]);
  const page = await openPage(bench.browser, bench.address, {allowed: /status of 429/});
  await page.getByText('16 watch already, no more may').waitFor();
  await setSettings(page, {'Most tokens': '6'});
  await ask(page, 'Hello');
  await answered(page);
  watching.forEach(({stop}) => stop.abort());
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
