// The page in a browser, before a server that works: figures move, the map is the server's, the chat does what it should,
// by mouse and by keys, and a checker of accessibility finds nothing. Leaves pictures under build/page.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';
import {layerRows, mapGeometry} from '../../src/server/page/expert_map.mjs';
import {answered, ask, closePage, launchBrowser, openPage, startServer, stateOf, takePicture} from './serving.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const kPhone = {width: 360, height: 740};
let server, browser;

before(async () => {
  server = await startServer(['--ctx', '4096', '--pass-ms', '40', '--memory', '320MiB']);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

// Something that runs meanwhile.
function work(tokens, seed = 1) {
  return fetch(`${server.address}/v1/completions`, {
    method: 'POST', body: JSON.stringify({prompt: 'The kernel module', max_tokens: tokens, ignore_eos: true, seed, temperature: 0.9}),
  }).then((response) => response.json());
}
async function checkAccess(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  assert.deepEqual(found.violations.map(({id, nodes}) => [id, ...nodes.map(({html, failureSummary}) => `${html} ${failureSummary}`)]), [], what);
}
async function setSettings(page, settings) {
  await page.getByRole('button', {name: 'Settings'}).click();
  for (const [name, value] of Object.entries(settings)) await page.getByLabel(name).fill(value);
  await page.getByRole('button', {name: 'Settings'}).click();
}
const number = async (page, id) => Number((await page.locator(id).textContent()).replace(/[^\d.]/g, ''));

test('the page says which model it is and how memory is divided', async () => {
  const {facts} = await stateOf(server.address);
  const page = await openPage(browser, server.address);
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
  const page = await openPage(browser, server.address, {colorScheme: 'dark'});
  await page.locator('#link[data-state=live]').waitFor();
  const running = Promise.all([work(1500), work(1500, 2)]);
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
  await work(40);
  const page = await openPage(browser, server.address, {reducedMotion: 'reduce'});
  await page.locator('#link[data-state=live]').waitFor();
  const {state: {experts: map}} = await stateOf(server.address);
  await page.getByText('As a table').click();
  await page.locator('#map-table tbody tr').nth(map.layers - 1).waitFor();
  const shown = await page.locator('#map-table tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(shown, layerRows(map).map(({layer, memory, loading, hottest}) => (
      [`${layer}`, `${memory} of ${map.experts}`, `${loading}`, hottest.join(', ') || 'none'])));
  const inMemory = map.places.join('').split('2').length - 1;
  assert.equal(inMemory, 96, 'as there are slots');
  assert.equal(await page.locator('#map-note').textContent(), `96 of ${map.layers * map.experts} in memory`);
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
  const page = await openPage(browser, server.address);
  await page.locator('#link[data-state=live]').waitFor();
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

test('the chat streams an answer and says what it cost', async () => {
  const page = await openPage(browser, server.address);
  await setSettings(page, {'Most tokens': '60', 'Temperature': '0.9', 'Seed': '5'});
  const sent = page.waitForRequest('**/v1/chat/completions');
  await ask(page, 'Hello');
  const body = (await sent).postDataJSON();
  assert.deepEqual(body.messages, [{role: 'user', content: 'Hello'}]);
  assert.equal(body.max_tokens, 60);
  assert.equal(body.temperature, 0.9);
  assert.equal(body.seed, 5);
  await answered(page);
  const first = await page.locator('.message.assistant .text').textContent();
  assert.ok(first.length > 0);
  assert.match(await page.locator('.cost').textContent(), /tokens? · [\d.]+ tokens\/s · first token .* hits/);
  await page.getByRole('button', {name: 'Regenerate the answer'}).click();
  await answered(page);
  assert.equal(await page.locator('.message.assistant .text').textContent(), first, 'the same seed gives the same answer');
  await ask(page, 'And more');
  await answered(page, 2);
  await page.reload();
  await page.locator('.message.assistant').nth(1).waitFor();
  assert.equal(await page.locator('.message.assistant .text').first().textContent(), first, 'a tab keeps its chat');
  await page.getByRole('button', {name: 'Edit your message'}).first().click();
  await page.getByRole('textbox', {name: 'Your message'}).fill('Good day');
  const again = page.waitForRequest('**/v1/chat/completions');
  await page.getByRole('button', {name: 'Ask again'}).click();
  assert.deepEqual((await again).postDataJSON().messages, [{role: 'user', content: 'Good day'}]);
  await answered(page);
  await page.getByRole('button', {name: 'New chat'}).click();
  await page.locator('.empty').waitFor();
  assert.equal(await page.locator('.message').count(), 0);
  await closePage(page);
});

test('stopping ends the request at the server', async () => {
  const page = await openPage(browser, server.address);
  await setSettings(page, {'Most tokens': '3000', 'Temperature': '1.2'});
  for (const stop of [() => page.getByRole('button', {name: 'Stop'}).click(), () => page.keyboard.press('Escape')]) {
    const before = (await stateOf(server.address)).state.sums.requests_cancelled;
    await ask(page, 'Tell me a long story');
    await page.locator('.message.assistant[aria-busy=true] .text:not(:empty)').waitFor();
    await stop();
    await page.getByText('stopped').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'composer-text');
    for (let i = 0; (await stateOf(server.address)).state.sums.requests_cancelled === before; ++i) assert.ok(i < 50, 'it was not cancelled');
    await page.getByRole('button', {name: 'New chat'}).click();
  }
  await closePage(page);
});

test('a long prompt shows how far it is read', async () => {
  const page = await openPage(browser, server.address);
  await setSettings(page, {'Most tokens': '8'});
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => {
      const reading = document.querySelector('.reading'), row = document.querySelector('.request[data-stage=reading] .stage');
      if (reading) window.seen.push(reading.textContent);
      if (row) window.seen.push(row.textContent);
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
  });
  await ask(page, 'the package of the system and its files '.repeat(240));
  await answered(page);
  const seen = await page.evaluate(() => [...new Set(window.seen)]);
  const read = seen.map((text) => text.match(/^Reading ([\d,]+) of ([\d,]+) tokens$/)).filter(Boolean).map(([, at]) => Number(at.replace(',', '')));
  assert.ok(read.length >= 2, `${seen}`);
  assert.deepEqual(read, read.toSorted((a, b) => a - b));
  await closePage(page);
});

