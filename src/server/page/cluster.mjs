// The cluster that the server is a node of: who is there and holds what, who asks whom, and what has happened. Asks
// the server once a second, as long as the page is to be seen; the maps only when something has changed.
import {bytesText, countText, shortNumber, timeText} from './format.mjs';
import {callApi} from './api.mjs';
import {find, make, setText} from './dom.mjs';

const kEvery = 1000;  // milliseconds
const kMostEvents = 6;

export const Cell = {none: 0, held: 1, toCome: 2, toGo: 3};

// By layer that has experts, and expert, what that node's map shows. Pure.
export function heldCells(node, {first_layer: first, layers, experts}) {
  return Array.from({length: layers - first}, (_, i) => {
    const planned = new Set(node.planned[first + i]), held = new Set(node.held[first + i]);
    return Array.from({length: experts}, (_, expert) => (
        held.has(expert) ? planned.has(expert) ? Cell.held : Cell.toGo : planned.has(expert) ? Cell.toCome : Cell.none));
  });
}

// A line for each node: this one first, then by name. Pure.
export function nodeLines(record) {
  const planned = new Map((record.plan?.nodes ?? []).map(({name, experts}) => [name, experts]));
  const line = (name, here, held, more) => {
    const notes = here ? [`${held.toLocaleString('en-US')} of ${countText(planned.get(name) ?? 0, 'expert')}`, ...more] : ['away'];
    return {name, here, note: notes.join(' · ')};
  };
  const own = line(record.node, true, record.held, [record.draining ? 'is to go' : 'this one']);
  const peers = record.peers.map((peer) => line(peer.name, peer.here, peer.held, [`${timeText(peer.round_trip_s)} away`]));
  const unseen = [...planned.keys()].filter((name) => name !== record.node && record.peers.every((peer) => peer.name !== name));
  return [own, ...[...peers, ...unseen.map((name) => line(name, false, 0, []))].sort((a, b) => (a.name < b.name ? -1 : 1))];
}

// What was asked and answered between two records, a second. Pure.
export function callsText(before, now, seconds) {
  if (!before || !(seconds > 0)) return '';
  const rate = (of) => Math.max(0, of(now) - of(before)) / seconds;
  const parts = [
    `asks for ${shortNumber(rate((record) => record.asked.by_peers))} experts/s`,
    `answers ${shortNumber(rate((record) => record.answered.experts))}/s`,
    `sends ${bytesText(rate((record) => record.bytes.sent))}/s`,
    `receives ${bytesText(rate((record) => record.bytes.received))}/s`,
  ];
  const late = now.asked.hedges + now.asked.to_disk;
  if (late > 0) parts.push(`${countText(late, 'expert')} late since the start`);
  if (now.checks.wrong > 0) parts.push(`${countText(now.checks.wrong, 'wrong answer')} found`);
  return parts.join(' · ');
}

// By peer, what its link carried between two records, a second, and what was measured of it: '' while nothing is known.
// Pure.
export function linkTexts(before, now, seconds) {
  const were = new Map((before?.peers ?? []).map((peer) => [peer.name, peer]));
  return new Map(now.peers.filter(({here}) => here).map((peer) => {
    const parts = [], was = were.get(peer.name);
    if (was?.here && seconds > 0) {
      // Another link counts anew.
      const rate = (key) => Math.max(0, peer[key] - was[key]) / seconds;
      parts.push(`sends ${bytesText(rate('sent'))}/s`, `receives ${bytesText(rate('received'))}/s`);
    }
    if (peer.bytes_per_s > 0) parts.push(`link of ${bytesText(peer.bytes_per_s)}/s`);
    if (peer.call_s > 0) parts.push(`a call takes ${timeText(peer.call_s)}`);
    return [peer.name, parts.join(' · ')];
  }));
}

// Once nothing has come for so many seconds it is no migration under way: what is to come waits, or rests.
const kQuiet = 120;

// How far nodes have come towards the plan; null: none is on its way. Pure.
export function migrationLook({migration}) {
  if (!migration || migration.moved >= migration.experts || migration.quiet_s > kQuiet) return null;
  const {experts, moved, bytes, bytes_moved: come, quiet_s: quiet, left_s: left} = migration;
  const parts = [
    `${moved.toLocaleString('en-US')} of ${countText(experts, 'expert')} moved`,
    `${bytesText(come)} of ${bytesText(bytes)}`,
    quiet >= 10 ? `nothing has come for ${timeText(quiet)}` : left === null ? 'time left not known yet' : `about ${timeText(left)} left`,
  ];
  return {text: parts.join(' · '), share: bytes > 0 ? come / bytes : 0};
}

