// Who can use the page: by keys, by a screen reader, on a phone, in dark and light, with a server's key and without. Leaves
// pictures under build/page.
import assert from 'node:assert/strict';
import {after, afterEach, before, test} from 'node:test';
import {answered, ask, checkAccess, closePage, openBench, openPage, setSettings, startServer, takePicture, work} from './serving.mjs';

const kPhone = {width: 360, height: 740};
let bench;
before(async () => bench = await openBench());
afterEach(() => bench.tidy());
after(() => bench.close());

for (const colours of ['dark', 'light']) {
  for (const [name, view] of [['wide', {width: 1440, height: 900}], ['phone', kPhone]]) {
    test(`nothing keeps anybody out: ${colours}, ${name}`, async () => {
      const page = await openPage(bench.browser, bench.address, {view, colorScheme: colours, hasTouch: name === 'phone', isMobile: name === 'phone'});
      await page.locator('#link[data-state=live]').waitFor({state: 'attached'});
      await page.waitForFunction(() => document.querySelectorAll('#memory-stack span').length > 3);
      await checkAccess(page, 'empty');
      await setSettings(page, {'Most tokens': '90', 'Seed': '11'});
      const running = work(bench, 700);
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
  const page = await openPage(bench.browser, bench.address, {colorScheme: 'dark'});
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
  const page = await openPage(bench.browser, bench.address);
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

test('nothing moves for those who want that', async () => {
  const page = await openPage(bench.browser, bench.address, {reducedMotion: 'reduce'});
  await page.locator('#link[data-state=live]').waitFor();
  const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((element) => {
    const style = getComputedStyle(element);
    return [style.animationDuration, style.transitionDuration].some((time) => Number.parseFloat(time) > 0.001);
  }).length);
  assert.equal(moving, 0);
  await closePage(page);
});

test('a server with keys is asked with the one that its reader gives', async () => {
  const keyed = await startServer([], {env: {TROUPE_API_KEY: 'secret'}});
  const page = await openPage(bench.browser, keyed.address, {allowed: /status of 401/});
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

test('who gives no key is left alone until it is needed', async () => {
  const keyed = await startServer([], {env: {TROUPE_API_KEY: 'secret'}});
  const page = await openPage(bench.browser, keyed.address, {allowed: /status of 401/});
  const dialog = page.getByRole('dialog', {name: 'This server asks for a key'});
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('this server asks for a key', {exact: true}).waitFor();
  await page.waitForTimeout(1500);
  assert.equal(await dialog.count(), 0);
  await setSettings(page, {'Most tokens': '4'});
  await ask(page, 'Hello');
  await page.getByLabel('API key').fill('secret');
  await page.keyboard.press('Enter');
  await answered(page);
  await page.locator('#link[data-state=live]').waitFor();
  await closePage(page);
  await keyed.stop();
});
