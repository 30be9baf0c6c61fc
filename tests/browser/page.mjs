// What the scripts beside it share: a line for each check, and a page of ours in headless Chromium.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

let failed = 0;

// Prints "ok NAME" or "not ok NAME: DETAIL".
export function check(name, holds, detail = "") {
  console.log(`${holds ? "ok" : "not ok"} ${name}${holds ? "" : ": " + detail}`);
  failed += holds ? 0 : 1;
}

export const exitCode = () => failed ? 1 : 0;

// playwright: the folder of playwright-core.
export const launch = (chromium, playwright, ...more) =>
  createRequire(import.meta.url)(playwright)
    .chromium.launch({
      executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", ...more],
    });

// Open a file and wait until it is ready. own: its URL; asked: other URLs that it requested;
// complaints: errors and dialogs; cpuMs(): what the page's main thread has spent so far.
export async function openFile(browser, file, options = {}, complaints = []) {
  const page = await browser.newPage(options), own = pathToFileURL(file).href, asked = [];
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpuMs = async () => 1000 * (await cdp.send("Performance.getMetrics")).metrics
    .find(m => m.name === "ThreadTime").value;
  page.setDefaultTimeout(20000);
  page.on("request", r => {
    if (r.url() !== own && !r.url().startsWith("blob:")) asked.push(r.url());
  });
  page.on("console", m => { if (m.type() === "error") complaints.push(m.text()); });
  page.on("pageerror", e => complaints.push(e.message));
  page.on("dialog", d => { complaints.push("dialog " + d.message()); d.dismiss(); });
  await page.goto(own);
  await page.waitForSelector("html[data-ready=yes]");
  return { page, own, asked, complaints, cpuMs, text: id => page.textContent("#" + id) };
}
