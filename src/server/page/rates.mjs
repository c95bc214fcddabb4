// What the sums that the server tells say of the last seconds. Pure.

const kKept = 75;  // seconds

export class History {
  #states = [];

  get last() {
    return this.#states.at(-1);
  }

  add(state) {
    const before = this.last;
    // A server that was started anew counts from nothing again.
    if (before && (state.seconds < before.seconds || state.sums.passes < before.sums.passes)) this.#states = [];
    this.#states.push(state);
    while (this.#states[0].seconds < state.seconds - kKept) this.#states.shift();
  }

  // The first state of the last `window` seconds, or the one before the last.
  #since(window) {
    const last = this.last;
    const found = this.#states.find((state) => state.seconds >= last.seconds - window - 0.05);
    return found === last ? this.#states.at(-2) : found;
  }

  // By how much sums[name] has grown, a second; 0 as long as one state is known.
  rate(name, window) {
    const since = this.last && this.#since(window);
    if (!since) return 0;
    return (this.last.sums[name] - since.sums[name]) / (this.last.seconds - since.seconds);
  }

  // The rate at every state of the last `span` seconds: [{ago, rate}], oldest first.
  course(name, window, span) {
    const points = [];
    const states = this.#states;
    let from = 0;
    for (let i = 1; i < states.length; ++i) {
      while (from + 1 < i && states[from + 1].seconds <= states[i].seconds - window) ++from;
      const ago = this.last.seconds - states[i].seconds;
      if (ago > span) continue;
      const time = states[i].seconds - states[from].seconds;
      points.push({ago, rate: time > 0 ? (states[i].sums[name] - states[from].sums[name]) / time : 0});
    }
    return points;
  }

  // Sums of the last `most` seconds in which something ran: where their time went. Null: nothing did.
  work(most) {
    const work = {seconds: 0, passes: 0, stall: 0, deciding: 0, reading: 0, tokens: 0, hits: 0, misses: 0, bytes: 0};
    for (let i = this.#states.length - 1; i > 0 && work.seconds < most; --i) {
      const a = this.#states[i - 1], b = this.#states[i];
      const grown = (name) => b.sums[name] - a.sums[name];
      if (grown('passes') === 0) continue;
      // Between two states with nothing to do at one of them, the server has rested for some time.
      const busy = requestsNow(a) > 0 && requestsNow(b) > 0;
      work.seconds += busy ? b.seconds - a.seconds : grown('pass_seconds');
      work.passes += grown('pass_seconds');
      work.stall += grown('stall_seconds');
      work.deciding += grown('deciding_seconds');
      work.reading += grown('reading_seconds');
      work.tokens += grown('generated_tokens') + grown('prompt_tokens');
      work.hits += grown('hits');
      work.misses += grown('misses');
      work.bytes += grown('bytes_read');
    }
    return work.seconds > 0 ? work : null;
  }

  // The same since the server was started: what is known to those who have just come. Time between
  // passes is not. Null: nothing has run.
  workSinceStart() {
    const sums = this.last?.sums;
    if (!sums || sums.passes === 0) return null;
    return {
      seconds: sums.pass_seconds, passes: sums.pass_seconds, stall: sums.stall_seconds, deciding: sums.deciding_seconds,
      reading: sums.reading_seconds, tokens: sums.generated_tokens + sums.prompt_tokens, hits: sums.hits,
      misses: sums.misses, bytes: sums.bytes_read,
    };
  }
}

// The parts of the time of a pass, and the time between passes: [{name, seconds}].
export function timeSplit(work) {
  const compute = Math.max(0, work.passes - work.stall - work.deciding);
  return [
    {name: 'computing', seconds: compute},
    {name: 'waiting for disk', seconds: work.stall},
    {name: 'cache policy', seconds: work.deciding},
    {name: 'between passes', seconds: Math.max(0, work.seconds - work.passes)},
  ];
}

export function requestsNow(state) {
  const {waiting, reading, decoding} = state.requests_now;
  return waiting + reading + decoding;
}
