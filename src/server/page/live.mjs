// The live figures: listens to the server's events as long as the page is to be seen, and shows them.
import {bytesText, countText, percentText, shortNumber, timeParts, timeText} from './format.mjs';
import {readEvents} from './events.mjs';
import {find, make, setFigure, setText} from './dom.mjs';
import {History, requestsNow, timeSplit} from './rates.mjs';
import {callApi, keyGiven} from './api.mjs';
import {ExpertMapView} from './expert_map.mjs';
import {ClusterView} from './cluster.mjs';
import {CardView} from './card.mjs';
import {PlacesView} from './places.mjs';
import {Sparkline, StackedBar} from './charts.mjs';

const kNow = 2;      // seconds that "now" is an average of
const kRecent = 10;  // seconds of work that the split of time is one of
const kCourse = 60;  // seconds that the line shows
const kLongestPause = 10_000;
const kMostListed = 40;

export class LiveView {
  #history = new History();
  #map = new ExpertMapView();
  #spark = new Sparkline(find('speed-spark'));
  #time = new StackedBar('time');
  #memory = new StackedBar('memory');
  #cluster = new ClusterView();
  #card = new CardView();
  #places = new PlacesView();
  #facts = null;
  #stop = null;  // ends the stream under way

  // Until the page is closed. While nobody can see it, it lets the server rest.
  async run() {
    let pause = 500;
    for (;;) {
      if (document.hidden) await new Promise((seen) => document.addEventListener('visibilitychange', seen, {once: true}));
      if (document.hidden) continue;
      let lost = 'connection lost', refused = false;
      try {
        await this.#listen(() => pause = 500);
      } catch (error) {
        if (error.status) lost = error.message;
        refused = error.status === 401;
        if (error.retryAfter) pause = error.retryAfter * 1000;
      }
      if (document.hidden) continue;
      this.#showLink('lost', lost);
      if (refused) {
        await keyGiven();
        continue;
      }
      await new Promise((over) => setTimeout(over, pause));
      pause = Math.min(pause * 2, kLongestPause);
    }
  }

  // Other colours, or a place to be seen in.
  redraw() {
    this.#map.draw();
    this.#cluster.draw();
  }

  async #listen(onEvent) {
    this.#stop = new AbortController();
    const leave = () => document.hidden && this.#stop.abort();
    document.addEventListener('visibilitychange', leave);
    try {
      const response = await callApi('live', {signal: this.#stop.signal});
      await readEvents(response, ({name, data}) => {
        onEvent();
        this.#showLink('live', 'live');
        const said = JSON.parse(data);
        if (name === 'facts') this.#showFacts(said);
        if (name === 'places') this.#places.show(said, performance.now() / 1000);
        if (name === 'state') this.#showState(said);
      });
    } finally {
      document.removeEventListener('visibilitychange', leave);
    }
  }

  #showLink(state, text) {
    find('link').dataset.state = state;
    setText(find('link-text'), text);
  }

