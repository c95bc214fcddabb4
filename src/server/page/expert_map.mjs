// The map of layers and experts: a cell for each, coloured by where it is and how often it was
// chosen lately. A canvas, as a model may have ten thousand; the table beside it says the same.
import {percentText} from './format.mjs';
import {find, make, setText} from './dom.mjs';

const kGutter = 26, kTop = 4;  // for the layers' numbers

export const Place = {absent: '0', loading: '1', memory: '2', low: '3'};

// Where cells stand on a canvas of that width, in CSS pixels. Pure.
export function mapGeometry(width, layers, experts) {
  const cellWidth = Math.max(1, (width - kGutter) / Math.max(1, experts));
  const most = layers > 40 ? 9 : 18;
  const cellHeight = Math.min(most, Math.max(6, cellWidth));
  const gap = cellWidth >= 7 ? 2 : cellWidth >= 3.5 ? 1 : 0;
  return {left: kGutter, top: kTop, cellWidth, cellHeight, gap, height: Math.ceil(kTop + layers * cellHeight)};
}

// The cell at a point, or null. Pure.
export function cellAt(geometry, x, y, layers, experts) {
  const expert = Math.floor((x - geometry.left) / geometry.cellWidth);
  const layer = Math.floor((y - geometry.top) / geometry.cellHeight);
  return expert >= 0 && expert < experts && layer >= 0 && layer < layers ? {layer, expert} : null;
}

// The share of the last tokens that a level of heat (0 to 15) stands for, at most. Pure.
export function shareOfHeat(level) {
  return (level / 15) ** 2;
}

// Pure.
export function describeCell(map, {layer, expert}) {
  const place = map.places[layer][expert];
  const level = Number.parseInt(map.heat[layer][expert], 16);
  const where = {
    [Place.absent]: 'on disk', [Place.loading]: 'loading', [Place.memory]: 'in memory',
    [Place.low]: 'in memory, in lower precision',
  }[place];
  const heat = level === 0 ? 'not used lately' : `chosen by about ${percentText(Math.round(shareOfHeat(level) * 1000) / 1000)} of the last tokens`;
  return `Layer ${map.layer_numbers[layer]}, expert ${expert}: ${where}, ${heat}`;
}

// A line of the table for each layer. Pure.
export function layerRows(map) {
  return map.places.map((places, layer) => {
    const count = (...wanted) => [...places].filter((place) => wanted.includes(place)).length;
    const hottest = [...map.heat[layer]]
        .map((digit, expert) => ({expert, level: Number.parseInt(digit, 16)}))
        .filter(({level}) => level > 0)
        .sort((a, b) => b.level - a.level || a.expert - b.expert)
        .slice(0, 6);
    return {
      layer: map.layer_numbers[layer],
      memory: count(Place.memory, Place.low),
      loading: count(Place.loading),
      hottest: hottest.map(({expert, level}) => `${expert} (${percentText(Math.round(shareOfHeat(level) * 100) / 100)})`),
    };
  });
}

