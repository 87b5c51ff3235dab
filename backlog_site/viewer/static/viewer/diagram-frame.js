// Inside the sandboxed frame: draws the given diagram and reports its height.
import mermaid from './vendor/mermaid-11.17.2/mermaid.esm.min.mjs';

addEventListener('message', async ({ data }) => {
  mermaid.initialize({ startOnLoad: false, securityLevel: 'strict', theme: data.dark ? 'dark' : 'neutral', fontFamily: 'inherit' });
  try {
    const { svg } = await mermaid.render('diagram', data.source);
    document.documentElement.style.colorScheme = data.dark ? 'dark' : 'light';
    document.body.style.margin = 0;
    document.body.innerHTML = svg;
    parent.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) + 4 }, '*');
  } catch (error) { parent.postMessage({ failed: String(error) }, '*'); }
});
parent.postMessage({ ready: 1 }, '*');
