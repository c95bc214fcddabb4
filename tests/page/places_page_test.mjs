// A weak machine and its cloud on the live page: two real servers, seen from the weak one.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {aloneText, cutsText, draftsText, linkText, movesText, placeParts} from '../../src/server/page/places.mjs';
import {checkAccess, closePage, launchBrowser, openPage, startServer, takePicture, work} from './serving.mjs';

let browser, cloud, end;
before(async () => {
  browser = await launchBrowser();
  cloud = await startServer(['--for-ends', '--ctx', '1024', '--link', '64MiB/2ms']);
  end = await startServer(['--ctx', '1024', '--cloud', cloud.address, '--place', 'drafts'], {slots: '160'});
});
after(async () => {
  await browser.close();
  await Promise.all([end, cloud].map((server) => server.stop()));
});

test('the link is shown as rates', () => {
  const record = (n) => ({round_trip_s: 0.02, bytes: {sent: 1024 * n, received: 3072 * n}});
  assert.equal(linkText(null, record(1), 1), '20 ms away');
  assert.equal(linkText(record(1), record(3), 2), '20 ms away · sends 1 KiB/s · receives 3 KiB/s');
  assert.equal(linkText(record(3), record(1), 2), '20 ms away · sends 0 bytes/s · receives 0 bytes/s', 'a server that began anew');
});

test('guesses are shown with what became of them', () => {
  const drafts = {guessed: 0, late: 0, checked: 0, right: 0, ahead: 0};
  assert.equal(draftsText(drafts), 'no guesses for the cloud');
  assert.equal(draftsText({...drafts, guessed: 1}), '1 guess · not worth it now');
  assert.equal(draftsText({guessed: 1200, late: 100, checked: 800, right: 600, ahead: 6}),
               '1,200 guesses · 100 too late · 75.0 % of 800 checked were right · up to 6 ahead of the cloud');
});

test('answers that went on elsewhere are shown', () => {
  const none = {end: 0, cloud: 0};
  assert.equal(movesText({taken_over: none, moved: none}), '');
  assert.equal(movesText({taken_over: {end: 1, cloud: 0}, moved: none}), '1 answer of the cloud went on here, 0 of this machine there');
  assert.equal(movesText({taken_over: {end: 2000, cloud: 3}, moved: {end: 4, cloud: 5}}),
               '2,000 answers of the cloud went on here, 3 of this machine there · while they waited 4 came here and 5 left for the cloud');
});

test('cut prompts are shown with how busy each lane was', () => {
  assert.equal(cutsText(undefined), '');
  const cuts = {answered: 0, failed: 0, rows: 0, lossy_rows: 0, seconds: 0, busy_s: {end: 0, link: 0, cloud: 0}};
  assert.equal(cutsText(cuts), '');
  assert.equal(cutsText({answered: 3, failed: 1, rows: 400, lossy_rows: 100, seconds: 2, busy_s: {end: 1, link: 0.5, cloud: 2}}),
               '3 prompts cut by layers · 1 read whole after all · 25.0 % of rows not exact · busy meanwhile: end 50.0 %, link 25.0 %, cloud 100 %');
  assert.equal(cutsText({...cuts, answered: 3, answers: 2, keys_bytes: 3072}),
               '3 prompts cut by layers · 2 answers went on behind 3 KiB of keys and values');
  assert.equal(cutsText({...cuts, answered: 3, rows_before: {2: 1, 4: 1200}}),
               '3 prompts cut by layers · 1 token went through the layers below 2 here · 1,200 tokens went through the layers below 4 here');
});

test('what it costs to be alone is shown while the cloud chooses nothing', () => {
  const token_s = {end: 0.0114, cloud: 0.0037};
  assert.equal(aloneText({cloud: 'away', token_s}), 'alone: about 3.1 times slower, 11.4 ms a token here in place of 3.7 ms');
  assert.equal(aloneText({cloud: 'refused', token_s: {end: 1.2, cloud: 0.01}}),
               'alone: about 120 times slower, 1.20 s a token here in place of 10 ms');
  assert.equal(aloneText({cloud: 'away', token_s: {end: 0.003, cloud: 0.004}}), 'alone: no slower, 3 ms a token here in place of 4 ms');
  assert.equal(aloneText({cloud: 'there', token_s}), '');
  for (const place of ['end', 'cloud']) assert.equal(aloneText({cloud: 'away', token_s: {...token_s, [place]: null}}), '');
  assert.equal(aloneText({cloud: 'away'}), '', 'an older server');
});

test('tokens are shown by place', () => {
  assert.deepEqual(placeParts({end: 25, cloud: 75}).map(({text}) => text), ['75 · 75.0 %', '25 · 25.0 %']);
  assert.deepEqual(placeParts({end: 0, cloud: 0}).map(({size}) => size), [0, 0]);
});

test('a server without a cloud shows no places', async () => {
  const page = await openPage(browser, cloud.address);
  await page.locator('#link[data-state=live]').waitFor();
  assert.ok(await page.locator('#places').isHidden());
  await closePage(page);
});

test('the page shows where tokens were chosen, what the link carried and how guesses did', async () => {
  const page = await openPage(browser, end.address);
  await page.locator('#places-note').getByText('the cloud is there').waitFor();
  await work(end, 200);
  await page.waitForFunction(() => /[1-9]\d* guesses/.test(document.getElementById('places-drafts').textContent));
  await page.locator('#places-legend').getByText('100 %').waitFor();
  assert.match(await page.locator('#places-stack').getAttribute('aria-label'), /cloud [\d,]+ · 100 %/);
  const running = work(end, 200);
  await page.waitForFunction(() => /receives [1-9]/.test(document.getElementById('places-link').textContent));
  await takePicture(page, 'places');
  await checkAccess(page, 'places');
  await running;
  await cloud.stop();
  await page.locator('#places-note').getByText('the cloud is away').waitFor();
  await work(end, 20);
  await page.locator('#places-note').getByText(/alone: (about [\d.,]+ times|no) slower, .+ a token here in place of .+/).waitFor();
  cloud = await startServer(['--for-ends', '--ctx', '1024']);
  await closePage(page);
});
