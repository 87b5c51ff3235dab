// Runs the shell of every page: toasts, copying, theme, the split pane, dialogs, hover cards, keys. No build step.
// Works under `script-src 'self'`; parts not needed at once (search box, diagrams) are loaded on demand.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const root = document.documentElement, body = document.body;
export const pane = $('#pane'), dialog = $('#dialog'), mayWrite = 'writes' in body.dataset, me = body.dataset.user;
const csrf = $('meta[name=csrf]').content;

// The server shows times in the zone of this browser. The login page uses zone.js; without a cookie, times are in UTC.
document.cookie = `timezone=${Intl.DateTimeFormat().resolvedOptions().timeZone || ''}; path=/; max-age=31536000; samesite=lax`;

export const icon = name => `<svg class="i s-${name}" aria-hidden="true"><use href="${body.dataset.icons}#${name}"/></svg>`;
export const send = (url, fields) => fetch(url,
  { method: 'POST', body: new URLSearchParams(fields), headers: { 'X-CSRFToken': csrf, Accept: 'application/json' } });
export const announce = text => { $('#said').textContent = text; };

/* toasts; undoable actions say so, and Z undoes them */
let lastUndo = null;
export function say(text, undo) {
  const toast = Object.assign(document.createElement('div'), { className: 'toast', textContent: text });
  if (undo) {
    const once = () => { toast.remove(); lastUndo = null; undo(); };
    const button = Object.assign(document.createElement('button'), { textContent: 'Undo', onclick: once });
    toast.append(button); lastUndo = once;
  }
  $('.toasts').append(toast);
  setTimeout(() => toast.remove(), undo ? 8000 : 5000);
}

export async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = Object.assign(document.createElement('textarea'), { value: text });
    (document.querySelector('dialog[open]') || body).append(area); area.select(); document.execCommand('copy'); area.remove();
  }
  button?.classList.add('ok'); setTimeout(() => button?.classList.remove('ok'), 1500);
  say('Copied ' + (text.length > 70 ? text.slice(0, 67) + '…' : text));
}

function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
}

/* the split pane: any address opens beside the current page; the URL keeps it */
const trail = []; let opener = null;
const shownIn = holder => ({ ref: $('[data-ref]', holder)?.dataset.ref || '', version: +($('.item', holder)?.dataset.v || 0) });
export const openItems = () => [$('#pane:not([hidden]) .pc'), $('main .pc')].filter(holder => holder && $('.item', holder));

export async function openPane(url, { push = true, nested = false } = {}) {
  if (nested && pane.dataset.url) trail.push([pane.dataset.url, pane.dataset.name]); else if (!nested) trail.length = 0;
  if (pane.hidden) opener = document.activeElement;
  pane.hidden = false; pane.setAttribute('aria-busy', 'true');
  await htmx.ajax('GET', url, { target: '#pane .pc', swap: 'innerHTML' });
  pane.removeAttribute('aria-busy'); pane.scrollTop = 0; pane.dataset.url = url;
  pane.dataset.name = $('.phead .uri', pane)?.textContent.split('/').pop() || 'back';
  backButton(); mark(shownIn(pane).ref);
  if (push) { const here = new URL(location); here.searchParams.set('open', url); history.pushState({ pane: url }, '', here); }
}
function mark(ref) { $$('.card.on').forEach(card => card.classList.remove('on')); if (ref) document.getElementById(ref)?.classList.add('on'); }
function backButton() {
  if (!trail.length) return;
  const button = Object.assign(document.createElement('button'), { className: 'btn', textContent: '← ' + trail.at(-1)[1] });
  button.onclick = async () => { const [url] = trail.pop(), rest = [...trail]; await openPane(url); trail.push(...rest); backButton(); };
  $('.phead', pane)?.prepend(button);
}
export function closePane({ push = true } = {}) {
  if (pane.hidden) return;
  pane.hidden = true; delete pane.dataset.url; $('.pc', pane).replaceChildren(); mark('');
  if (push) { const here = new URL(location); here.searchParams.delete('open'); history.pushState({}, '', here); }
  if (opener?.isConnected) opener.focus();
}
const paneInUrl = () => new URL(location).searchParams.get('open');
const isOurs = url => url?.startsWith('/') && !url.startsWith('//');
addEventListener('popstate', () => {
  const url = paneInUrl();
  isOurs(url) ? openPane(url, { push: false }) : closePane({ push: false });
  dispatchEvent(new Event('backlog:navigated'));
});
{
  const grip = $('.grip', pane);
  const set = width => {
    pane.style.setProperty('--pane-w', width + 'px'); localStorage.pane = width;
    grip.setAttribute('aria-valuenow', Math.round(width / innerWidth * 100));
  };
  if (+localStorage.pane) set(+localStorage.pane);
  grip.onpointerdown = e => {
    grip.setPointerCapture(e.pointerId);
    grip.onpointermove = m => set(Math.max(360, innerWidth - m.clientX));
    grip.onpointerup = () => { grip.onpointermove = null; };
  };
  grip.onkeydown = e => {
    const step = { ArrowLeft: 32, ArrowRight: -32 }[e.key];
    if (step) { set(Math.max(360, pane.offsetWidth + step)); e.preventDefault(); }
  };
}

