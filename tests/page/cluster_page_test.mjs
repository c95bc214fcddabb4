// The cluster on the live page: two real nodes that share a model's experts, seen from one of them.
import assert from 'node:assert/strict';
import {createServer} from 'node:net';
import {after, before, test} from 'node:test';
import {Cell, callsText, heldCells, linkTexts, migrationLook, nodeLines} from '../../src/server/page/cluster.mjs';
import {checkAccess, closePage, launchBrowser, openPage, startServer, takePicture, work} from './serving.mjs';

const freePort = () => new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const {port} = server.address();
    server.close(() => found(port));
  });
});

const startNode = (addresses, i, link = '8MiB/5ms') => startServer(['--peers', addresses.join(), '--peer-address', addresses[i], '--node', `n${i}`,
                                                                    '--link', link, '--ctx', '1024'], {slots: '160'});
const recordOf = async ({address}, path = 'cluster') => (await fetch(`${address}/${path}`)).json();

let browser, addresses, nodes;
before(async () => {
  browser = await launchBrowser();
  addresses = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  nodes = [await startNode(addresses, 0), await startNode(addresses, 1)];
});
after(async () => {
  await browser.close();
  await Promise.all(nodes.map((node) => node.stop()));
});

test('cells say what is held, to come and to go', () => {
  const holdings = {first_layer: 1, layers: 2, experts: 4};
  const node = {planned: [[], [0, 1]], held: [[], [1, 3]]};
  assert.deepEqual(heldCells(node, holdings), [[Cell.toCome, Cell.held, Cell.none, Cell.toGo]]);
});

test('nodes are listed with this one first, those of the plan that were never here, too', () => {
  const record = {node: 'b', held: 3, draining: false, plan: {nodes: [{name: 'a', experts: 1}, {name: 'b', experts: 4}, {name: 'd', experts: 5}]},
                  peers: [{name: 'c', here: false, held: 0, round_trip_s: 0}, {name: 'a', here: true, held: 1, round_trip_s: 0.0004}]};
  assert.deepEqual(nodeLines(record), [
    {name: 'b', here: true, note: '3 of 4 experts · this one'},
    {name: 'a', here: true, note: '1 of 1 expert · 0.4 ms away'},
    {name: 'c', here: false, note: 'away'},
    {name: 'd', here: false, note: 'away'},
  ]);
});

test('calls are shown as rates, and what went wrong as sums', () => {
  const record = (n) => ({asked: {by_peers: 10 * n, hedges: n, to_disk: 0}, answered: {experts: 4 * n}, checks: {wrong: 0}, bytes: {sent: 2048 * n, received: 0}});
  assert.equal(callsText(null, record(1), 1), '');
  assert.equal(callsText(record(1), record(3), 2), 'asks for 10 experts/s · answers 4/s · sends 2 KiB/s · receives 0 bytes/s · 3 experts late since the start');
});

test('of each link its traffic is shown as rates, and what was measured', () => {
  const record = (n, here = true) => ({peers: [{name: 'a', here, sent: 2048 * n, received: 30 * n, call_s: 0.0002, bytes_per_s: 3 << 20}, {name: 'b', here: false}]});
  const measured = 'link of 3 MiB/s · a call takes 0.2 ms';
  assert.deepEqual([...linkTexts(null, record(1), 1)], [['a', measured]]);
  assert.deepEqual([...linkTexts(record(1), record(3), 2)], [['a', `sends 2 KiB/s · receives 30 bytes/s · ${measured}`]]);
  assert.deepEqual([...linkTexts(record(9), record(3), 2)], [['a', `sends 0 bytes/s · receives 0 bytes/s · ${measured}`]], 'by another link');
  assert.deepEqual([...linkTexts(record(1, false), record(3), 2)], [['a', measured]], 'it was away');
  assert.deepEqual([...linkTexts(record(1), record(1, false), 1)], []);
  const unknown = {peers: [{name: 'a', here: true, sent: 0, received: 0, call_s: 0, bytes_per_s: 0}]};
  assert.deepEqual([...linkTexts(null, unknown, 1)], [['a', '']]);
});

test('a migration under way is shown with what is left, and no other', () => {
  const migration = {experts: 1200, moved: 300, bytes: 4 << 20, bytes_moved: 1 << 20, quiet_s: 0.5, left_s: 42};
  assert.deepEqual(migrationLook({migration}), {text: '300 of 1,200 experts moved · 1 MiB of 4 MiB · about 42 s left', share: 0.25});
  assert.match(migrationLook({migration: {...migration, left_s: null}}).text, /time left not known yet$/);
  assert.match(migrationLook({migration: {...migration, quiet_s: 12}}).text, /nothing has come for 12 s$/);
  assert.equal(migrationLook({migration: {...migration, quiet_s: 500}}), null, 'what is to come rests');
  assert.equal(migrationLook({migration: {...migration, moved: 1200}}), null);
  assert.equal(migrationLook({migration: null}), null);
});

