// Where tokens of answers are chosen by a weak machine and its cloud: what each has chosen, what the link carries, and
// what became of guesses and of prompts that were cut by layers.
import {bytesText, countText, percentText, shortNumber, timeText} from './format.mjs';
import {find, setText} from './dom.mjs';
import {StackedBar} from './charts.mjs';

// Of two records, the earlier one absent at first, that are so many seconds apart: what the link carried. Pure.
export function linkText(before, now, seconds) {
  const parts = [`${timeText(now.round_trip_s)} away`];
  if (before && seconds > 0) {
    const rate = (way) => Math.max(0, now.bytes[way] - before.bytes[way]) / seconds;
    parts.push(`sends ${bytesText(rate('sent'))}/s`, `receives ${bytesText(rate('received'))}/s`);
  }
  return parts.join(' · ');
}

// What became of guesses since the start. Pure.
export function draftsText({guessed, late, checked, right, ahead}) {
  if (guessed === 0) return 'no guesses for the cloud';
  const parts = [countText(guessed, 'guess', 'guesses')];
  if (late > 0) parts.push(`${late.toLocaleString('en-US')} too late`);
  if (checked > 0) parts.push(`${percentText(right / checked)} of ${checked.toLocaleString('en-US')} checked were right`);
  parts.push(ahead > 0 ? `up to ${ahead} ahead of the cloud` : 'not worth it now');
  return parts.join(' · ');
}

// Answers that went on elsewhere than where they were, and those that left as they waited. Pure.
export function movesText({taken_over, moved}) {
  const parts = [];
  const whole = (number) => number.toLocaleString('en-US');
  if (taken_over.end + taken_over.cloud > 0) {
    parts.push(`${countText(taken_over.end, 'answer')} of the cloud went on here, ${whole(taken_over.cloud)} of this machine there`);
  }
  if (moved.end + moved.cloud > 0) parts.push(`while they waited ${whole(moved.end)} came here and ${whole(moved.cloud)} left for the cloud`);
  return parts.join(' · ');
}

// How many prompts were cut by layers since the start, and how busy each lane was with them meanwhile. Pure.
export function cutsText(cuts) {
  if (!cuts || cuts.answered + cuts.failed === 0) return '';
  const parts = [`${countText(cuts.answered, 'prompt')} cut by layers`];
  for (const [layer, rows] of Object.entries(cuts.rows_before ?? {})) parts.push(`${countText(rows, 'token')} went through the layers below ${layer} here`);
  if (cuts.answers > 0) parts.push(`${countText(cuts.answers, 'answer')} went on behind ${bytesText(cuts.keys_bytes)} of keys and values`);
  if (cuts.failed > 0) parts.push(`${cuts.failed.toLocaleString('en-US')} read whole after all`);
  if (cuts.lossy_rows > 0) parts.push(`${percentText(cuts.lossy_rows / cuts.rows)} of rows not exact`);
  if (cuts.seconds > 0) {
    const busy = Object.entries(cuts.busy_s).map(([lane, seconds]) => `${lane} ${percentText(seconds / cuts.seconds)}`);
    parts.push(`busy meanwhile: ${busy.join(', ')}`);
  }
  return parts.join(' · ');
}

// What it costs that the cloud chooses nothing, by what tokens took in both places; nothing where one was not measured.
// Pure.
export function aloneText({cloud, token_s}) {
  if (cloud === 'there' || !(token_s?.end > 0 && token_s.cloud > 0)) return '';
  const times = token_s.end / token_s.cloud;
  const about = times < 9.95 ? times.toFixed(1) : Math.round(times).toLocaleString('en-US');
  const slower = times < 1.05 ? 'no slower' : `about ${about} times slower`;
  return `alone: ${slower}, ${timeText(token_s.end)} a token here in place of ${timeText(token_s.cloud)}`;
}

// Pure.
export function placeParts({end, cloud}) {
  const all = end + cloud;
  return [['cloud', cloud, 'part-1'], ['this machine', end, 'part-4']].map(([name, tokens, style]) => (
      {name, size: tokens, style, text: `${shortNumber(tokens)} · ${percentText(all > 0 ? tokens / all : 0)}`}));
}

const kClouds = {there: 'the cloud is there', away: 'the cloud is away', refused: 'the cloud refuses', unknown: 'not asked yet'};
const kWindow = 2;  // seconds that rates are an average of

export class PlacesView {
  #bar = new StackedBar('places');
  #seen = [];  // records with their times, of the last seconds

  show(record, seconds) {
    find('places').hidden = false;
    if (this.#seen.at(-1)?.seconds > seconds) this.#seen = [];
    this.#seen.push({record, seconds});
    while (this.#seen.length > 2 && this.#seen[1].seconds <= seconds - kWindow) this.#seen.shift();
    const {record: before, seconds: then} = this.#seen[0];
    const note = [kClouds[record.cloud] ?? record.cloud, aloneText(record), `${countText(record.answers_now, 'answer')} under way`];
    setText(find('places-note'), note.filter(Boolean).join(' · '));
    this.#bar.show(placeParts(record.tokens), 'Tokens by where they were chosen');
    setText(find('places-link'), linkText(this.#seen.length > 1 ? before : null, record, seconds - then));
    setText(find('places-moves'), movesText(record));
    setText(find('places-drafts'), draftsText(record.drafts));
    setText(find('places-cuts'), cutsText(record.cuts));
  }

  hide() {
    find('places').hidden = true;
    this.#seen = [];
  }
}
