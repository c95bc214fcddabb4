// One message of the chat, and what its reader can do with it.
import {costText} from './format.mjs';
import {make, setText} from './dom.mjs';
import {MarkdownView, copyText} from './markdown_view.mjs';
import {ReasoningView} from './reasoning.mjs';

function quietButton(text, label, onClick) {
  const button = make('button', {type: 'button', className: 'quiet'}, text);
  button.setAttribute('aria-label', label);
  button.addEventListener('click', () => onClick(button));
  return button;
}

// A line that is broken between its parts alone.
function costLine(costs) {
  const parts = costs.filter((cost) => cost !== '').join(' · ').split(' · ');
  return parts.map((part, i) => make('span', {}, i + 1 < parts.length ? `${part} · ` : part));
}

// `onEdit` is called with another text.
export function userMessage(content, {onEdit}) {
  const element = make('article', {className: 'message user', 'aria-label': 'You'});
  const show = () => element.replaceChildren(
      make('div', {className: 'text'}, content),
      make('div', {className: 'row'},
           quietButton('Copy', 'Copy your message', (button) => copyText(content, button)),
           quietButton('Edit', 'Edit your message', edit)));
  function edit() {
    const field = make('textarea', {value: content});
    field.setAttribute('aria-label', 'Your message');
    const form = make('form', {className: 'edit'}, field,
                      make('div', {className: 'row'}, quietButton('Cancel', 'Keep your message as it was', leave),
                           make('button', {type: 'submit', className: 'send'}, 'Ask again')));
    function leave() {
      show();
      element.querySelector('.row button:last-child').focus();
    }
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (field.value.trim() !== '') onEdit(field.value);
    });
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        leave();
      }
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    element.replaceChildren(form);
    field.focus();
  }
  show();
  return element;
}

// An answer, while it is written and afterwards.
export class AnswerMessage {
  #answer;
  #reasoning = new ReasoningView();
  #text = make('div', {className: 'text prose'});
  #view = new MarkdownView(this.#text);
  #reading = make('div', {className: 'reading'});
  #bar = make('progress', {max: 1, value: 0, 'aria-label': 'Reading the prompt'});
  #said = make('span', {}, 'Waiting …');
  #frame = 0;

  constructor(answer) {
    this.#answer = answer;
    this.#reading.append(this.#said, this.#bar);
    this.#bar.hidden = true;
    this.element = make('article', {className: 'message assistant', 'aria-label': 'Answer'}, this.#reasoning.element, this.#text);
  }

  begin() {
    this.element.setAttribute('aria-busy', 'true');
    this.#text.classList.add('writing');
    this.element.append(this.#reading);
  }

  showProgress() {
    const {processed, total} = this.#answer.progress;
    setText(this.#said, `Reading ${processed.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} tokens`);
    this.#bar.hidden = false;
    this.#bar.value = processed / total;
  }

  // As often as the screen is drawn, and no more often.
  showText(onShown) {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#reading.remove();
      this.#reasoning.show(this.#answer, true);
      this.#view.show(this.#answer.content);
      onShown();
    });
  }

  end({onAgain}) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#reading.remove();
    this.#reasoning.show(this.#answer, false);
    this.#view.show(this.#answer.content);
    this.#text.classList.remove('writing');
    this.element.removeAttribute('aria-busy');
    const {error, content, usage, troupe, finish, stopped} = this.#answer;
    if (error) this.element.append(make('div', {className: 'failed', role: 'alert'}, error));
    const costs = [costText(usage, troupe)];
    if (stopped) costs.push('stopped');
    else if (finish === 'length') costs.push('cut off: no more tokens were allowed');
    else if (content === '' && !error) costs.push('an empty answer');
    const row = make('div', {className: 'row'});
    if (content !== '') row.append(quietButton('Copy', 'Copy the answer', (button) => copyText(content, button)));
    row.append(quietButton(error ? 'Try again' : 'Regenerate', error ? 'Ask for the answer again' : 'Regenerate the answer', onAgain),
               make('span', {className: 'cost'}, ...costLine(costs)));
    this.element.append(row);
  }
}
