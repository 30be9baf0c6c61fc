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
        offered.join(" ") === "cpu alloc event heap heap-net heap-peak io-bytes io-time",
        offered.join(" "));
  const loaded = page.waitForEvent("load");
  await page.selectOption("#metric", "io-bytes");
  await loaded;
  await page.waitForSelector("html[data-events=yes]");
  check("another_metric_has_its_own_sum",
        (await text("time-said")) === "the whole window: 19,851,264 bytes, 18.9 MB",
        await text("time-said"));
  const first = await page.textContent("#functions tbody tr td:last-child");
  check("and_its_own_functions", first.endsWith("clr.dll"), first);
  const told = await page.locator("#runtimes h3").allTextContents();
  check("what_runtimes_tell_is_there", told.length === 8 && told[1].startsWith("Garbage"),
        told.join("; "));
  check("requests_come_first", told[0].startsWith("Requests") &&
          (await page.locator("#runtimes > div:nth-of-type(1) tbody tr").count()) > 1, told[0]);
  const row = await page.textContent("#runtimes > div:nth-of-type(2) tbody tr");
  check("with_the_numbers_of_the_terminal", row.includes("Test.x64") && row.includes("28.971"),
        row);
  const sizes = await page.textContent("#runtimes > div:nth-of-type(4) tbody tr:nth-of-type(2)");
  check("with_the_heap_before_and_after", /4\.2310\.059AllocSmallTest\.x64 \(3676\)$/.test(sizes),
        sizes);
  await page.setViewportSize({ width: 400, height: 900 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("a_page_of_400_pixels_is_no_wider", wide === 400, wide);
  const cells = await page.evaluate(() => [...document.querySelectorAll("#runtimes :is(th, td)")]
    .filter(c => c.getBoundingClientRect().right > 400).map(c => c.textContent));
  check("what_runtimes_tell_is_seen_at_400_pixels", cells.length === 0, cells.slice(0, 5).join());
  for (const id of ["functions", "changed", "threads", "events"]) {
    const over = await page.evaluate(id => Math.max(...[...document.querySelectorAll(
      `#${id} tr > :last-child`)].map(c => c.getBoundingClientRect().right)), id);
    check(`names_of_${id}_are_seen_at_400_pixels`, over <= 400, over);
  }
  check("nothing_was_asked_for_and_the_console_is_silent", !asked.length && !complaints.length,
        complaints.join("; "));
} catch (e) {
  check("the_metrics_can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
process.exit(exitCode());
