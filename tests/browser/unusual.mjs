// Opens the report of an incident that is unusual, without samples or with hostile names: it says how many
// samples it has, shows names as text, and does not fail.
//
//   node unusual.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER REPORT.html TEST_NAME SAMPLES [NAME]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [chromium, playwright, report, test, samples, name] = process.argv.slice(2);
const { chromium: driver } = createRequire(import.meta.url)(playwright);
const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const complaints = [];
let said = "", named = true;
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20000);
  page.on("console", m => { if (m.type() === "error") complaints.push(m.text()); });
  page.on("pageerror", e => complaints.push(e.message));
  page.on("dialog", d => { complaints.push("dialog " + d.message()); d.dismiss(); });
  await page.goto(pathToFileURL(report).href);
  await page.waitForSelector("html[data-ready=yes]");
  said = await page.textContent("#time-said");
  if (name) {
    await page.fill("#search", name);
    named = (await page.textContent("#functions")).includes(name) && /^matched: [1-9]/.test(await page.textContent("#matched"));
  }
  if (await page.locator("main script, header script, td script").count()) complaints.push("a name became an element");
} catch (e) {
  complaints.push(String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
const holds = complaints.length === 0 && named && said.startsWith(`the whole window: ${samples} `);
console.log((holds ? "ok" : "not ok") + ` ${test}` + (holds ? "" : `: ${said} ${complaints.join("; ")}`));
