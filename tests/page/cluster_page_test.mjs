// The cluster on the live page: two real nodes that share a model's experts, seen from one of them.
import assert from 'node:assert/strict';
import {createServer} from 'node:net';
import {after, before, test} from 'node:test';
import {Cell, callsText, heldCells, nodeLines} from '../../src/server/page/cluster.mjs';
import {checkAccess, closePage, launchBrowser, openPage, startServer, takePicture, work} from './serving.mjs';

const freePort = () => new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const {port} = server.address();
    server.close(() => found(port));
  });
});

const startNode = (addresses, i) => startServer(['--peers', addresses.join(), '--peer-address', addresses[i], '--node', `n${i}`,
                                                 '--link', '8MiB/5ms', '--ctx', '1024'], {slots: '160'});
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