test('a server of no cluster shows none', async () => {
  const alone = await startServer();
  const page = await openPage(browser, alone.address);
  await page.locator('#link[data-state=live]').waitFor();
  assert.ok(await page.locator('#cluster').isHidden());
  await closePage(page);
  await alone.stop();
});

test('the page shows who holds what, who asks whom, and who goes and comes', async () => {
  const page = await openPage(browser, nodes[0].address);
  const settled = async () => {
    const record = await recordOf(nodes[0]);
    return record.plan?.settled && record.peers[0]?.here && record.peers[0].held === record.plan.nodes[1].experts ? record : null;
  };
  let record = null;
  for (let i = 0; !record; ++i) {
    assert.ok(i < 300, 'no plan');
    await page.waitForTimeout(100);
    record = await settled();
  }
  await page.getByText(`this node leads · plan ${record.plan.epoch}, carried out`).waitFor();
  await page.getByText(`${record.held} of ${record.plan.nodes[0].experts} experts · this one`).waitFor();
  const holdings = await recordOf(nodes[0], 'cluster/plan');
  assert.deepEqual(holdings.nodes.map(({name}) => name), ['n0', 'n1']);
  const held = holdings.nodes.map((node) => heldCells(node, holdings).flat().filter((cell) => cell === Cell.held).length);
  assert.deepEqual(held, record.plan.nodes.map(({experts}) => experts));
  assert.equal(held[0] + held[1] >= 256, true, 'all experts are somewhere');
  // As many pixels of the map have a colour as cells are held.
  const filled = await page.locator('#cluster-nodes canvas').first().evaluate((canvas) => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 === 3 && value > 200).length / (canvas.width * canvas.height);
  });
  assert.ok(filled > 0.5 * held[0] / 256 && filled < 1.1 * held[0] / 256, `${filled} of the map`);
  const running = work(nodes[0], 200);
  await page.waitForFunction(() => /asks for [1-9]/.test(document.getElementById('cluster-calls').textContent));
  // By its link each peer is sent what it is asked, and sends its rows.
  const link = page.locator('#cluster-nodes .node').nth(1).locator('.link');
  await page.waitForFunction(() => /sends [1-9].*\/s · receives [1-9].*\/s · .*a call takes [0-9.]+ ms$/.test(
      document.querySelectorAll('#cluster-nodes .link')[1].textContent));
  assert.match(await link.textContent(), /^sends .* · receives /);
  assert.equal(await page.locator('#cluster-nodes .link').first().textContent(), '', 'the node itself has no link');
  const [peer] = (await recordOf(nodes[0])).peers;
  assert.ok(peer.sent > 0 && peer.received > 0 && peer.call_s > 0, JSON.stringify(peer));
  assert.ok(await page.locator('#cluster-migration').isHidden(), 'all have what the plan gives them');
  await takePicture(page, 'cluster');
  await checkAccess(page, 'cluster');
  await running;
  await nodes[1].stop();
  await page.locator('.node[data-here=false]').getByText('away').waitFor();
  await page.locator('#cluster-events').getByText('node n1 is gone').waitFor();
  nodes[1] = await startNode(addresses, 1);
  await page.locator('#cluster-events').getByText(/node n1 at .* is here/).first().waitFor({timeout: 30_000});
  await closePage(page);
});

test('the page shows a migration while it is under way, and how much of it is left', async () => {
  const ports = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const slow = [await startNode(ports, 0, '1MiB/5ms'), await startNode(ports, 1, '1MiB/5ms')];  // a disk that takes its time
  try {
    const page = await openPage(browser, slow[0].address);
    const bar = page.locator('#cluster-migration-bar');
    await page.locator('#cluster-migration').waitFor({timeout: 30_000});
    await page.locator('#cluster-migration-text').getByText(/^[0-9,]+ of [0-9,]+ experts moved · .* of .* · about .* left$/).waitFor();
    const share = Number(await bar.getAttribute('value') ?? await bar.evaluate(({value}) => value));
    assert.ok(share >= 0 && share < 1, `${share}`);
    const told = (await recordOf(slow[0])).migration;
    assert.deepEqual(told.nodes.map(({name}) => name), ['n0', 'n1']);
    assert.ok(told.moved < told.experts && told.bytes_moved < told.bytes, JSON.stringify(told));
    await takePicture(page, 'cluster-migration');
    await checkAccess(page, 'a migration');
    await page.waitForFunction((was) => document.getElementById('cluster-migration-bar').value > was, share);
    await page.locator('#cluster-migration').waitFor({state: 'hidden', timeout: 120_000});
    const {migration, plan} = await recordOf(slow[0]);
    assert.equal(migration.moved, migration.experts);
    assert.equal(migration.bytes_moved, migration.bytes);
    assert.equal(migration.epoch, plan.epoch);
    await closePage(page);
  } finally {
    await Promise.all(slow.map((node) => node.stop()));
  }
});