// A server that says what a test wants.
async function answerWith(page, text) {
  const chunk = (fields) => `data: ${JSON.stringify(fields)}\n\n`;
  await page.route('**/v1/chat/completions', (route) => route.fulfill({
    contentType: 'text/event-stream',
    body: [...text].map((character) => chunk({choices: [{delta: {content: character}}]})).join('') +
        chunk({choices: [{delta: {}, finish_reason: 'stop'}]}) + 'data: [DONE]\n\n',
  }));
}

test('what a model writes is shown as Markdown and never as HTML', async () => {
  const page = await openPage(browser, server.address, {colorScheme: 'dark'});
  await answerWith(page, [
    '# A heading', 'Some *emphasis*, **strong words**, `code` and a [link](https://example.org/a?b=1).', '',
    '- one', '- two', '  1. nested', '', '| left | right |', '|:--|--:|', '| 1 | 2 |', '', '> quoted', '',
    '```python', 'def f(x):', '    return "<b>" + x', '```', '',
    '<script>window.hurt = 1</script><img src=x onerror="window.hurt=1">', '[bad](javascript:window.hurt=1) ![x](data:text/html,x) <b>not bold</b>',
  ].join('\n'));
  await ask(page, 'Show me');
  await answered(page);
  const text = page.locator('.message.assistant .text');
  const shape = await text.evaluate((element) => [...element.children].map((child) => child.firstElementChild?.tagName === 'TABLE' ? 'TABLE' : child.tagName));
  assert.deepEqual(shape, ['H3', 'P', 'UL', 'TABLE', 'BLOCKQUOTE', 'DIV', 'P']);
  assert.equal(await text.locator('script, img, b, iframe, [onerror], [style*=url]').count(), 0);
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  const links = await text.locator('a').evaluateAll((all) => all.map(({href, rel, target}) => ({href, rel, target})));
  assert.deepEqual(links, [{href: 'https://example.org/a?b=1', rel: 'noopener noreferrer nofollow', target: '_blank'}]);
  assert.equal(await text.locator('pre').textContent(), 'def f(x):\n    return "<b>" + x');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', {name: 'Copy the code'}).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'def f(x):\n    return "<b>" + x');
  await checkAccess(page, 'Markdown');
  await takePicture(page, 'markdown-dark');
  await closePage(page);
});

test('an answer that fails says why, and can be asked for again', async () => {
  const page = await openPage(browser, server.address, {allowed: /status of 503/});
  await page.route('**/v1/chat/completions', (route) => route.fulfill(
      {status: 503, contentType: 'application/json', headers: {'Retry-After': '1'}, body: '{"error":{"message":"the queue is full"}}'}));
  await ask(page, 'Hello');
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByRole('alert').textContent(), 'the queue is full');
  await page.unroute('**/v1/chat/completions');
  await setSettings(page, {'Most tokens': '8'});
  await page.getByRole('button', {name: 'Ask for the answer again'}).click();
  await answered(page);
  assert.equal(await page.getByRole('alert').count(), 0);
  await closePage(page);
});

