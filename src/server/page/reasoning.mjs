// What a model thinks before it answers: shown while it is written, folded away once the answer begins, unless its
// reader has said otherwise.
import {countText, timeText} from './format.mjs';
import {make, setText} from './dom.mjs';
import {MarkdownView} from './markdown_view.mjs';

const kFollow = 24;  // pixels from the end at which a reader follows what is written

// The line above it. Pure.
export function reasoningTitle({content, thought_s, usage}, writing) {
  if (writing && content === '') return 'Thinking …';
  const tokens = usage?.completion_tokens_details?.reasoning_tokens;
  const parts = [thought_s > 0 ? `Thought for ${timeText(thought_s)}` : 'Thoughts'];
  if (tokens > 0) parts.push(countText(tokens, 'token'));
  return parts.join(' · ');
}

export class ReasoningView {
  #title = make('span', {className: 'title'});
  #text = make('div', {className: 'thoughts prose', tabIndex: 0, role: 'region', 'aria-label': 'Thoughts', 'aria-live': 'off'});
  #view = new MarkdownView(this.#text);
  #chosen = false;  // by the reader, whether it is open
  #since = null;

  constructor() {
    const summary = make('summary', {}, this.#title);
    summary.addEventListener('click', () => this.#chosen = true);
    this.element = make('details', {className: 'reasoning', hidden: true}, summary, this.#text);
  }

  // `writing`: more of the answer may come.
  show(answer, writing) {
    if (!answer.reasoning) return;
    const thinking = writing && answer.content === '';
    this.element.hidden = false;
    this.element.classList.toggle('thinking', thinking);
    this.#since ??= performance.now();
    if (!thinking) answer.thought_s ??= (performance.now() - this.#since) / 1e3;
    if (!this.#chosen) this.element.open = answer.content === '';
    setText(this.#title, reasoningTitle(answer, writing));
    const {scrollTop, clientHeight, scrollHeight} = this.#text;
    this.#view.show(answer.reasoning);
    if (thinking && scrollHeight - scrollTop - clientHeight < kFollow) this.#text.scrollTop = this.#text.scrollHeight;
  }
}
