// Board and list: moves by pointer, menu and keys, filters in the URL, bulk edits, and live updates.
import { $, $$, announce, icon, isWriting, keys, mayWrite, me, openItems, openPane, pane, say, send } from './app.js';

const board = $('#board'), menu = $('#menu'), layout = board?.dataset.layout;
const STATUSES = { open: 'Open', in_progress: 'In progress', blocked: 'Blocked', done: 'Done', cancelled: 'Cancelled' };
const column = (key, within = board) => within && $$('.col', within).find(col => col.dataset.col === key);
/* lanes: a row for each epic, with the columns by status in it */
const hasLanes = () => layout === 'board' && board.dataset.group !== 'status';
const laneOf = key => $$('.lane', board).find(lane => lane.dataset.lane === key);
const isByStatus = () => hasLanes() || board?.dataset.group === 'status';
const homeOf = card => hasLanes() ? laneOf(card.dataset.g || '') : board;
const keyOf = card => isByStatus() ? card.dataset.s : board.dataset.group === 'none' ? '' : card.dataset.g || '';
const columnOf = card => column(keyOf(card), homeOf(card));
const count = (key, by) => { const n = column(key) && $('.n', column(key)); if (n) n.textContent = +n.textContent + by; };

/* moves, to another column, lane or both: shown at once, one write, reverted when rejected, undone by Z */
function place(card, status, lane) {
  const before = card.dataset.s, button = $('.mv', card);
  card.dataset.s = status; if (hasLanes()) card.dataset.g = lane;
  if (isByStatus()) { count(before, -1); count(status, 1); const to = columnOf(card); if (to) $('ol', to).prepend(card); }
  button.className = `mv s-${status}`;
  button.ariaLabel = `Status of ${card.id}: ${STATUSES[status]}`;
  $('use', button).setAttribute('href', `${document.body.dataset.icons}#${status}`);
}
const refusedMove = told => told?.error?.code === 'conflict' ? 'Another user moved it meanwhile.' : told?.error?.message || 'The server does not answer.';
export async function move(ref, status, { lane, undone = false } = {}) {
  const card = document.getElementById(ref); if (!card || !mayWrite) return;
  const old = card.dataset.s, oldLane = card.dataset.g || '', from = card.parentElement,
    next = card.nextElementSibling, focused = card.contains(document.activeElement);
  lane ??= oldLane;
  const fields = { ...status !== old && { status, status_etag: card.dataset.e }, ...lane !== oldLane && { epic_id: lane, epic_id_etag: card.dataset.x } };
  if (!Object.keys(fields).length) return;
  place(card, status, lane);
  if (focused) $('a.t', card).focus({ preventScroll: false });
  const answer = await send(`/t/${ref}/move/`, fields).catch(() => null), told = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    place(card, old, oldLane); from.insertBefore(card, next?.parentElement === from ? next : null);
    if (focused) $('a.t', card).focus();
    say(`${ref} was put back. ${refusedMove(told)}`);
    queue(ref); return;
  }
  for (const { uri, etag } of told.results) card.dataset[uri.endsWith('/status') ? 'e' : 'x'] = etag;
  const words = [status !== old && STATUSES[status], lane !== oldLane && MENUS.epic_id.all()[lane]].filter(Boolean).join(', ');
  // In another lane a card shows more or less about its epic, so it is redrawn.
  if (lane === oldLane) card.dataset.v = told.results[0].version; else queue(ref);
  announce(`${ref} moved to ${words}`);
  say(`${ref} → ${words}`, undone ? null : () => move(ref, old, { lane: oldLane, undone: true }));
}

/* the menu of a card: status, priority or assignee */
const PRIORITIES = { none: 'No priority', low: 'Low', medium: 'Medium', high: 'High', urgent: 'Urgent' };
const people = () => Object.fromEntries([['', 'Nobody'],
  ...$$('[data-filters] [name=assignee] option')
    .filter(one => one.value && one.value !== 'none').map(one => [one.value, one.text])]);
