// Completes @ people, # or TASK- tasks, mcp:// and ib:// addresses during typing, fully by keyboard.
// A textarea may not be called a combobox: it stays a text field that names its list and the selected option.
import { $, $$, announce, icon } from './app.js';

const WORD = /(?:^|[\s([<"'`])(@[\w.+-]*|#[\p{L}\p{N}_][\p{L}\p{N}_-]*|(?:TASK|EPIC)-\d*|(?:mcp|ib):\/\/[^\s<>"'`()[\]{}|]*)$/iu;
const LONGEST = 200;
const list = Object.assign(document.createElement('div'),
  { id: 'suggest', className: 'menu suggest', popover: 'manual', role: 'listbox', ariaLabel: 'Suggestions' });
let area = null, word = '', chosen = 0, timer, asking;

const wordOf = field => field.selectionStart === field.selectionEnd
  ? field.value.slice(Math.max(0, field.selectionStart - LONGEST), field.selectionStart).match(WORD)?.[1] || '' : '';
const isOpen = () => list.isConnected && list.matches(':popover-open');
const options = () => $$('[role=option]', list);

function close() {
  clearTimeout(timer); asking?.abort();
  if (isOpen()) list.hidePopover();
  area?.removeAttribute('aria-activedescendant'); area?.removeAttribute('aria-controls');
}
function choose(at) {
  const all = options(); chosen = (at + all.length) % all.length;
  all.forEach((one, place) => one.setAttribute('aria-selected', place === chosen));
  all[chosen].scrollIntoView({ block: 'nearest' });
  area.setAttribute('aria-activedescendant', all[chosen].id);
}
async function ask() {
  const typed = word; asking = new AbortController();
  const answer = await fetch(`/suggest/?${new URLSearchParams({ q: typed })}`, { signal: asking.signal }).catch(() => null);
  const told = answer?.ok && await answer.json().catch(() => null);
  if (!told || typed !== word || document.activeElement !== area) return;
  const found = told.suggestions.filter(one => one.text !== typed);
  if (found.length) open(found); else close();
}
function open(found) {
  list.replaceChildren(...found.map(option));
  // Beside the form: inside a label it would become part of the field's name, outside a dialog it could not be reached.
  (area.form || area).after(list);
  if (!isOpen()) list.showPopover();
  area.setAttribute('aria-haspopup', 'listbox'); area.setAttribute('aria-autocomplete', 'list'); area.setAttribute('aria-controls', list.id);
  const at = caret(area);
  list.style.left = Math.max(8, Math.min(at.left, innerWidth - list.offsetWidth - 8)) + 'px';
  list.style.top = (at.bottom + list.offsetHeight + 8 < innerHeight ? at.bottom + 4 : Math.max(8, at.top - list.offsetHeight - 4)) + 'px';
  choose(0); announce(`${found.length} suggestion${found.length === 1 ? '' : 's'}`);
}
function option({ text, title, icon: glyph }, place) {
  const made = Object.assign(document.createElement('div'), { role: 'option', id: `suggest-${place}`, innerHTML: icon(glyph) });
  made.dataset.text = text;
  for (const [css, words] of [['tt', title || text], ['ref', title ? text : '']])
    made.append(Object.assign(document.createElement('span'), { className: css, textContent: words }));
  return made;
}
/* where the word begins: the same text in a box of the same shape */
const SHAPE = ['boxSizing', 'width', 'borderTopWidth', 'borderLeftWidth', 'borderRightWidth', 'paddingTop',
  'paddingLeft', 'paddingRight', 'font', 'letterSpacing', 'tabSize', 'overflowWrap'];
function caret(field) {
  const twin = document.createElement('div'), mark = document.createElement('span'), css = getComputedStyle(field), box = field.getBoundingClientRect();
  for (const name of SHAPE) twin.style[name] = css[name];
  Object.assign(twin.style, { position: 'absolute', visibility: 'hidden', whiteSpace: 'pre-wrap', borderStyle: 'solid' });
  twin.append(field.value.slice(0, field.selectionStart - word.length), mark); mark.textContent = word || '.';
  document.body.append(twin);
  const left = box.left + mark.offsetLeft - field.scrollLeft, top = box.top + mark.offsetTop - field.scrollTop;
  twin.remove();
  const line = parseFloat(css.lineHeight) || 20, seen = Math.min(Math.max(top, box.top), box.bottom - line);
  return { left, top: seen, bottom: seen + line };
}
function take(made) {
  const { text } = made.dataset, goesOn = text.endsWith('/'), end = area.selectionStart;
  close();
  area.setSelectionRange(end - word.length, end);
  // So that the browser's undo reverts it; it also fires input events.
  if (!document.execCommand('insertText', false, goesOn ? text : `${text} `))
    area.setRangeText(goesOn ? text : `${text} `, area.selectionStart, area.selectionEnd, 'end');
}

function attend(field) {
  area = field; word = wordOf(area);
  clearTimeout(timer); asking?.abort();
  if (word) timer = setTimeout(ask, 80); else close();
}
document.addEventListener('input', e => { if (e.target.matches?.('textarea') && !e.isComposing) attend(e.target); });
// Before all other listeners: an Escape that closes the list must not close the dialog as well.
document.addEventListener('keydown', e => {
  if (!isOpen() || e.target !== area || e.isComposing) return;
  const plain = !(e.shiftKey || e.metaKey || e.ctrlKey || e.altKey);
  if (e.key === 'ArrowDown' && plain) choose(chosen + 1); else if (e.key === 'ArrowUp' && plain) choose(chosen - 1);
  else if ((e.key === 'Enter' || e.key === 'Tab') && plain) take(options()[chosen]);
  else if (e.key === 'Escape') close(); else { if (/^(Arrow|Home|End|Page)/.test(e.key)) close(); return; }
  e.preventDefault(); e.stopPropagation();
}, true);
document.addEventListener('focusout', e => { if (e.target === area) close(); });
list.addEventListener('pointerdown', e => { e.preventDefault(); const made = e.target.closest('[role=option]'); if (made) take(made); });
// This module is loaded on focus: the field may already have text.
if (document.activeElement?.matches('textarea')) attend(document.activeElement);