function mixColours(a, b, share) {
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * share)).join(' ')})`;
}

function channelsOf(colour) {
  const digits = colour.trim().replace('#', '');
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

// A colour for each level, from stops at even distances.
function heatColours(stops) {
  return Array.from({length: 16}, (_, level) => {
    const place = level / 15 * (stops.length - 1), below = Math.min(Math.floor(place), stops.length - 2);
    return mixColours(stops[below], stops[below + 1], place - below);
  });
}

const kFlash = 700;  // milliseconds that an expert which has just come stands out

export class ExpertMapView {
  #canvas = find('map');
  #readout = find('map-readout');
  #hint = this.#readout.textContent;
  #table = find('map-table');
  #calm = window.matchMedia('(prefers-reduced-motion: reduce)');
  #map = null;
  #came = new Map();  // by cell's index, when it came into memory
  #cursor = null;
  #pointer = null;  // where it rests on the canvas, in the window's coordinates
  #byKeys = false;
  #frame = 0;

  constructor() {
    const canvas = this.#canvas;
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    // Entering counts as moving: what lies above may push the canvas under a pointer that rests.
    for (const moved of ['pointerenter', 'pointermove', 'pointerdown']) canvas.addEventListener(moved, (event) => this.#point(event));
    canvas.addEventListener('pointerleave', () => {
      this.#pointer = null;
      this.#moveTo(null);
    });
    canvas.addEventListener('focus', () => {
      this.#byKeys = canvas.matches(':focus-visible');
      if (this.#byKeys && this.#map?.layers > 0) this.#moveTo(this.#cursor ?? {layer: 0, expert: 0});
    });
    canvas.addEventListener('blur', () => {
      this.#byKeys = false;
      this.#moveTo(null);
    });
    canvas.addEventListener('keydown', (event) => this.#key(event));
    this.#table.addEventListener('toggle', () => this.#fillTable());
  }

  // `map` as the server tells it.
  show(map) {
    const before = this.#map;
    this.#map = map;
    if (before && before.layers === map.layers && before.experts === map.experts) this.#noteArrivals(before, map);
    setText(find('map-note'), this.#summary());
    this.#canvas.setAttribute('aria-label', `Map of ${map.layers} layers of ${map.experts} experts: ${this.#summary()}`);
    // The pointer may rest here since before there was a map. A reader who goes by keys would be told of each change.
    if (this.#pointer && !this.#byKeys) this.#moveTo(this.#pointedCell());
    this.#fillTable();
    this.draw();
  }

  #summary() {
    if (this.#map.layers === 0) return 'a model without experts';
    const all = this.#map.places.join('');
    const inMemory = [...all].filter((place) => place >= Place.memory).length;
    return `${inMemory.toLocaleString('en-US')} of ${all.length.toLocaleString('en-US')} in memory`;
  }

  #noteArrivals(before, map) {
    if (this.#calm.matches) return;
    const now = performance.now();
    for (let layer = 0; layer < map.layers; ++layer) {
      const old = before.places[layer], places = map.places[layer];
      if (old === places) continue;
      for (let expert = 0; expert < map.experts; ++expert) {
        if (places[expert] >= Place.memory && old[expert] < Place.memory) this.#came.set(layer * map.experts + expert, now);
      }
    }
  }

  #fillTable() {
    if (!this.#table.open || !this.#map) return;
    const body = this.#table.querySelector('tbody');
    const rows = layerRows(this.#map);
    while (body.rows.length > rows.length) body.lastElementChild.remove();
    rows.forEach((row, i) => {
      const line = body.rows[i] ?? body.appendChild(make('tr', {}, make('th', {scope: 'row'}), make('td'), make('td'), make('td')));
      const texts = [`${row.layer}`, `${row.memory} of ${this.#map.experts}`, `${row.loading}`, row.hottest.join(', ') || 'none'];
      texts.forEach((text, column) => setText(line.cells[column], text));
    });
  }

  #geometry() {
    return mapGeometry(this.#canvas.clientWidth || this.#canvas.parentElement.clientWidth, this.#map.layers, this.#map.experts);
  }

  #point(event) {
    this.#pointer = {x: event.clientX, y: event.clientY};
    if (this.#map) this.#moveTo(this.#pointedCell());
  }

  #pointedCell() {
    const {left, top} = this.#canvas.getBoundingClientRect();
    return cellAt(this.#geometry(), this.#pointer.x - left, this.#pointer.y - top, this.#map.layers, this.#map.experts);
  }

  #key(event) {
    const {layers, experts} = this.#map ?? {layers: 0};
    if (layers === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    this.#byKeys = true;
    const {layer, expert} = this.#cursor ?? {layer: 0, expert: 0};
    const to = {
      ArrowLeft: {layer, expert: Math.max(0, expert - 1)},
      ArrowRight: {layer, expert: Math.min(experts - 1, expert + 1)},
      ArrowUp: {layer: Math.max(0, layer - 1), expert},
      ArrowDown: {layer: Math.min(layers - 1, layer + 1), expert},
      Home: {layer, expert: 0},
      End: {layer, expert: experts - 1},
    }[event.key];
    if (!to) return;
    event.preventDefault();
    this.#moveTo(to);
  }

  #moveTo(cell) {
    this.#cursor = cell;
    setText(this.#readout, cell ? describeCell(this.#map, cell) : this.#hint);
    this.draw();
  }

  draw() {
    if (this.#frame === 0 && this.#map) this.#frame = requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow() {
    this.#frame = 0;
    const canvas = this.#canvas, map = this.#map, scale = window.devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth;
    if (width === 0) return;  // not to be seen
    const g = mapGeometry(width, map.layers, map.experts);
    canvas.style.height = `${g.height}px`;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(g.height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(g.height * scale);
    }
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, g.height);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const colours = {
      heat: heatColours([0, 1, 2, 3, 4].map((stop) => channelsOf(colour(`heat-${stop}`)))),
      absent: colour('map-absent'), edge: colour('map-edge'), load: colour('map-load'), text: colour('muted'),
      cursor: colour('focus'),
    };
    this.#drawLabels(context, g, colours, style.getPropertyValue('--sans'));
    for (let layer = 0; layer < map.layers; ++layer) {
      for (let expert = 0; expert < map.experts; ++expert) this.#drawCell(context, g, colours, layer, expert);
    }
    if (this.#cursor) {
      context.strokeStyle = colours.cursor;
      context.lineWidth = 2;
      context.strokeRect(g.left + this.#cursor.expert * g.cellWidth - 1, g.top + this.#cursor.layer * g.cellHeight - 0.5,
                         g.cellWidth + 1, g.cellHeight);
    }
    if (this.#came.size > 0) this.draw();
  }

  #drawLabels(context, g, colours, font) {
    context.fillStyle = colours.text;
    context.font = `10px ${font}`;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const step = [1, 2, 4, 8, 16].find((every) => every * g.cellHeight >= 15) ?? 16;
    for (let layer = 0; layer < this.#map.layers; layer += step) {
      context.fillText(`${this.#map.layer_numbers[layer]}`, g.left - 7, g.top + (layer + 0.5) * g.cellHeight);
    }
  }

  #drawCell(context, g, colours, layer, expert) {
    const place = this.#map.places[layer][expert], level = Number.parseInt(this.#map.heat[layer][expert], 16);
    const x = g.left + expert * g.cellWidth, y = g.top + layer * g.cellHeight + 0.5;
    const width = g.cellWidth - g.gap, height = g.cellHeight - Math.max(g.gap, 1);
    const inMemory = place >= Place.memory;
    context.fillStyle = inMemory ? colours.heat[level] : place === Place.loading ? colours.load : colours.absent;
    if (place === Place.low) {
      context.fillRect(x, y + height / 2, width, height / 2);
    } else {
      context.fillRect(x, y, width, height);
    }
    // One that is used and is not there is what the cache has missed.
    if (place === Place.absent && g.gap < 2) {
      context.globalAlpha = 0.3;
      context.fillStyle = colours.heat[level];
      if (level > 1) context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    } else if (place === Place.absent) {
      context.strokeStyle = level > 1 ? colours.heat[level] : colours.edge;
      context.globalAlpha = level > 1 ? 0.6 : 1;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
      context.globalAlpha = 1;
    }
    const index = layer * this.#map.experts + expert;
    if (!this.#came.has(index)) return;
    const age = (performance.now() - this.#came.get(index)) / kFlash;
    if (age >= 1 || !inMemory) {
      this.#came.delete(index);
      return;
    }
    context.globalAlpha = 1 - age;
    context.strokeStyle = colours.load;
    context.lineWidth = g.gap > 0 ? 2 : 1;
    context.strokeRect(x, y, width, height);
    context.globalAlpha = 1;
  }
}
