// A line over the last minute, and bars of parts.
import {find, make, setText} from './dom.mjs';

const kSvg = 'http://www.w3.org/2000/svg';

// The path of a line through points {ago, rate}, newest at the right. Pure.
export function linePath(points, span, top, width, height) {
  return points
      .map(({ago, rate}, i) => {
        const x = width * (1 - ago / span), y = height - (height - 2) * (top > 0 ? rate / top : 0);
        return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
      })
      .join('');
}

function svgPath(name) {
  const path = document.createElementNS(kSvg, 'path');
  path.setAttribute('class', name);
  return path;
}

export class Sparkline {
  #svg;
  #area = svgPath('area');
  #line = svgPath('line');

  constructor(svg) {
    this.#svg = svg;
    const {width, height} = svg.viewBox.baseVal;
    const floor = svgPath('floor');
    floor.setAttribute('d', `M0 ${height}L${width} ${height}`);
    svg.append(floor, this.#area, this.#line);
  }

  show(points, span) {
    const {width, height} = this.#svg.viewBox.baseVal;
    const top = Math.max(1, ...points.map((point) => point.rate)) * 1.08;
    const line = linePath(points, span, top, width, height);
    this.#line.setAttribute('d', line);
    const first = points.length > 0 ? width * (1 - points[0].ago / span) : width;
    this.#area.setAttribute('d', line && `${line}L${width} ${height}L${first.toFixed(1)} ${height}Z`);
  }
}

// A bar of parts, and below it what each is: [{name, size, text, style}].
export class StackedBar {
  #bar;
  #legend;
  #names = '';

  constructor(name) {
    this.#bar = find(`${name}-stack`);
    this.#legend = find(`${name}-legend`);
  }

  show(parts, label) {
    const names = parts.map((part) => part.name).join('|');
    if (names !== this.#names) {
      this.#names = names;
      this.#bar.replaceChildren(...parts.map((part) => make('span', {className: part.style})));
      this.#legend.replaceChildren(...parts.map((part) => make(
          'li', {}, make('span', {className: `key ${part.style}`}), make('span', {className: 'name'}, part.name),
          make('span', {className: 'value'}))));
    }
    // Parts that grow by less than 1 together would leave a part of the bar empty.
    const whole = parts.reduce((sum, part) => sum + part.size, 0) / 1000;
    parts.forEach((part, i) => {
      this.#bar.children[i].style.flexGrow = whole > 0 ? Math.max(0, part.size / whole).toFixed(2) : 0;
      setText(this.#legend.children[i].lastElementChild, part.text);
    });
    this.#bar.setAttribute('aria-label', `${label}: ${parts.map((part) => `${part.name} ${part.text}`).join(', ')}`);
  }
}
