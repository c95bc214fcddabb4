// A conversation as a value: what was said, and what is sent. Pure.
//
// A message: {role: 'user'|'assistant', content, and of an assistant: reasoning, thought_s, usage, troupe, finish, error}.
// What a model has thought is kept for its reader and not sent back.

export class Conversation {
  constructor(messages = []) {
    this.messages = messages.filter((message) => ['user', 'assistant'].includes(message?.role) && typeof message.content === 'string');
  }

  get length() {
    return this.messages.length;
  }

  say(content) {
    this.messages.push({role: 'user', content});
  }

  // Says something else in place of message `at`; what followed is forgotten.
  resay(at, content) {
    this.messages.splice(at);
    this.say(content);
  }

  // Forgets the answer at `at` and what followed, so that it can be given again.
  forgetFrom(at) {
    this.messages.splice(at);
  }

  beginAnswer() {
    const answer = {role: 'assistant', content: ''};
    this.messages.push(answer);
    return answer;
  }

  // The request that asks for the next answer. Settings that are absent are the server's to choose.
  toRequest({system = '', temperature = null, tokens = null, seed = null} = {}) {
    const messages = [];
    if (system.trim() !== '') messages.push({role: 'system', content: system});
    for (const {role, content, error} of this.messages) {
      if (role === 'user' || (content !== '' && !error)) messages.push({role, content});
    }
    const request = {messages, stream: true, stream_options: {include_usage: true}, return_progress: true};
    if (temperature !== null) request.temperature = temperature;
    if (tokens !== null) request.max_tokens = tokens;
    if (seed !== null) request.seed = seed;
    return request;
  }
}

// Takes a chunk of a stream into an answer; says what it was: 'text', 'progress', 'end' or 'nothing'.
// Throws what the server tells as an error.
export function takeChunk(answer, chunk) {
  if (chunk.error) throw new Error(chunk.error.message ?? 'the answer has failed');
  if (chunk.usage) answer.usage = chunk.usage;
  if (chunk.troupe) answer.troupe = chunk.troupe;
  if (chunk.prompt_progress) {
    answer.progress = chunk.prompt_progress;
    return 'progress';
  }
  const choice = chunk.choices?.[0];
  if (choice?.finish_reason) answer.finish = choice.finish_reason;
  const {content, reasoning_content: thought} = choice?.delta ?? {};
  if (thought) answer.reasoning = (answer.reasoning ?? '') + thought;
  if (content) answer.content += content;
  if (thought || content) return 'text';
  return choice?.finish_reason || chunk.usage ? 'end' : 'nothing';
}

// A number of a form's field; null if it is empty or is not one between these.
export function settingOf(text, least, most) {
  const value = Number(text);
  return text.trim() === '' || !Number.isFinite(value) || value < least || value > most ? null : value;
}
