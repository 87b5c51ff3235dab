// Prints the accessibility score of pages, in a browser that is already signed in: node score.mjs modules port url…
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, port, ...urls] = process.argv.slice(2);
const { resolve } = createRequire(`${modules}/x.js`);
const load = name => import(pathToFileURL(resolve(name)));
const [{ snapshot, desktopConfig }, { default: puppeteer }] = await Promise.all([load('lighthouse'), load('puppeteer-core')]);
const SIZES = { desktop: { width: 1440, height: 900 }, mobile: { width: 390, height: 844, isMobile: true } };

const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}`, defaultViewport: null });
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
for (const url of urls) {
  for (const [name, size] of Object.entries(SIZES)) {
    await page.setViewport(size);
    await page.goto(url, { waitUntil: 'load' });
    await page.waitForSelector("html[data-ready='2']");
    const config = name === 'desktop' ? desktopConfig : undefined;
    const { lhr } = await snapshot(page, { flags: { onlyCategories: ['accessibility'], screenEmulation: { disabled: true } }, config });
    const failed = Object.values(lhr.audits).filter(audit => audit.score !== null && audit.score < 1).map(audit => audit.id);
    console.log(JSON.stringify({ url: lhr.finalDisplayedUrl, size: name, score: Math.round(100 * lhr.categories.accessibility.score), failed }));
  }
}
await browser.disconnect();