const MENUS = {
  status: { all: () => STATUSES, icon: value => value, now: card => card.dataset.s },
  priority: { all: () => PRIORITIES, icon: value => `p${Object.keys(PRIORITIES).indexOf(value)}` },
  assignee: { all: people, icon: () => 'user' },
  epic_id: { all: () => Object.fromEntries($$('[data-filters] [name=epic_id] option').map(one => [one.value, one.value ? one.text : 'No epic'])) },
};
let menuCard = null;
function openMenu(card, field = 'status') {
  if (!mayWrite) return;
  const { all, icon: glyph, now } = MENUS[field], at = $('.mv', card).getBoundingClientRect();
  menuCard = card; menu.dataset.field = field; menu.ariaLabel = `Set ${field} of ${card.id}`;
  menu.replaceChildren(...Object.entries(all()).map(([value, word], place) => {
    const button = Object.assign(document.createElement('button'), { value, role: 'menuitem' });
    button.innerHTML = icon(glyph(value)) + (place < 9 ? `<kbd>${place + 1}</kbd>` : '');
    button.firstElementChild.after(word); return button;
  }));
  menu.showPopover();
  menu.style.left = Math.min(at.left, innerWidth - menu.offsetWidth - 8) + 'px';
  menu.style.top = Math.max(8, Math.min(at.bottom + 4, innerHeight - menu.offsetHeight - 8)) + 'px';
  ((now && $(`button[value=${now(card)}]`, menu)) || $('button', menu)).focus();
}
menu.addEventListener('click', e => {
  const choice = e.target.closest('button'), { field } = menu.dataset; if (!choice) return;
  menu.hidePopover(); $('a.t', menuCard).focus();
  field === 'status' ? move(menuCard.id, choice.value) : assign(menuCard.id, field, choice.value);
});
/* another field of a card: written, then redrawn */
async function assign(ref, field, value, { undone = false } = {}) {
  const answer = await send(`/t/${ref}/set/`, { field, value }).catch(() => null), told = await answer?.json().catch(() => null);
  if (!answer?.ok) return say(`${ref} was not changed. ${told?.error?.message || 'The server does not answer.'}`);
  const word = MENUS[field].all()[value] || value; announce(`${ref}: ${field} ${word}`);
  say(`${ref}: ${word}`, undone ? null : () => assign(ref, field, told.diff.before || '', { undone: true }));
  queue(ref);
}
menu.addEventListener('keydown', e => {
  const all = $$('button', menu), at = all.indexOf(document.activeElement);
  if (e.key === 'ArrowDown') all[(at + 1) % all.length].focus(); else if (e.key === 'ArrowUp') all.at(at - 1).focus();
  else if (/^[1-9]$/.test(e.key)) all[e.key - 1]?.click();
  else if (e.key === 'Escape') { menu.hidePopover(); $('a.t', menuCard).focus(); } else return;
  e.preventDefault(); e.stopPropagation();
});

if (board) {
  board.addEventListener('click', e => { const button = e.target.closest('.mv'); if (button) { e.stopPropagation(); openMenu(button.closest('.card')); } });
  let dragged = null;
  board.addEventListener('dragstart', e => {
    dragged = mayWrite ? e.target.closest('.card') : null; if (!dragged) return e.preventDefault();
    dragged.classList.add('drag'); e.dataTransfer.setData('text/plain', `mcp://backlog/tasks/${dragged.id}`);
  });
  board.addEventListener('dragover', e => {
    const over = e.target.closest('.col'); if (!over || !dragged || !isByStatus()) return; e.preventDefault();
    $$('.over').forEach(col => col !== over && col.classList.remove('over')); over.classList.add('over');
  });
  board.addEventListener('drop', e => { const over = e.target.closest('.col'); if (over && dragged) { e.preventDefault(); drop(dragged, over); } });
  const drop = (card, col) => move(card.id, col.dataset.col, { lane: col.closest('.lane')?.dataset.lane });
  board.addEventListener('dragend', () => { dragged?.classList.remove('drag'); dragged = null; $$('.over').forEach(col => col.classList.remove('over')); });
}

/* filters live in the URL; Back goes back through them */
const filters = $('[data-filters]');
async function refill(url) {
  const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
  if (!answer.ok) return say('These filters cannot be used together.');
  board.innerHTML = await answer.text();
  $('#total', filters).textContent = $('.total', board).textContent; $('.total', board).remove();
  board.dataset.group = new URL(url, location).searchParams.get('group') || 'status';
  htmx.process(board); prepare(); markView();
}
if (filters) {
  let timer;
  $('.total', board)?.remove();
  const apply = () => {
    const here = new URL(location);
    for (const { name } of filters.elements) if (name) here.searchParams.delete(name);
    for (const [name, value] of new FormData(filters)) if (value && !(name === 'group' && value === 'status')) here.searchParams.set(name, value);
    if (here.href === location.href) return;
    history.pushState(history.state, '', here); refill(here);
  };
  filters.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(apply, 200); });
  filters.addEventListener('submit', e => { e.preventDefault(); apply(); });
  addEventListener('backlog:navigated', () => {
    const wanted = new URL(location).searchParams;
    for (const field of filters.elements) if (field.name)
      field.type === 'checkbox' ? field.checked = wanted.has(field.name)
        : field.value = wanted.get(field.name) || (field.name === 'group' ? 'status' : '');
    refill(location.href);
  });
}

