// Reads a stream of events (text/event-stream) as its bytes come. Pure but for readEvents.

export class EventReader {
  #rest = '';
  #name = '';
  #data = [];

  // The events that this text ends: [{name, data}].
  take(text) {
    const events = [];
    // A line may end in \r\n of which only \r has come.
    const all = this.#rest + text;
    let begin = 0;
    for (;;) {
      const end = all.slice(begin).search(/\r\n|\n|\r(?!$)/);
      if (end < 0) break;
      const line = all.slice(begin, begin + end);
      begin += end + (all.startsWith('\r\n', begin + end) ? 2 : 1);
      this.#line(line, events);
    }
    this.#rest = all.slice(begin);
    return events;
  }

  #line(line, events) {
    if (line === '') {
      if (this.#data.length > 0) events.push({name: this.#name || 'message', data: this.#data.join('\n')});
      this.#name = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
  }
}

// Calls `on` with each event of a response until it ends, or `on` throws.
export async function readEvents(response, on) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      for (const event of events.take(decoder.decode(value, {stream: true}))) on(event);
    }
  } finally {
    reader.cancel().catch(() => {});  // if it is not at its end, nobody wants the rest
  }
}
