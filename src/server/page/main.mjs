// Begins: what the whole page has, the chat, and the live figures.
import {find, recall, remember} from './dom.mjs';
import {LiveView} from './live.mjs';
import {ChatView} from './chat.mjs';

const kThemes = {auto: 'as the system', dark: 'dark', light: 'light'};

function showTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = find('theme');
  button.title = `Colours: ${kThemes[theme]}`;
  button.setAttribute('aria-label', button.title);
}

function nextTheme(theme) {
  const names = Object.keys(kThemes);
  return names[(names.indexOf(theme) + 1) % names.length];
}

function showView(view) {
  document.body.dataset.view = view;
  for (const name of ['chat', 'live']) find(`view-${name}`).setAttribute('aria-pressed', `${name === view}`);
  liveView.redraw();
}

let theme = recall('localStorage', 'theme');
if (!(theme in kThemes)) theme = 'auto';
showTheme(theme);
const liveView = new LiveView();
find('theme').addEventListener('click', () => {
  theme = nextTheme(theme);
  remember('localStorage', 'theme', theme);
  showTheme(theme);
  liveView.redraw();
});
window.matchMedia('(prefers-color-scheme: light)').addEventListener('change', () => liveView.redraw());
find('view-chat').addEventListener('click', () => showView('chat'));
find('view-live').addEventListener('click', () => showView('live'));
new ChatView();
liveView.run();
