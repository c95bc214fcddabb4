// Asks this server, with the key that its reader has given for this tab.
import {find, recall, remember, setText} from './dom.mjs';

let key = recall('sessionStorage', 'key');
let asking = null;  // while the dialog is open: what all who need the key wait for
const waiting = [];   // who are to be called when another key is given

export class ApiError extends Error {
  constructor(message, status, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

// A response that is a good one. Asks for a key if the server does.
export async function callApi(path, {body, signal} = {}) {
  for (;;) {
    const used = key;
    const headers = {};
    if (used) headers.Authorization = `Bearer ${used}`;
    if (body) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, {method: body ? 'POST' : 'GET', headers, signal, cache: 'no-store',
                                        body: body && JSON.stringify(body)});
    if (response.ok) return response;
    if (response.status !== 401) throw await errorOf(response);
    await response.body?.cancel();
    if (used === key && !await askForKey(Boolean(used))) throw new ApiError('this server asks for a key', 401);
  }
}

// Once the reader, who would give none before, has given a key.
export function keyGiven() {
  return new Promise((given) => waiting.push(given));
}

async function errorOf(response) {
  let message = `the server answers ${response.status}`;
  try {
    const said = await response.json();
    message = said.error?.message ?? message;
  } catch {
    // It was no JSON: the status has to do.
  }
  return new ApiError(message, response.status, Number(response.headers.get('Retry-After')) || 0);
}

function askForKey(wrong) {
  asking ??= new Promise((resolve) => {
    const dialog = find('key-dialog'), input = find('key'), note = find('key-note');
    if (wrong) setText(note, 'The server does not know that key. Another one?');
    note.classList.toggle('wrong', wrong);
    input.value = '';
    let given = false;
    find('key-form').onsubmit = (event) => {
      event.preventDefault();
      key = input.value.trim();
      remember('sessionStorage', 'key', key);
      given = true;
      dialog.close();
      for (const call of waiting.splice(0)) call();
    };
    dialog.onclose = () => {
      asking = null;
      resolve(given);
    };
    dialog.showModal();
  });
  return asking;
}
