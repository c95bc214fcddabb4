// The chat in a browser: what it sends, streams, stops, edits and shows, before the server or one that says what a test wants.
import assert from 'node:assert/strict';
import {after, afterEach, before, test} from 'node:test';
import {answered, ask, checkAccess, closePage, openBench, openPage, setSettings, stateOf, takePicture} from './serving.mjs';

let bench;
before(async () => bench = await openBench());
afterEach(() => bench.tidy());
after(() => bench.close());

test('the chat streams an answer and says what it cost', async () => {
  const page = await openPage(bench.browser, bench.address);
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
  const page = await openPage(bench.browser, bench.address);
  await setSettings(page, {'Most tokens': '3000', 'Temperature': '1.2'});
  // The model must not come to an end before the reader does.
  await page.route('**/v1/chat/completions', (route) => route.continue(
      {postData: JSON.stringify({...route.request().postDataJSON(), ignore_eos: true})}));
  for (const stop of [() => page.getByRole('button', {name: 'Stop'}).click(), () => page.keyboard.press('Escape')]) {
    const before = (await stateOf(bench.address)).state.sums.requests_cancelled;
    await ask(page, 'Tell me a long story');
    await page.locator('.message.assistant[aria-busy=true] .text:not(:empty)').waitFor();
    await stop();
    await page.getByText('stopped').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'composer-text');
    for (let i = 0; (await stateOf(bench.address)).state.sums.requests_cancelled === before; ++i) assert.ok(i < 50, 'it was not cancelled');
    await page.getByRole('button', {name: 'New chat'}).click();
  }
  await closePage(page);
});

