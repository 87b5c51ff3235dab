// Diagrams are drawn in a sandboxed frame with a separate policy, and only when they come into view.
import { $, $$ } from './app.js';

const sources = new Map();
const isDark = () => (document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
const seen = new IntersectionObserver(entries => entries.filter(entry => entry.isIntersecting)
  .forEach(({ target }) => { seen.unobserve(target); frame(target); }));

export const draw = within => $$('.mermaid-src:not(:has(iframe))', within).forEach(figure => seen.observe(figure));

function frame(figure) {
  const made = Object.assign(document.createElement('iframe'), { title: 'Diagram', src: '/diagram/' });
  made.setAttribute('sandbox', 'allow-scripts');
  sources.set(made, figure.textContent);
  const details = document.createElement('details');
  details.innerHTML = '<summary>Source of the diagram</summary>';
  details.append($('pre', figure)); figure.append(made, details);
}
addEventListener('message', e => {
  const made = [...sources.keys()].find(one => one.contentWindow === e.source);
  if (!made) return;
  if (e.data.ready) made.contentWindow.postMessage({ source: sources.get(made), dark: isDark() }, '*');
  if (e.data.failed) { made.hidden = true; made.parentElement.querySelector('details').open = true; }
  if (e.data.height) made.height = Math.min(1200, e.data.height);
});
