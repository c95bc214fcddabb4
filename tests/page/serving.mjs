// A server of a model that comes with the project, and a browser to look at its page. Whatever a test opens is closed at
// its end.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {existsSync, mkdirSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';
import {EventReader} from '../../src/server/page/events.mjs';

export const model = fileURLToPath(new URL('../../models/small-qwen2moe-q8_0.gguf', import.meta.url));
const pictures = fileURLToPath(new URL('../../build/page', import.meta.url));

// Few of its experts have slots, so that the map has something to show.
export async function startServer(more = [], {env = {}, port = '0'} = {}) {
  const child = spawn(process.env.TROUPE, ['serve', model, '--port', port, '--slots', '96', '--parallel', '3', ...more],
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