test('a long prompt shows how far it is read', async () => {
  const page = await openPage(bench.browser, bench.address);
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
  const page = await openPage(bench.browser, bench.address, {colorScheme: 'dark'});
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
  const page = await openPage(bench.browser, bench.address, {allowed: /status of 503/});
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

test('an answer that breaks off says so, and keeps what has come', async () => {
  const page = await openPage(bench.browser, bench.address);
  const half = 'data: {"choices":[{"delta":{"content":"Half of it"}}]}\n\n';
  const bodies = [half, `${half}data: {"error":{"message":"the disk has failed"}}\n\ndata: [DONE]\n\n`];
  for (const [body, said] of [[bodies[0], 'the connection was lost before the end of the answer'], [bodies[1], 'the disk has failed']]) {
    await page.route('**/v1/chat/completions', (route) => route.fulfill({contentType: 'text/event-stream', body}));
    await ask(page, 'Hello');
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByRole('alert').textContent(), said);
    assert.equal(await page.locator('.message.assistant .text').textContent(), 'Half of it');
    await page.getByRole('button', {name: 'New chat'}).click();
    await page.unroute('**/v1/chat/completions');
  }
  await closePage(page);
});

// An answer of which a test writes each piece, by window.write, and each piece of reasoning, by window.think; window.finish
// ends it.
function writeByHand(page) {
  return page.evaluate(() => {
    let stream;
    window.fetch = async (path, {signal}) => {
      const body = new ReadableStream({start: (controller) => stream = controller});
      signal.addEventListener('abort', () => stream.error(new DOMException('stopped', 'AbortError')));
      return new Response(body);
    };
    const send = (text) => stream.enqueue(new TextEncoder().encode(`data: ${text}\n\n`));
    const sendDelta = (delta) => send(JSON.stringify({choices: [{delta}]}));
    window.write = (content) => sendDelta({content});
    window.think = (reasoning_content) => sendDelta({reasoning_content});
    window.finish = (usage) => {
      send(JSON.stringify({choices: [{delta: {}, finish_reason: 'stop'}], usage}));
      send('[DONE]');
      stream.close();
    };
  });
}

test('who has scrolled up is left there, and who has not sees the newest line', async () => {
  const page = await openPage(bench.browser, bench.address, {view: {width: 1200, height: 500}});
  await writeByHand(page);
  const write = (paragraphs) => page.evaluate((count) => window.write('A paragraph.\n\n'.repeat(count)), paragraphs);
  const place = () => page.locator('#messages').evaluate(({scrollTop, clientHeight, scrollHeight}) => ({top: scrollTop, left: scrollHeight - scrollTop - clientHeight}));
  await ask(page, 'Tell me a long story');
  await page.locator('.reading').waitFor();
  for (let i = 0; i < 20; ++i) await write(1);
  await page.waitForFunction(() => document.querySelectorAll('.message.assistant p').length === 20);
  const end = await place();
  assert.ok(end.top > 100 && end.left < 2, JSON.stringify(end));
  await page.locator('#messages').evaluate((messages) => messages.scrollTop = 20);
  await write(10);
  await page.waitForFunction(() => document.querySelectorAll('.message.assistant p').length === 30);
  assert.equal((await place()).top, 20);
  await page.getByRole('button', {name: 'Stop'}).click();
  await closePage(page);
});

test('what a model thinks is shown while it thinks, and folded away once it answers', async () => {
  const page = await openPage(bench.browser, bench.address, {colorScheme: 'dark'});
  await writeByHand(page);
  await ask(page, 'How many primes are below thirty?');
  await page.locator('.reading').waitFor();
  const details = page.locator('.message.assistant details'), title = details.locator('summary'), thoughts = details.locator('.thoughts');
  assert.equal(await details.isVisible(), false);
  await page.evaluate(() => window.think('Let me count: 2, 3, 5, 7, 11, 13.\n\n'));
  await thoughts.getByText('Let me count').waitFor();
  assert.equal(await page.locator('.reading').count(), 0, 'it waits for nothing any more');
  assert.equal(await title.textContent(), 'Thinking …');
  for (let i = 0; i < 30; ++i) await page.evaluate((at) => window.think(`Step ${at} of it: 17 is one, too, as no smaller one divides it.\n\n`), i);
  await thoughts.getByText('Step 29').waitFor();
  const left = await thoughts.evaluate(({scrollTop, clientHeight, scrollHeight}) => scrollHeight - scrollTop - clientHeight);
  assert.ok(left < 2, 'its newest line is seen');
  await checkAccess(page, 'thinking');
  await takePicture(page, 'thinking-dark');
  await page.evaluate(() => window.write('There are **ten**: 2, 3, 5, 7, 11, 13, 17, 19, 23 and 29.'));
  await page.locator('.message.assistant .text p').waitFor();
  assert.match(await title.textContent(), /^Thought for [\d.]+ m?s$/);
  assert.equal(await thoughts.isVisible(), false);
  await title.click();
  await page.evaluate(() => window.write('\n\nOne is none of them.'));
  await page.getByText('One is none of them.').waitFor();
  assert.equal(await thoughts.isVisible(), true, 'its reader has opened it');
  await page.evaluate(() => window.finish({completion_tokens: 300, completion_tokens_details: {reasoning_tokens: 271}}));
  await answered(page);
  assert.match(await title.textContent(), /^Thought for [\d.]+ m?s · 271 tokens$/);
  assert.equal(await thoughts.isVisible(), true);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', {name: 'Copy the answer'}).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'There are **ten**: 2, 3, 5, 7, 11, 13, 17, 19, 23 and 29.\n\nOne is none of them.');
  await checkAccess(page, 'thought');
  await takePicture(page, 'thought-dark');

  await page.reload();
  await title.waitFor();
  assert.match(await title.textContent(), /^Thought for [\d.]+ m?s · 271 tokens$/, 'a tab keeps it');
  assert.equal(await thoughts.isVisible(), false);
  await title.press('Enter');
  await thoughts.getByText('Step 29').waitFor();
  const sent = page.waitForRequest('**/v1/chat/completions');
  await answerWith(page, 'Yes.');
  await ask(page, 'Sure?');
  const {messages} = (await sent).postDataJSON();
  assert.equal(messages.length, 3);
  assert.ok(!JSON.stringify(messages).includes('Step'), 'thoughts are not sent back');
  await answered(page, 2);
  await closePage(page);
});

test('a model that is stopped while it thinks shows what it has thought', async () => {
  const page = await openPage(bench.browser, bench.address, {view: {width: 390, height: 844}, colorScheme: 'light'});
  await writeByHand(page);
  await ask(page, 'How many primes are below thirty?');
  await page.locator('.reading').waitFor();
  await page.evaluate(() => window.think('Let me count: 2, 3, 5.'));
  await page.locator('.thoughts').getByText('Let me count').waitFor();
  await takePicture(page, 'thinking-light-phone');
  await page.getByRole('button', {name: 'Stop'}).click();
  await page.getByText('stopped').waitFor();
  assert.match(await page.locator('.reasoning summary').textContent(), /^Thought for /);
  assert.equal(await page.locator('.thoughts').isVisible(), true, 'there is nothing else');
  assert.equal(await page.getByRole('button', {name: 'Copy the answer'}).count(), 0);
  await checkAccess(page, 'stopped while thinking');
  await closePage(page);
});

test('what a reader has selected in an answer stays selected while more of it comes', async () => {
  const page = await openPage(bench.browser, bench.address);
  await writeByHand(page);
  await ask(page, 'Hello');
  await page.locator('.reading').waitFor();
  await page.evaluate(() => window.write('First paragraph.\n\nSecond'));
  const first = page.locator('.message.assistant .text p').first();
  await first.waitFor();
  await first.evaluate((element) => getSelection().selectAllChildren(element));
  await page.evaluate(() => window.write(' paragraph, **and more**.'));
  await page.getByText('and more').waitFor();
  assert.equal(await page.evaluate(() => `${getSelection()}`), 'First paragraph.');
  assert.equal(await page.locator('.message.assistant .text p').count(), 2);
  await closePage(page);
});

test('an edit can be given up, and settings are kept', async () => {
  const page = await openPage(bench.browser, bench.address);
  await answerWith(page, 'Yes.');
  await setSettings(page, {'System prompt': 'Be brief.', 'Most tokens': '5'});
  const sent = page.waitForRequest('**/v1/chat/completions');
  await ask(page, 'Is it so?');
  assert.deepEqual((await sent).postDataJSON().messages[0], {role: 'system', content: 'Be brief.'});
  await answered(page);
  for (const leave of [() => page.keyboard.press('Escape'), () => page.getByRole('button', {name: 'Keep your message as it was'}).click()]) {
    await page.getByRole('button', {name: 'Edit your message'}).click();
    await page.getByRole('textbox', {name: 'Your message'}).fill('Something else');
    await leave();
    assert.equal(await page.locator('.message.user .text').textContent(), 'Is it so?');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Edit');
  }
  assert.equal(await page.locator('.message.assistant').count(), 1);
  await page.reload();
  assert.equal(await page.getByLabel('System prompt').inputValue(), 'Be brief.');
  assert.equal(await page.getByLabel('Most tokens').inputValue(), '5');
  await closePage(page);
});