/* dialogs */
async function openDialog(url) {
  await htmx.ajax('GET', url, { target: '#dialog .dialog-body', swap: 'innerHTML' });
  if (!dialog.open) dialog.showModal();
  $('[autofocus]', dialog)?.focus();
}
dialog.addEventListener('close', () => $('.dialog-body').replaceChildren());
dialog.addEventListener('cancel', e => { if (dirtyForms(dialog).length) { e.preventDefault(); dismissDialog(); } });
async function create(form) {
  const answer = await send('/new/', new FormData(form)).catch(() => null), made = await answer?.json().catch(() => null);
  if (!answer?.ok) {
    const error = $('.error', form); error.hidden = false;
    error.textContent = made?.error?.message || 'The server does not answer. Nothing was created.'; return;
  }
  dialog.close(); say(`Created ${made.ref}`); openPane(`/t/${made.ref}/`);
  dispatchEvent(new CustomEvent('backlog:changed', { detail: { ref: made.ref } }));
}

/* drafts stay in this browser until they are saved; the draft of a field keeps the ETag it started from, so that a save
   after another user's save shows both versions */
const DRAFTS = 'textarea[data-draft], .edit[data-draft-of] :is([name=title], [name=description])';
const draftKey = field => 'draft:' + (field.dataset.draft || `${field.form.dataset.draftOf}:${field.name}`);
const etagOf = field => field.form?.elements[`${field.name}_etag`];
const readDraft = field => {
  try { return JSON.parse(localStorage.getItem(draftKey(field))); }
  catch { return { value: localStorage.getItem(draftKey(field)) }; }
};
function keepDraft(field) {
  if (field.value === field.defaultValue) localStorage.removeItem(draftKey(field));
  else localStorage.setItem(draftKey(field), JSON.stringify({ value: field.value, etag: etagOf(field)?.value }));
}
function restoreDrafts(within) {
  let isBack = false;
  for (const field of $$(DRAFTS, within)) {
    const kept = readDraft(field);
    if (typeof kept?.value !== 'string' || kept.value === field.value) continue;
    field.value = kept.value;
    if (etagOf(field)) { etagOf(field).value = kept.etag; isBack = true; }
  }
  if (isBack) say('Your draft is back.');
}
function forgetDrafts(form) {
  for (const field of $$('[data-draft]', form)) localStorage.removeItem(draftKey(field));
  const { draftOf } = form.dataset;
  if (draftOf) for (const name of ['title', 'description']) localStorage.removeItem(`draft:${draftOf}:${name}`);
}
addEventListener('input', e => { if (e.target.matches?.(DRAFTS)) keepDraft(e.target); });

/* unsaved text is dropped only after a confirmation */
const isDirty = form => [...form.elements].some(field =>
  field.matches('textarea, input:not([type=hidden], [type=checkbox])') && field.value !== field.defaultValue);
const dirtyForms = within => [within, ...$$('[data-guarded]', within)].filter(form => form.matches('[data-guarded]') && isDirty(form));
async function mayDrop(within) {
  const dirty = dirtyForms(within), question = $('#ask');
  if (!dirty.length) return true;
  if (question.open) return false;
  question.returnValue = ''; question.showModal();
  await new Promise(answered => question.addEventListener('close', answered, { once: true }));
  if (question.returnValue !== 'discard') return false;
  for (const form of dirty) { form.reset(); forgetDrafts(form); }
  return true;
}
const dismissDialog = async () => { if (await mayDrop(dialog)) dialog.close(); };
const dismissPane = async () => { if (await mayDrop(pane)) closePane(); };
const leaveEditor = form => $('[data-cancel]', form).click();
document.addEventListener('click', async e => {
  const cancel = e.target.closest?.('[data-cancel]'), form = cancel?.closest('form');
  if (!form || !isDirty(form)) return;
  e.preventDefault(); e.stopImmediatePropagation();
  if (await mayDrop(form)) cancel.click();
}, true);
export const isWriting = holder => !!$('.editing', holder)
  || $$('.say textarea, .reword[open] textarea, .adder[open] input', holder)
    .some(area => area.value && area.type !== 'hidden' || area === document.activeElement);

