// The page of net.4.5.2.x64.etl in headless Chromium: its metrics, and what runtimes tell; prints
// one line a check.
//
//   node metrics.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER PAGE.html
import { check, exitCode, launch, openFile } from "./page.mjs";

const [chromium, playwright, file] = process.argv.slice(2);
const browser = await launch(chromium, playwright);

try {
  const { page, asked, complaints, text } = await openFile(browser, file);
  const offered = await page.locator("#metric option").allTextContents();
  check("metrics_that_are_there_are_offered",
        offered.join(" ") === "cpu alloc event io-bytes io-time", offered.join(" "));
  const loaded = page.waitForEvent("load");
  await page.selectOption("#metric", "io-bytes");
  await loaded;
  await page.waitForSelector("html[data-events=yes]");
  check("another_metric_has_its_own_sum",
        (await text("time-said")) === "the whole window: 19,851,264 bytes",
        await text("time-said"));
  const first = await page.textContent("#functions tbody tr td:last-child");
  check("and_its_own_functions", first.endsWith("clr.dll"), first);
  const told = await page.locator("#runtimes h3").allTextContents();
  check("what_runtimes_tell_is_there", told.length === 7 && told[0].startsWith("Garbage"),
        told.join("; "));
  const row = await page.textContent("#runtimes tbody tr");
  check("with_the_numbers_of_the_terminal", row.includes("Test.x64") && row.includes("28.971"),
        row);
  await page.setViewportSize({ width: 400, height: 900 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("a_page_of_400_pixels_is_no_wider", wide === 400, wide);
  check("nothing_was_asked_for_and_the_console_is_silent", !asked.length && !complaints.length,
        complaints.join("; "));
} catch (e) {
  check("the_metrics_can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
process.exit(exitCode());