/* views: named filters, as tabs; saved ones stay in this browser */
const views = $('#views');
const queryOf = url => { const wanted = new URL(url, location).searchParams; wanted.delete('open'); wanted.sort(); return wanted.toString(); };
const savedViews = () => { try { return JSON.parse(localStorage.views || '[]'); } catch { return []; } };
const keepViews = all => { localStorage.views = JSON.stringify(all); drawViews(); };
function drawViews() {
  $$('.view', views).forEach(one => one.remove());
  $('.adder', views).before(...savedViews().map(({ name, query }) => {
    const tab = Object.assign(document.createElement('span'), { className: 'view' }),
      link = Object.assign(document.createElement('a'), { href: '?' + query, textContent: name });
    const forget = Object.assign(document.createElement('button'), {
      ariaLabel: `Forget the view ${name}`, innerHTML: icon('x'),
      onclick: () => keepViews(savedViews().filter(one => one.query !== query)) });
    tab.append(link, forget); return tab;
  }));
  markView();
}
function markView() {
  const here = queryOf(location), links = $$('a', views);
  links.forEach(link => queryOf(link.getAttribute('href')) === here ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current'));
  $('.adder', views).hidden = links.some(link => link.hasAttribute('aria-current'));
}
if (views) {
  $('form', views).onsubmit = e => {
    e.preventDefault();
    keepViews([...savedViews(), { name: e.target.elements.name.value, query: queryOf(location) }]);
    e.target.reset(); $('.adder', views).open = false;
  };
  drawViews();
}

/* keys */
const current = () => document.activeElement?.closest?.('.card');
const focusOn = card => {
  const link = card && $('a.t', card); if (!link) return;
  $$('.card a.t[tabindex="0"]').forEach(one => { one.tabIndex = -1; }); link.tabIndex = 0; link.focus();
};
function go(dx, dy) {
  const card = current(); if (!card) { focusOn($('.card', board || document)); return; }
  if (dy) {
    const all = layout === 'list' ? $$('.card', board) : hasLanes() ? $$(`.col[data-col=${card.dataset.s}] .card`, board) : $$('.card', card.parentElement);
    focusOn(all[all.indexOf(card) + dy]);
  } else {
    const cols = $$('.col', card.closest('.lane') || board), row = $$('.card', card.parentElement).indexOf(card);
    let at = cols.indexOf(card.closest('.col')) + dx;
    while (cols[at] && !$('.card', cols[at])) at += dx;
    const there = cols[at] ? $$('.card', cols[at]) : []; focusOn(there[Math.min(row, there.length - 1)]);
  }
  follow();
}
let following;
function follow() {
  const card = current(); if (pane.hidden || !card || innerWidth < 900) return;
  clearTimeout(following);
  following = setTimeout(async () => {
    await openPane(`/t/${card.id}/`, { push: false }); focusOn(document.getElementById(card.id));
  }, 140);
}
function shift(by) {
  const card = current(), all = Object.keys(STATUSES); if (!card) return false;
  const to = all[all.indexOf(card.dataset.s) + by]; if (to) move(card.id, to);
}
function shiftLane(by) {
  const card = current(), lanes = $$('.lane', board || document);
  if (!card || !lanes.length) return false;
  const to = lanes[lanes.indexOf(card.closest('.lane')) + by];
  if (to) move(card.id, card.dataset.s, { lane: to.dataset.lane });
}
const onCard = run => e => { const card = current(); if (!card) return false; run(card, e); };
/* the field of the open task */
const edits = field => () => {
  const card = current(); if (card) return openMenu(card, field);
  const form = openItems().flatMap(holder => $$('.meta form', holder)).find(one => one.elements.field.value === field), choice = form?.elements.value;
  if (!choice) return false;
  choice.focus(); try { choice.showPicker(); } catch { /* unsupported by this browser */ }
};
Object.assign(keys, {
  j: () => go(0, 1), k: () => go(0, -1), h: () => go(-1, 0), l: () => go(1, 0),
  ArrowDown: onCard(() => go(0, 1)), ArrowUp: onCard(() => go(0, -1)), ArrowRight: onCard(() => go(1, 0)), ArrowLeft: onCard(() => go(-1, 0)),
  'Shift+ArrowRight': () => shift(1), 'Shift+ArrowLeft': () => shift(-1), 'Shift+ArrowDown': () => shiftLane(1), 'Shift+ArrowUp': () => shiftLane(-1),
  ' ': onCard(card => openPane(`/t/${card.id}/`)), s: edits('status'), p: edits('priority'), a: edits('assignee'),
  i: onCard(card => assign(card.id, 'assignee', me)), x: onCard(card => pick(card)),
});

/* the list: bulk edits, one batch, one undo */
const bulk = $('#bulk');
function pick(card, on = !('picked' in card.dataset)) {
  if (!bulk) return;
  if (on) card.dataset.picked = ''; else delete card.dataset.picked;
  const box = $('.pick input', card); if (box) box.checked = on;
  const all = $$('.card[data-picked]', board); bulk.hidden = !all.length; $('[data-n]', bulk).textContent = all.length;
}
function prepare() {
  const first = board && $('.card a.t', board); if (first && !$('.card a.t[tabindex="0"]', board)) first.tabIndex = 0;
  if (bulk) for (const card of $$('.card:not(:has(.pick))', board)) {
    const span = document.createElement('span'); span.className = 'pick';
    span.innerHTML = `<input type="checkbox" tabindex="-1" aria-label="Select ${card.id}">`; card.prepend(span);
  }
}
let lastPicked = null;
board?.addEventListener('click', e => {
  const box = e.target.closest('.pick input'); if (!box) return;
  const card = box.closest('.card'), all = $$('.card', board);
  if (e.shiftKey && lastPicked) {
    const [from, to] = [all.indexOf(lastPicked), all.indexOf(card)].sort((a, b) => a - b);
    all.slice(from, to + 1).forEach(one => pick(one, box.checked));
  } else pick(card, box.checked);
  lastPicked = card;
});
bulk?.addEventListener('change', async e => {
  const refs = $$('.card[data-picked]', board).map(card => card.id), field = e.target.name, value = e.target.value; e.target.value = '';
  const answer = await send('/bulk/', { field, value, ids: refs }).catch(() => null), told = await answer?.json().catch(() => null);
  if (!answer?.ok) return say(told?.error?.message || 'The server does not answer.');
  const done = refs.length - told.failed;
  say(`${done} of ${refs.length} changed`, async () => {
    const undone = await send('/undo/', { batch: told.batch });
    say(undone.ok ? 'Undone' : 'Some of it was changed since'); refs.forEach(queue);
  });
  refs.forEach(queue);
});
bulk?.addEventListener('click', e => { if (e.target.closest('[data-act=clear]')) $$('.card[data-picked]', board).forEach(card => pick(card, false)); });

/* remote changes: named by notices, fetched together, at most one request at a time */
const waiting = new Set(), writers = new Map(); let timer = 0, fetching = false, flushed = 0;
export function queue(ref) { if (!board) return; waiting.add(ref); timer ||= setTimeout(flush, Math.max(150, flushed + 800 - Date.now())); }
async function flush() {
  timer = 0;
  if (fetching) { timer = setTimeout(flush, 300); return; }
  const refs = [...waiting].slice(0, 200); refs.forEach(ref => waiting.delete(ref));
  if (!refs.length) return;
  fetching = true; flushed = Date.now();
  try {
    const url = new URL('/cards/', location); url.search = location.search; url.searchParams.delete('open');
    url.searchParams.set('ids', refs); url.searchParams.set('group', board.dataset.group);
    const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
    if (answer.ok) show(refs, new DOMParser().parseFromString(await answer.text(), 'text/html'));
  } catch { refs.forEach(ref => waiting.add(ref)); } finally { fetching = false; }
  if (waiting.size) timer ||= setTimeout(flush, 800);
}
function show(refs, page) {
  const isElsewhere = card => hasLanes() && !homeOf(card);
  if ($('.empty', board) ? $('.card', page) : $$('.card', page).some(isElsewhere)) { refill(location.href); return; }
  for (const ref of refs) {
    const fresh = page.getElementById(ref), old = document.getElementById(ref);
    if (!fresh) { old?.remove(); continue; }
    const focused = old?.contains(document.activeElement), stays = old && columnOf(old) === columnOf(fresh);
    if (stays && +old.dataset.v >= +fresh.dataset.v && old.dataset.e === fresh.dataset.e) continue;
    if (old?.classList.contains('on')) fresh.classList.add('on');
    if (stays) old.replaceWith(fresh); else { old?.remove(); const col = columnOf(fresh); if (col) $('ol', col).prepend(fresh); }
    fresh.classList.add('flash');
    const who = writers.get(ref); writers.delete(ref);
    if (who) { fresh.dataset.by = who; setTimeout(() => delete fresh.dataset.by, 5000); }
    if (focused) $('a.t', fresh).focus({ preventScroll: true });
  }
  const counts = JSON.parse($('[data-counts]', page)?.dataset.counts || '{}');
  let total = 0;
  for (const [key, n] of Object.entries(counts)) { total += n; const at = hasLanes() ? laneOf(key) : column(key); if (at) $('.n', at).textContent = n; }
  if (filters) $('#total', filters).textContent = `${total} task${total === 1 ? '' : 's'}`;
  prepare();
}
addEventListener('backlog:changed', e => queue(e.detail.ref));

/* the open task updates, unless the user is editing it */
let refreshing = 0;
function refresh(notice) {
  for (const holder of openItems()) {
    const item = $('.item', holder);
    const concerns = notice.kind === 'comment' || (notice.id === item.dataset.ref && notice.version > +item.dataset.v);
    if (!concerns) continue;
    if (isWriting(holder)) { remark(holder, notice); continue; }
    clearTimeout(refreshing);
    refreshing = setTimeout(() => {
      if (!isWriting(holder)) htmx.ajax('GET', `/t/${item.dataset.ref}/`, {
        target: holder, swap: 'innerMorph', refreshes: item.dataset.ref });
    }, 250);
  }
}
function remark(holder, notice) {
  if (notice.kind === 'comment' || $('.changed', holder)) return;
  const note = Object.assign(document.createElement('p'), { className: 'notice changed', role: 'status' });
  note.textContent = `Changed by ${notice.agent || notice.author || 'another user'} meanwhile. Saving shows you both versions.`;
  $('.phead', holder)?.after(note);
}
function told(notice) {
  const lamp = $('.live'), who = notice.agent || notice.author;
  lamp.title = `${who}: ${notice.id} ${notice.action}`;
  if (notice.kind === 'task') { if (notice.agent || notice.author !== me) writers.set(notice.id, who); queue(notice.id); }
  refresh(notice); countNew();
}
/* on the activity page: a count of new entries, not a list that jumps */
let newer = 0;
function countNew() { const link = $('.newer a'); if (link) { link.textContent = `${++newer} new`; link.parentElement.hidden = false; } }

/* one connection for the whole browser: the tab that holds the lock listens and notifies the others */
const lamp = $('.live'), channel = new BroadcastChannel('backlog-live');
let position = document.body.dataset.position || '';
const light = on => { lamp.dataset.on = on; lamp.lastElementChild.textContent = on === '1' ? 'Live' : 'Reconnecting…'; };
channel.onmessage = ({ data }) => {
  if (data.notice) { position = data.notice.cursor; told(data.notice); }
  if (data.on) light(data.on);
  if (data.hello && leading) { channel.postMessage({ on: lamp.dataset.on }); }
};
let leading = false;
function listen() {
  leading = true;
  const source = new EventSource('/api/v1/events/' + (position ? `?last_event_id=${position}` : ''));
  source.onopen = () => { light('1'); channel.postMessage({ on: '1' }); };
  source.onerror = () => {
    light('0'); channel.postMessage({ on: '0' });
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { source.close(); listen(); }, 5000);
  };
  source.onmessage = message => {
    const notice = JSON.parse(message.data); position = message.lastEventId;
    notice.cursor = position; channel.postMessage({ notice }); told(notice);
  };
  return source;
}
// Users without a role receive no notices.
if (!lamp) channel.close();
else if (navigator.locks) {
  navigator.locks.request('backlog-live', () => new Promise(() => listen()));
  channel.postMessage({ hello: 1 });
} else {
  // Without a secure context there are no locks: a tab listens while it is visible.
  let source = null;
  const watch = () => { if (document.hidden) { source?.close(); source = null; } else source ??= listen(); };
  document.addEventListener('visibilitychange', watch); watch();
}
prepare();
