// A server of a model that comes with the project, and a browser to look at its page. Whatever a test opens is closed at
// its end.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';
import {EventReader} from '../../src/server/page/events.mjs';

export const model = fileURLToPath(new URL('../../models/small-qwen2moe-q8_0.gguf', import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const pictures = fileURLToPath(new URL('../../build/page', import.meta.url));

// Few of its experts have slots, so that the map has something to show.
export async function startServer(more = [], {env = {}, port = '0', slots = '96'} = {}) {
  const held = slots === null ? [] : ['--slots', slots];
  const child = spawn(process.env.TROUPE, ['serve', model, '--port', port, '--parallel', '3', ...held, ...more],
                      {env: {...process.env, ...env}, stdio: ['ignore', 'ignore', 'pipe']});
  let said = '';
  const address = await new Promise((resolve, reject) => {
    child.stderr.on('data', (bytes) => {
      said += bytes;
      const found = said.match(/at (http:\S+)/);
      if (found) resolve(found[1]);
    });
    child.on('exit', () => reject(new Error(`the server ended: ${said}`)));
  });
  return {
    address,
    stop: () => new Promise((ended) => {
      child.on('exit', ended);
      child.kill('SIGTERM');
    }),
  };
}

// The first state that the server tells, and the facts before it.
export async function stateOf(address) {
  const stop = new AbortController();
  const response = await fetch(`${address}/live`, {signal: stop.signal});
  const reader = new EventReader(), decoder = new TextDecoder(), seen = {};
  for await (const bytes of response.body) {
    for (const {name, data} of reader.take(decoder.decode(bytes, {stream: true}))) seen[name] = JSON.parse(data);
    if (seen.state) break;
  }
  stop.abort();
  return seen;
}

export function launchBrowser() {
  const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync);
  assert.ok(executablePath, 'no chromium found; CHROMIUM may name one');
  return chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});
}

// What the tests of a file share: a server that is read in small parts, and a browser.
export async function openBench() {
  const server = await startServer(['--ctx', '4096', '--pass-ms', '40', '--memory', '320MiB']);
  const browser = await launchBrowser();
  return {
    address: server.address,
    browser,
    tidy: () => Promise.all(browser.contexts().map((context) => context.close())),  // of a test that has failed
    close: async () => {
      await browser.close();
      await server.stop();
    },
  };
}

// A page that fails the test if its console says anything that is wrong, or its policy is hurt.
export async function openPage(browser, address, {view = {width: 1440, height: 900}, allowed = /^$/, ...options} = {}) {
  const context = await browser.newContext({viewport: view, ...options});
  const page = await context.newPage();
  page.faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !allowed.test(message.text())) page.faults.push(message.text());
  });
  page.on('pageerror', (error) => page.faults.push(`${error.stack}`));
  await page.goto(address);
  return page;
}

export async function closePage(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

export async function takePicture(page, name) {
  mkdirSync(pictures, {recursive: true});
  await page.screenshot({path: `${pictures}/${name}.png`});
}

export async function ask(page, text) {
  await page.getByRole('textbox', {name: 'Message', exact: true}).fill(text);
  await page.getByRole('textbox', {name: 'Message', exact: true}).press('Enter');
}

export async function answered(page, count = 1) {
  await page.waitForFunction((wanted) => {
    const answers = document.querySelectorAll('.message.assistant');
    return answers.length === wanted && [...answers].every((answer) => answer.ariaBusy === null);
  }, count, {timeout: 60_000});
}

// Something that runs meanwhile.
export function work({address}, tokens, seed = 1) {
  return fetch(`${address}/v1/completions`, {
    method: 'POST', body: JSON.stringify({prompt: 'The kernel module', max_tokens: tokens, ignore_eos: true, seed, temperature: 0.9}),
  }).then((response) => response.json());
}

export async function checkAccess(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  assert.deepEqual(found.violations.map(({id, nodes}) => [id, ...nodes.map(({html, failureSummary}) => `${html} ${failureSummary}`)]), [], what);
}

export async function setSettings(page, settings) {
  await page.getByRole('button', {name: 'Settings'}).click();
  for (const [name, value] of Object.entries(settings)) await page.getByLabel(name).fill(value);
  await page.getByRole('button', {name: 'Settings'}).click();
}
