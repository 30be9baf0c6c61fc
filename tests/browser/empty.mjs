// Opens the report of an incident without samples: it says so in zeros and does not fail.
//
//   node empty.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER REPORT.html
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [chromium, playwright, report] = process.argv.slice(2);
const { chromium: driver } = createRequire(import.meta.url)(playwright);
const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const complaints = [];
let said = "";
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20000);
  page.on("console", m => { if (m.type() === "error") complaints.push(m.text()); });
  page.on("pageerror", e => complaints.push(e.message));
  await page.goto(pathToFileURL(report).href);
  await page.waitForSelector("html[data-ready=yes]");
  said = await page.textContent("#time-said");
} catch (e) {
  complaints.push(String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
const holds = complaints.length === 0 && said.startsWith("the whole window: 0 ");
console.log((holds ? "ok" : "not ok") + " a_report_without_samples_is_usable" + (holds ? "" : `: ${said} ${complaints.join("; ")}`));
