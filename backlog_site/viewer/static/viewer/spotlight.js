// The search box: cached titles match at once, the server adds full-text hits. Fully usable by keyboard.
import { $, $$, actions, icon, openPane, pane } from './app.js';

const box = $('#spot');
const input = $('input', box), list = $('#found');
const COMMANDS = [
  ['Go to desk', '/', 'G D'], ['Go to board', '/board/', 'G B'], ['Go to list', '/list/', 'G L'],
  ['Go to epics', '/epics/', 'G E'], ['Go to resources', '/files/', 'G R'], ['Go to activity', '/activity/', 'G A'],
  ['Go to insights', '/insights/', 'G N'], ['Go to sync jobs', '/sync/', 'G S'],
  ['Connect your agent', '/connect/', 'G C'], ['Create a task', '/new/', 'C', 'create'],
  ['Switch theme', '#', 'T', 'theme'], ['Keyboard shortcuts', '#', '?', 'keys'],
  ['My profile and sessions', '/profile/', '']];
let titles = null, kind = '', chosen = 0, timer, asking;

const escape = text => text.replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const marked = (text, word) => {
  const at = word ? text.toLowerCase().indexOf(word) : -1;
  return at < 0 ? escape(text)
    : `${escape(text.slice(0, at))}<mark>${escape(text.slice(at, at + word.length))}</mark>${escape(text.slice(at + word.length))}`;
};
const load = () => titles ??= fetch('/spotlight/titles.json').then(answer => answer.json())
  .then(({ items }) => items.map(([ref, title, status]) =>
    ({ ref, title, status, text: `${ref} ${title}`.toLowerCase() })))
  .catch(() => { titles = null; return []; });
const options = () => $$('[role=option]', list);
const heading = word => `<div class="g" role="presentation">${word}</div>`;
const titleOption = (one, word) => `<a role="option" tabindex="-1" href="/t/${one.ref}/" data-id="${one.ref}">${
  icon(one.ref.startsWith('EPIC') ? 'epic' : one.status)}<span class="tt">${
  marked(one.title, word)}</span><span class="ref">${one.ref}</span></a>`;
const commandOption = ([name, url, key, act]) => `<a role="option" tabindex="-1" href="${url}"${
  act ? ` data-does="${act}"` : ''}>${icon('chevron')}<span class="tt">${name}</span>${
  key ? `<kbd>${key}</kbd>` : ''}</a>`;

// The box opens before this module loads and may already hold words.
export const start = () => { load(); search(); };
function choose(at) {
  const all = options();
  if (!all.length) { input.removeAttribute('aria-activedescendant'); return; }
  chosen = (at + all.length) % all.length;
  all.forEach((one, place) => { one.id = `found-${place}`; one.setAttribute('aria-selected', place === chosen); });
  all[chosen].scrollIntoView({ block: 'nearest' });
  input.setAttribute('aria-activedescendant', all[chosen].id);
}
async function search() {
  const started = performance.now(), words = input.value.trim(), lower = words.toLowerCase();
  clearTimeout(timer); asking?.abort();
  const all = await load(); if (words !== input.value.trim()) return;
  const onlyCommands = words.startsWith('>'), named = lower.replace(/^>\s*/, ''), parts = lower.split(/\s+/);
  // Only the server parses filters.
  const isFiltered = parts.some(part => /^@.|^(status|label|epic):./.test(part));
  const near = words && !onlyCommands && !isFiltered && (!kind || kind === 'task' || kind === 'epic')
    ? all.filter(one => (!kind || one.ref.toLowerCase().startsWith(kind)) && parts.every(part => one.text.includes(part)))
      .sort((a, b) => (b.ref.toLowerCase() === lower) - (a.ref.toLowerCase() === lower)).slice(0, 6)
    : !words && !kind ? all.slice(0, 5) : [];
  const commands = kind ? [] : COMMANDS.filter(([name]) => name.toLowerCase().includes(named)).slice(0, onlyCommands ? 13 : words ? 3 : 6);
  list.innerHTML = (near.length
    ? heading(words ? 'Titles' : 'Recent') + near.map(one => titleOption(one, lower)).join('') : '')
    + (commands.length ? heading('Commands') + commands.map(commandOption).join('') : '') + '<div id="from-server"></div>';
  choose(0); count();
  performance.measure('spotlight:local', { start: started });
  if (words.length > 1 && !onlyCommands) timer = setTimeout(ask, 60, words, near, started);
}
async function ask(words, near, started) {
  asking = new AbortController();
  const place = $('#from-server');
  try {
    const answer = await fetch(`/spotlight/?${new URLSearchParams({ q: words, type: kind })}`, { signal: asking.signal, headers: { 'HX-Request': 'true' } });
    place.innerHTML = answer.ok ? await answer.text() : '<p class="none">Search is unavailable. Titles still work.</p>';
  } catch (error) { if (error.name === 'AbortError') return; place.innerHTML = '<p class="none">Search is unavailable. Titles still work.</p>'; }
  const known = new Set(near.map(one => one.ref));
  $$('[role=option]', place).forEach(one => known.has(one.dataset.id) && one.remove());
  if (!$('[role=option]', place)) $('.g', place)?.remove();
  choose(chosen); count();
  performance.measure('spotlight:server', { start: started });
}
const count = () => { const n = options().length; $('#found-count').textContent = `${n} result${n === 1 ? '' : 's'}`; };
function go(option, asPage) {
  if (!option) return;
  box.close();
  const url = option.getAttribute('href');
  if (option.dataset.does) actions[option.dataset.does](option);
  else if (!asPage && pane && /^\/(t|open)\//.test(url)) openPane(url);
  else location = url;
}
function setKind(value) {
  kind = value; $$('[data-kind]', box).forEach(one => one.setAttribute('aria-pressed', one.dataset.kind === value));
  search(); input.focus();
}
input.addEventListener('input', search);
input.addEventListener('keydown', e => {
  if (e.key === 'ArrowDown') choose(chosen + 1); else if (e.key === 'ArrowUp') choose(chosen - 1);
  else if (e.key === 'Escape') box.close();
  else if (e.key === 'Enter') go(options()[chosen], e.metaKey || e.ctrlKey);
  else if (e.key === 'Tab') {
    const all = $$('[data-kind]', box).map(one => one.dataset.kind);
    setKind(all.at((all.indexOf(kind) + (e.shiftKey ? -1 : 1)) % all.length));
  } else return;
  e.preventDefault(); e.stopPropagation();
});
list.addEventListener('click', e => {
  const option = e.target.closest('[role=option]');
  if (option) { e.preventDefault(); e.stopPropagation(); go(option, e.metaKey || e.ctrlKey); }
});
box.addEventListener('click', e => { const pill = e.target.closest('[data-kind]'); if (pill) setKind(pill.dataset.kind); });
box.addEventListener('close', () => { titles = null; });
