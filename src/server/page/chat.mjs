// The chat: sends what its reader says, shows what comes, and keeps both for the tab.
import {readEvents} from './events.mjs';
import {find, recall, remember} from './dom.mjs';
import {callApi} from './api.mjs';
import {Conversation, settingOf, takeChunk} from './conversation.mjs';
import {AnswerMessage, userMessage} from './message.mjs';

const kNear = 80;  // pixels from the end at which a reader follows what is written

export class ChatView {
  #conversation = new Conversation(recall('sessionStorage', 'chat') ?? []);
  #messages = find('messages');
  #empty = find('empty');
  #text = find('composer-text');
  #writing = null;  // {abort, done} of the answer under way

  constructor() {
    find('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    this.#text.addEventListener('input', () => this.#fit());
    find('stop').addEventListener('click', () => this.#stop());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.#writing && !find('key-dialog').open) this.#stop();
    });
    find('chat-new').addEventListener('click', () => this.#begin());
    this.#settings();
    this.#showAll();
    this.#fit();
  }

  #settings() {
    const form = find('settings'), open = find('settings-open');
    open.addEventListener('click', () => {
      form.hidden = !form.hidden;
      open.setAttribute('aria-expanded', `${!form.hidden}`);
      if (!form.hidden) find('set-system').focus();
    });
    const names = ['system', 'temperature', 'tokens', 'seed'];
    const kept = recall('localStorage', 'settings') ?? {};
    for (const name of names) find(`set-${name}`).value = kept[name] ?? '';
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('input', () => remember(
        'localStorage', 'settings', Object.fromEntries(names.map((name) => [name, find(`set-${name}`).value]))));
  }

  #settingsNow() {
    const tokens = settingOf(find('set-tokens').value, 1, 1e7), seed = settingOf(find('set-seed').value, 0, Number.MAX_SAFE_INTEGER);
    return {
      system: find('set-system').value,
      temperature: settingOf(find('set-temperature').value, 0, 100),
      tokens: tokens && Math.round(tokens),
      seed: seed === null ? null : Math.round(seed),
    };
  }

  // The field is as high as its text.
  #fit() {
    this.#text.style.height = 'auto';
    this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
    find('send').disabled = this.#text.value.trim() === '';
  }

  #keep() {
    remember('sessionStorage', 'chat', this.#conversation.messages);
  }

  #showAll() {
    this.#messages.replaceChildren(...(this.#conversation.length === 0 ? [this.#empty] : []));
    this.#conversation.messages.forEach((message, at) => {
      if (message.role === 'user') this.#showUser(message, at);
      else this.#makeAnswer(message).end({onAgain: () => this.#again(at)});
    });
    this.#follow(true);
  }

  #showUser(message, at) {
    this.#messages.append(userMessage(message.content, {onEdit: async (content) => {
      await this.#stop();
      this.#conversation.resay(at, content);
      this.#showAll();
      this.#text.focus();
      this.#answer();
    }}));
  }

  #makeAnswer(answer) {
    const message = new AnswerMessage(answer);
    this.#messages.append(message.element);
    return message;
  }

  async #again(at) {
    await this.#stop();
    this.#conversation.forgetFrom(at);
    this.#showAll();
    this.#text.focus();
    this.#answer();
  }

  async #begin() {
    await this.#stop();
    this.#conversation = new Conversation();
    this.#keep();
    this.#showAll();
    this.#text.focus();
  }

  #send() {
    const content = this.#text.value.trim();
    if (content === '' || this.#writing) return;
    this.#empty.remove();
    this.#conversation.say(content);
    this.#showUser(this.#conversation.messages.at(-1), this.#conversation.length - 1);
    this.#text.value = '';
    this.#fit();
    this.#answer();
  }

  async #stop() {
    this.#writing?.abort.abort();
    await this.#writing?.done;
  }

  #answer() {
    const abort = new AbortController();
    const request = this.#conversation.toRequest(this.#settingsNow());
    const answer = this.#conversation.beginAnswer(), at = this.#conversation.length - 1;
    const message = this.#makeAnswer(answer);
    message.begin();
    this.#follow(true);
    this.#showWriting(true);
    this.#writing = {abort, done: this.#write(request, answer, message, abort.signal).finally(() => {
      delete answer.progress;
      const near = this.#isNear();
      message.end({onAgain: () => this.#again(at)});
      this.#follow(near);
      this.#writing = null;
      this.#showWriting(false);
      this.#keep();
    })};
  }

  async #write(request, answer, message, signal) {
    try {
      const response = await callApi('v1/chat/completions', {body: request, signal});
      let ended = false;
      await readEvents(response, ({data}) => {
        if (data === '[DONE]') ended = true;
        if (ended) return;
        const near = this.#isNear();
        const what = takeChunk(answer, JSON.parse(data));
        if (what === 'progress') message.showProgress();
        if (what === 'text') message.showText(() => this.#follow(near));
      });
      if (!ended) throw new Error('the connection was lost before the end of the answer');
    } catch (error) {
      if (signal.aborted) answer.stopped = true;
      else answer.error = error.status || !(error instanceof TypeError) ? error.message : 'the server cannot be reached';
    }
  }

  #showWriting(writing) {
    const stop = find('stop'), had = document.activeElement === stop;
    find('send').hidden = writing;
    stop.hidden = !writing;
    if (had && !writing) this.#text.focus();
  }

  #isNear() {
    const {scrollTop, clientHeight, scrollHeight} = this.#messages;
    return scrollHeight - scrollTop - clientHeight < kNear;
  }
  #follow(follow) {
    if (follow) this.#messages.scrollTop = this.#messages.scrollHeight;
  }
}