export class ClusterView {
  #timer = 0;
  #asked = 0;      // when the last record came
  #record = null;
  #holdings = null;
  #links = new Map();  // by peer

  // Whether there is a cluster to follow.
  follow(is) {
    find('cluster').hidden = !is;
    if (is && this.#timer === 0) {
      this.#timer = setInterval(() => document.hidden || this.#look(), kEvery);
      this.#look();
    }
    if (!is) {
      clearInterval(this.#timer);
      this.#timer = 0;
    }
  }

  async #look() {
    try {
      const record = await (await callApi('cluster')).json();
      if (record.holdings_version !== this.#holdings?.version) this.#holdings = await (await callApi('cluster/plan')).json();
      const now = performance.now();
      const seconds = (now - this.#asked) / 1000;
      setText(find('cluster-calls'), callsText(this.#record, record, seconds));
      this.#links = linkTexts(this.#record, record, seconds);
      this.#record = record;
      this.#asked = now;
      this.#show();
    } catch {
      // The stream of figures says that the server has gone, or wants a key.
    }
  }

  #show() {
    const {cluster, leader, leads, plan, events} = this.#record;
    const how = plan ? `plan ${plan.epoch}, ${plan.settled ? 'carried out' : 'being carried out'}` : 'no plan yet';
    setText(find('cluster-note'), `${cluster} · ${leads ? 'this node' : leader ?? 'nobody'} leads · ${how}`);
    const list = find('cluster-nodes'), lines = nodeLines(this.#record);
    while (list.children.length > lines.length) list.lastElementChild.remove();
    lines.forEach((line, i) => {
      const row = list.children[i] ?? list.appendChild(make('li', {className: 'node'}, make('p', {className: 'name'}), make('p', {className: 'note'}),
                                                            make('p', {className: 'note link'}), make('canvas', {role: 'img'})));
      row.dataset.here = line.here;
      setText(row.children[0], line.name);
      setText(row.children[1], line.note);
      setText(row.children[2], this.#links.get(line.name) ?? '');
      row.children[3].setAttribute('aria-label', `Map of ${line.name}: ${line.note}`);
    });
    const migration = migrationLook(this.#record);
    find('cluster-migration').hidden = migration === null;
    if (migration) {
      find('cluster-migration-bar').value = migration.share;
      setText(find('cluster-migration-text'), migration.text);
    }
    const newest = events.slice(-kMostEvents).reverse();
    find('cluster-events').replaceChildren(...newest.map(({seconds_ago: ago, text}) => (
        make('li', {}, make('span', {className: 'age'}, timeText(ago)), make('span', {}, text)))));
    this.draw();
  }

  draw() {
    if (!this.#record || !this.#holdings) return;
    const style = getComputedStyle(document.documentElement);
    const colours = {[Cell.held]: style.getPropertyValue('--part-1'), [Cell.toCome]: style.getPropertyValue('--map-load')};
    const nodes = new Map(this.#holdings.nodes.map((node) => [node.name, node]));
    for (const row of find('cluster-nodes').children) {
      const node = nodes.get(row.children[0].textContent);
      if (node) this.#drawNode(row.children[3], heldCells(node, this.#holdings), colours);
    }
  }

  #drawNode(canvas, cells, colours) {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (width === 0) return;  // not to be seen
    const cell = Math.max(1, width / cells[0].length), height = Math.min(cell, cells.length > 30 ? 3 : 6);
    const wanted = [Math.round(width * scale), Math.round(height * cells.length * scale)];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) [canvas.width, canvas.height] = wanted;
    canvas.style.height = `${height * cells.length}px`;
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height * cells.length);
    const gap = cell >= 4 ? 1 : 0;
    cells.forEach((layer, y) => layer.forEach((state, x) => {
      if (state === Cell.none) return;
      context.globalAlpha = state === Cell.toGo ? 0.4 : 1;
      context.fillStyle = colours[state] ?? colours[Cell.held];
      context.fillRect(x * cell, y * height, cell - gap, Math.max(1, height - gap));
    }));
    context.globalAlpha = 1;
  }
}
