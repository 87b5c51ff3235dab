// The library: assets picked in one folder after another stay in a tray until they are attached, copied or dropped.
import { $, $$, copy, openPane, say, send } from './app.js';

const tray = $('#tray'), grid = $('.ibmain');
const picked = () => { try { return JSON.parse(sessionStorage.tray || '[]'); } catch { return []; } };
const keep = all => { sessionStorage.tray = JSON.stringify(all); draw(); };
const toggle = uri => keep(picked().includes(uri) ? picked().filter(one => one !== uri) : [...picked(), uri]);

function draw() {
  const all = picked();
  for (const cell of $$('.cell', grid)) {
    const box = $('input', cell) || addBox(cell);
    box.checked = all.includes($('a', cell).dataset.uri);
  }
  tray.hidden = !all.length; $('[data-n]', tray).textContent = all.length;
}
function addBox(cell) {
  const box = Object.assign(document.createElement('input'),
    { type: 'checkbox', tabIndex: -1, ariaLabel: `Pick ${$('a > span:last-child', cell).firstChild.textContent}` });
  const label = Object.assign(document.createElement('label'), { className: 'check' });
  box.onchange = () => toggle($('a', cell).dataset.uri);
  label.append(box); cell.append(label); return box;
}

/* keys in the grid: arrows, Space opens beside, X picks */
function step(link, dx, dy) {
  const all = $$('.cell a', grid), at = all.indexOf(link),
    across = all.filter(one => one.getBoundingClientRect().top === all[0].getBoundingClientRect().top).length;
  all[at + dx + dy * across]?.focus();
}
const KEYS = {
  ArrowLeft: link => step(link, -1, 0), ArrowRight: link => step(link, 1, 0),
  ArrowUp: link => step(link, 0, -1), ArrowDown: link => step(link, 0, 1),
  ' ': link => openPane(link.getAttribute('href')), x: link => toggle(link.dataset.uri) };
grid.addEventListener('keydown', e => {
  const link = e.target.closest('.cell a'), isOff = e.key.length === 1 && localStorage.keys === 'off';
  if (!link || !KEYS[e.key] || isOff || e.metaKey || e.ctrlKey || e.altKey) return;
  e.preventDefault(); e.stopPropagation(); KEYS[e.key](link);
});

tray.addEventListener('click', e => {
  const does = e.target.closest('[data-tray]')?.dataset.tray;
  if (does === 'copy') copy(picked().join('\n')); else if (does === 'clear') keep([]);
});
tray.addEventListener('submit', async e => {
  e.preventDefault();
  const ref = tray.elements.ref.value.trim().toUpperCase(), all = picked();
  const answer = await send(`/t/${ref}/attach/`, all.map(uri => ['uri', uri])).catch(() => null);
  if (!answer?.ok) { const told = await answer?.json().catch(() => null); return say(told?.error?.message || 'The server does not answer.'); }
  keep([]); say(`${all.length} attached to ${ref}`); openPane(`/t/${ref}/`);
});
draw();
