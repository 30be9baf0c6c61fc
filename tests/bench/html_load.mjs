// How long an HTML report takes until it can be used, in headless Chromium: the best of 3, in ms.
//
//   node html_load.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER REPORT.html
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [chromium, playwright, report] = process.argv.slice(2);
const { chromium: driver } = createRequire(import.meta.url)(playwright);
const browser = await driver.launch({
  executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"],
});
let best = Infinity;
try {
  for (let i = 0; i < 3; i++) {
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    const start = performance.now();
    await page.goto(pathToFileURL(report).href);
    await page.waitForSelector("html[data-ready=yes]", { timeout: 60000 });
    best = Math.min(best, performance.now() - start);
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(best.toFixed(0));