  #showFacts(facts) {
    this.#facts = facts;
    this.#cluster.follow(facts.cluster);
    this.#places.hide();  // until it is told where answers are chosen
    document.title = `${facts.model} – Troupe`;
    setText(find('model-name'), facts.model);
    const answers = facts.answers === 'exact' ? 'exact answers' : `answers by ${facts.answers}`;
    setText(find('model-more'), `context ${facts.context.toLocaleString('en-US')} · ${countText(facts.sequences, 'request')} at a time · ${answers}`);
    const {budget, parts} = facts.memory;
    const used = parts.reduce((sum, part) => sum + part.bytes, 0);
    const shown = parts.map((part, i) => (
        {name: part.name, size: part.bytes, text: bytesText(part.bytes), style: `part-${Math.min(i + 1, 10)}`}));
    if (budget > used) shown.push({name: 'free', size: budget - used, text: bytesText(budget - used), style: 'part-free'});
    this.#memory.show(shown, 'Memory by part');
    setText(find('memory-note'), `${bytesText(used)} of ${bytesText(budget)}`);
  }

  #showState(state) {
    this.#history.add(state);
    this.#showSpeed(state);
    this.#showTimes(state);
    this.#showSplit();
    this.#map.show(state.experts);
    this.#card.show(state.card, state.seconds);
    this.#showRequests(state);
  }

  #showSpeed(state) {
    const history = this.#history;
    setText(find('speed'), shortNumber(history.rate('generated_tokens', kNow)));
    this.#spark.show(history.course('generated_tokens', 1.2, kCourse), kCourse);
    const read = history.rate('prompt_tokens', kNow);
    const notes = [requestsNow(state) === 0 ? 'nothing runs' : countText(requestsNow(state), 'request')];
    if (read > 0 && state.requests_now.reading > 0) notes.push(`reading ${shortNumber(read)}/s`);
    setText(find('speed-note'), notes.join(' · '));
  }

  #showTimes(state) {
    for (const [id, times] of [['first-token', state.first_token], ['gap', state.between_tokens]]) {
      const known = times.count > 0;
      setFigure(find(id), known ? timeParts(times.p50) : ['–', '']);
      setText(find(`${id}-note`), known ? `p99 ${timeText(times.p99)}` : 'p99 –');
    }
  }

  #showSplit() {
    const recent = this.#history.work(kRecent), work = recent ?? this.#history.workSinceStart();
    if (this.#facts && this.#facts.experts_in_memory === this.#facts.experts) {
      setFigure(find('hits'), ['100', '%']);
      setText(find('hits-note'), 'all are in memory');
    } else if (work && work.hits + work.misses > 0) {
      setFigure(find('hits'), percentText(work.hits / (work.hits + work.misses)).split(' '));
      setText(find('hits-note'), `${bytesText(work.bytes / work.seconds)}/s read`);
    }
    if (!work || work.tokens === 0) return setText(find('time-note'), 'nothing has run yet');
    const total = Math.max(work.seconds, work.passes);
    const known = recent ? timeSplit(work) : timeSplit(work).slice(0, 3);
    const parts = known.map(({name, seconds}, i) => ({
      name, size: seconds, text: `${timeText(seconds / work.tokens)} · ${Math.round(100 * seconds / total)} %`, style: `part-${[1, 2, 4, 7][i]}`,
    }));
    this.#time.show(parts, 'Time of a token');
    const disk = work.reading > 0 ? ` · disk busy ${percentText(Math.min(1, work.reading / total))}` : '';
    setText(find('time-note'), `${timeText(total / work.tokens)} a token${disk}${recent ? '' : ' · since the start'}`);
  }

  #showRequests(state) {
    const list = find('requests');
    const shown = state.requests.slice(0, kMostListed);
    const rows = new Map([...list.children].map((row) => [row.dataset.id, row]));
    const wanted = shown.map((request) => {
      const row = rows.get(`${request.id}`) ?? this.#makeRequest(request);
      this.#showRequest(row, request);
      return row;
    });
    if (wanted.length === 0) wanted.push(rows.get('none') ?? make('li', {className: 'none'}, 'None at the moment.'));
    if (shown.length === 0) wanted[0].dataset.id = 'none';
    if (wanted.length !== list.children.length || wanted.some((row, i) => row !== list.children[i])) list.replaceChildren(...wanted);
    const {sums} = state;
    const notes = [`${sums.requests_finished.toLocaleString('en-US')} answered`];
    if (state.requests_now.waiting > 0) notes.unshift(`${state.requests_now.waiting} waiting`);
    if (sums.requests_cancelled > 0) notes.push(`${sums.requests_cancelled} cancelled`);
    if (sums.requests_failed > 0) notes.push(`${sums.requests_failed} failed`);
    setText(find('requests-note'), notes.join(' · '));
  }

  #makeRequest({id}) {
    const row = make('li', {className: 'request'}, make('span', {className: 'id'}, `#${id}`), make('span', {className: 'stage'}),
                     make('span', {className: 'age'}), make('progress', {max: 1, 'aria-label': `Prompt of request ${id}`}));
    row.dataset.id = `${id}`;
    return row;
  }

  #showRequest(row, {stage, prompt, read, generated, seconds}) {
    row.dataset.stage = stage;
    const [, what, age, progress] = row.children;
    const texts = {
      waiting: `waiting, prompt of ${countText(prompt, 'token')}`,
      reading: `reading ${read.toLocaleString('en-US')} of ${countText(prompt, 'token')}`,
      decoding: `${countText(generated, 'token')} written after ${prompt.toLocaleString('en-US')}`,
    };
    setText(what, texts[stage]);
    setText(age, timeText(seconds));
    progress.value = prompt > 0 ? read / prompt : 0;
    progress.hidden = stage !== 'reading';
  }
}
