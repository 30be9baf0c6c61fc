// Opens the report of an incident that is unusual, without samples or with hostile names: it says
// how many samples it has, shows names as text, and does not fail.
//
//   node unusual.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER REPORT.html TEST_NAME SAMPLES [NAME]
import { check, launch, openFile } from "./page.mjs";

const [chromium, playwright, report, test, samples, name] = process.argv.slice(2);
const browser = await launch(chromium, playwright);
const complaints = [];
let said = "", named = true;
try {
  const { page } = await openFile(browser, report, {}, complaints);
  said = await page.textContent("#time-said");
  if (name) {
    await page.fill("#search", name);
    named = (await page.textContent("#functions")).includes(name) &&
      /^matched: [1-9]/.test(await page.textContent("#matched"));
  }
  if (await page.locator("main script, header script, td script").count())
    complaints.push("a name became an element");
} catch (e) {
  complaints.push(String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
check(test, complaints.length === 0 && named && said.startsWith(`the whole window: ${samples} `),
  `${said} ${complaints.join("; ")}`);