test('a server with keys is asked with the one that its reader gives', async () => {
  const keyed = await startServer([], {env: {TROUPE_API_KEY: 'secret'}});
  const page = await openPage(browser, keyed.address, {allowed: /status of 401/});
  const dialog = page.getByRole('dialog', {name: 'This server asks for a key'});
  await dialog.waitFor();
  await checkAccess(page, 'asking for a key');
  await page.getByLabel('API key').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('does not know that key').waitFor();
  await page.getByLabel('API key').fill('secret');
  await page.getByRole('button', {name: 'Go on'}).click();
  await page.locator('#link[data-state=live]').waitFor();
  await page.reload();
  await page.locator('#link[data-state=live]').waitFor();
  assert.equal(await dialog.count(), 0, 'it is kept for the tab');
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage)), '{}', 'and no longer');
  await closePage(page);
  await keyed.stop();
});

test('a page that nobody can see lets the server rest', async () => {
  const page = await openPage(browser, server.address);
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
  const page = await openPage(browser, first.address, {allowed: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY/});
  await page.locator('#link[data-state=live]').waitFor();
  await first.stop();
  await page.locator('#link[data-state=lost]').waitFor();
  const second = await startServer([], {port});
  await page.locator('#link[data-state=live]').waitFor();
  await closePage(page);
  await second.stop();
});

for (const colours of ['dark', 'light']) {
  for (const [name, view] of [['wide', {width: 1440, height: 900}], ['phone', kPhone]]) {
    test(`nothing keeps anybody out: ${colours}, ${name}`, async () => {
      const page = await openPage(browser, server.address, {view, colorScheme: colours, hasTouch: name === 'phone', isMobile: name === 'phone'});
      await page.locator('#link[data-state=live]').waitFor({state: 'attached'});
      await page.waitForFunction(() => document.querySelectorAll('#memory-stack span').length > 3);
      await checkAccess(page, 'empty');
      await setSettings(page, {'Most tokens': '90', 'Seed': '11'});
      const running = work(700);
      await ask(page, 'What does the package do?');
      await answered(page);
      await takePicture(page, `chat-${colours}-${name}`);
      await page.getByRole('button', {name: 'Settings'}).click();
      await checkAccess(page, 'chat and settings');
      await page.getByRole('button', {name: 'Settings'}).click();
      if (name === 'phone') {
        await page.getByRole('button', {name: 'Live'}).click();
        await page.locator('#map').waitFor();
      }
      await page.getByText('As a table').click();
      await checkAccess(page, 'live');
      await page.getByText('As a table').click();
      await page.locator('#live').evaluate((live) => live.scrollTop = 0);
      await takePicture(page, `live-${colours}-${name}`);
      for (const width of name === 'phone' ? [360, 320] : [1440, 1100, 1024, 1000, 820, 640]) {
        await page.setViewportSize({width, height: 700});
        const beyond = await page.evaluate(() => [document.documentElement, document.getElementById('live'), document.getElementById('messages')]
            .map((element) => element.scrollWidth - element.clientWidth));
        assert.deepEqual(beyond, [0, 0, 0], `pixels beyond a screen of ${width}`);
        const right = await page.locator('#theme').evaluate((button) => button.getBoundingClientRect().right);
        assert.ok(right <= width, `the bar ends at ${right} of ${width}`);
      }
      await running;
      await closePage(page);
    });
  }
}

test('the reader may choose the colours', async () => {
  const page = await openPage(browser, server.address, {colorScheme: 'dark'});
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await page.getByRole('button', {name: 'Colours: as the system'}).click();
  await page.getByRole('button', {name: 'Colours: dark'}).click();
  assert.notEqual(await background(), dark);
  await page.reload();
  assert.notEqual(await background(), dark, 'and it is kept');
  await page.getByRole('button', {name: 'Colours: light'}).click();
  assert.equal(await background(), dark);
  await closePage(page);
});

test('everything can be done without a mouse', async () => {
  const page = await openPage(browser, server.address);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'composer-text');
  await page.keyboard.type('Hello');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('there');
  assert.equal(await page.locator('#composer-text').inputValue(), 'Hello\nthere');
  const reached = new Set();
  await page.locator('#theme').focus();
  for (let i = 0; i < 20; ++i) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim()));
    const outlined = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement), around = getComputedStyle(document.activeElement.parentElement);
      return document.activeElement === document.body || style.outlineStyle !== 'none' || around.borderColor !== getComputedStyle(document.body).borderColor;
    });
    assert.ok(outlined, 'focus is to be seen');
  }
  for (const id of ['settings-open', 'chat-new', 'messages', 'composer-text', 'send', 'map', 'As a table']) assert.ok(reached.has(id), `${id} of ${[...reached]}`);
  await closePage(page);
});