document.addEventListener('focusin', e => { if (e.target.matches('textarea')) import('./completing.js'); });

/* htmx: the CSRF token on every request, errors as toasts, conflicts as a dialog */
document.addEventListener('htmx:config:request', e => { e.detail.ctx.request.headers['X-CSRFToken'] = csrf; });
document.addEventListener('refused', e => say(`${e.detail.message} ${e.detail.suggestion || ''}`));
document.addEventListener('htmx:error', () => say('The server does not answer.'));
// Saved text is no longer a draft. Checked before the swap: after it the form may be gone.
document.addEventListener('htmx:before:swap', e => {
  const { sourceElement: form, request, response } = e.detail.ctx;
  if (request?.method === 'POST' && response?.status < 400 && form?.matches?.('form')) forgetDrafts(form);
});
// Drop a refresh that arrives after the reader navigated away or began to write.
document.addEventListener('htmx:before:swap', e => {
  const { refreshes, target } = e.detail.ctx;
  if (refreshes && (isWriting(target) || shownIn(target).ref !== refreshes)) e.preventDefault();
});
document.addEventListener('htmx:after:swap', e => {
  const { ctx } = e.detail, target = typeof ctx.target === 'string' ? $(ctx.target) : ctx.target;
  if (target?.closest?.('#dialog')) { if (!dialog.open) dialog.showModal(); return; }
  const form = ctx.sourceElement?.closest?.('form');
  if (ctx.request?.method === 'POST' && form) {
    if ('resets' in form.dataset) form.reset();
    if (form.closest('#dialog')) dialog.close();
  } else if (ctx.sourceElement?.closest?.('#dialog')) dialog.close();
  fresh(target);
});
function fresh(within) {
  if (!within?.isConnected) return;
  restoreDrafts(within);
  if ($('.mermaid-src', within)) import('./diagrams.js').then(diagrams => diagrams.draw(within));
}

/* one listener for all clicks */
const acts = {
  spot: at => spotlight(at?.dataset?.words),
  close: dismissPane,
  theme: switchTheme,
  keys: () => $('#keys').showModal(),
  create: at => openDialog(at?.getAttribute?.('href') || '/new/'),
  dismiss: dismissDialog,
  pick: at => openDialog(at.dataset.url),
};
export const actions = acts;
document.addEventListener('click', e => {
  const copied = e.target.closest('[data-copy]'); if (copied) return copy(copied.dataset.copy, copied);
  const plain = !(e.metaKey || e.ctrlKey || e.shiftKey || e.button);
  const act = e.target.closest('[data-act]');
  if (act && acts[act.dataset.act] && plain) { e.preventDefault(); acts[act.dataset.act](act); return; }
  const line = e.target.closest('.ln a'); if (line) return copyLine(line);
  if (e.target === dialog) return dismissDialog();
  if (e.target.id === 'spot' || e.target.id === 'keys') return e.target.close();
  if (!plain) return;
  const link = e.target.closest('a.t, a.ref, a.uri, a.ref-link');
  if (link && !link.closest('[role=option]')) { e.preventDefault(); openPane(link.getAttribute('href'), { nested: !!link.closest('#pane') }); }
});
document.addEventListener('click', e => $$('.copies[open]').forEach(menu => { if (!e.target.closest('.copies summary')) menu.open = false; }));
function copyLine(line) {
  const uri = line.closest('[data-uri]').dataset.uri;
  copy(`${uri}#L${line.dataset.line}`);
}
document.addEventListener('change', e => {
  const box = e.target;
  if (box.matches('.tick')) {
    const holder = box.closest('.pc'), { ref } = shownIn(holder);
    htmx.ajax('POST', `/t/${ref}/tick/`, {
      target: holder, swap: 'innerMorph',
      values: { line: box.dataset.line, label: box.getAttribute('aria-label'), checked: box.checked } });
  } else if (box.closest('[data-autosubmit]')) box.form.requestSubmit();
  else if (box.id === 'single-keys') localStorage.keys = box.checked ? 'on' : 'off';
});
document.addEventListener('submit', e => { if (e.target.matches('[data-create]')) { e.preventDefault(); create(e.target); } });

