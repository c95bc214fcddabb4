// The card beside the processor: what its memory holds, and what it has answered.
import {bytesText, countText, percentText, shortNumber} from './format.mjs';
import {find, setText} from './dom.mjs';
import {StackedBar} from './charts.mjs';

// Slots with an expert, and those without. Pure.
export function slotParts({slots, held}) {
  return [['hold an expert', held, 'part-1'], ['free', slots - held, 'part-free']].map(([name, size, style]) => (
      {name, size, style, text: `${size.toLocaleString('en-US')} · ${percentText(slots > 0 ? size / slots : 0)}`}));
}

// What it answered since the start, and how many rows a second now. Pure.
export function answersText({rows, hits, copies, failed}, rate) {
  const parts = [`${countText(rows, 'row')} of experts answered`];
  if (rate > 0) parts.push(`${shortNumber(rate)} a second now`);
  parts.push(`${countText(hits, 'ask')} found the expert there`, `${countText(copies, 'expert')} copied in`);
  if (failed) parts.push('it has failed: the processor goes on alone, with the same answers');
  return parts.join(' · ');
}

const kRowsWindow = 2;  // seconds that the rate is an average of

export class CardView {
  #bar = new StackedBar('card');
  #seen = [];  // rows with their times, of the last seconds

  // A state's card, null where there is none, and the state's seconds.
  show(card, seconds) {
    find('card').hidden = !card;
    if (!card) return;
    const last = this.#seen.at(-1);
    if (last && (last.seconds > seconds || last.rows > card.rows)) this.#seen = [];  // a server that began anew
    this.#seen.push({rows: card.rows, seconds});
    while (this.#seen.length > 2 && this.#seen[1].seconds <= seconds - kRowsWindow) this.#seen.shift();
    const {rows, seconds: then} = this.#seen[0];
    const rate = seconds > then ? (card.rows - rows) / (seconds - then) : 0;
    setText(find('card-note'), `${card.name} · ${bytesText(card.bytes)} of its memory`);
    this.#bar.show(slotParts(card), 'Slots of the card');
    setText(find('card-answers'), answersText(card, rate));
  }
}