/* hover cards, on hover after a delay or by Shift+Enter */
const hover = $('#hover'); let hoverTimer;
async function showHover(link) {
  const answer = await fetch(`/hover/${link.dataset.ref}/`, { headers: { 'HX-Request': 'true' } });
  if (!answer.ok || !link.isConnected) return;
  hover.innerHTML = await answer.text();
  const box = link.getBoundingClientRect();
  hover.style.left = Math.max(8, Math.min(box.left, innerWidth - 340)) + 'px'; hover.style.top = Math.min(box.bottom + 6, innerHeight - 120) + 'px';
  hover.showPopover();
}
const hideHover = () => { clearTimeout(hoverTimer); if (hover.matches(':popover-open')) hover.hidePopover(); };
document.addEventListener('mouseover', e => {
  const link = e.target.closest?.('a.ref[data-ref], a.ref-link'); hideHover();
  if (link) hoverTimer = setTimeout(showHover, 250, link);
});
document.addEventListener('focusout', hideHover);

/* the search box */
export async function spotlight(words) {
  const box = $('#spot'), input = $('input', box);
  if (box.open) return;
  box.showModal();
  if (words) input.value = words;
  input.select();
  (await import('./spotlight.js')).start();
}

/* keys */
const current = () => document.activeElement?.closest?.('.card');
const places = { d: '/', b: '/board/', l: '/list/', e: '/epics/', r: '/files/', a: '/activity/', n: '/insights/', c: '/connect/', s: '/sync/', i: '/ib/' };
export const keys = {
  '/': () => spotlight(), '?': acts.keys, t: switchTheme, z: () => lastUndo?.(),
  c: () => mayWrite && openDialog('/new/'),
  y: () => {
    const uri = $('#pane:not([hidden]) [data-copy]')?.dataset.copy
      || (current() && `mcp://backlog/tasks/${current().id}`) || $('main [data-copy]')?.dataset.copy;
    if (uri) copy(uri);
  },
  e: () => (pane.hidden ? $('main [data-edit]') : $('[data-edit]', pane))?.click(),
  '\\': () => { if (!pane.hidden) dismissPane(); else if (current()) openPane(`/t/${current().id}/`); },
  Escape: () => { const form = $('.edit', pane.hidden ? $('main') : pane); form ? leaveEditor(form) : dismissPane(); },
};
let chord = 0;
addEventListener('keydown', e => {
  const command = e.metaKey || e.ctrlKey;
  if (command && (e.key === 'k' || e.key === 'j')) { e.preventDefault(); $('#spot').open ? $('#spot').close() : spotlight(); return; }
  if (command && e.key === 'Enter' && e.target.form) { e.preventDefault(); e.target.form.requestSubmit(); return; }
  const ref = current()?.id || openItems().map(holder => shownIn(holder).ref)[0];
  if (command && e.key === '.' && ref) { e.preventDefault(); copy(ref); return; }
  if (e.key === 'Enter' && e.shiftKey && e.target.dataset?.ref) { e.preventDefault(); showHover(e.target); return; }
  if (e.key === 'Escape' && dialog.open && !$('#ask').open) { e.preventDefault(); dismissDialog(); return; }
  if (e.key === 'Escape' && e.target.form?.matches('.edit')) { e.preventDefault(); leaveEditor(e.target.form); return; }
  if (e.key === 'Escape' && e.target.matches?.('input:not([type=checkbox]), textarea, select')) { e.target.blur(); return; }
  const busy = e.target.matches?.('input:not([type=checkbox]), textarea, select') || $('dialog[open]') || $('#menu').matches(':popover-open');
  if (busy || command || e.altKey || (localStorage.keys === 'off' && e.key.length === 1)) return;
  if (e.key === 'g') { chord = Date.now(); return; }
  if (Date.now() - chord < 900 && places[e.key]) { chord = 0; location = places[e.key]; return; }
  const run = keys[e.shiftKey && e.key.startsWith('Arrow') ? 'Shift+' + e.key : e.key];
  if (run && run(e) !== false) e.preventDefault();
});

if ($('#tray')) import('./assets.js');
// Below 900 pixels the navigation is a row that may be wider than the screen.
$('.side [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
$('#single-keys').checked = localStorage.keys !== 'off';
fresh(body);
root.dataset.ready = '1';
addEventListener('DOMContentLoaded', () => { if (isOurs(paneInUrl()) && pane.hidden) openPane(paneInUrl(), { push: false }); });
// Not awaited: it imports this module, which must have finished loading by then.
import('./board.js').then(() => { root.dataset.ready = '2'; });
