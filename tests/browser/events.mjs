// The list of a million events of tests/programs/large_page.c in headless Chromium; prints one line
// a check.
//
//   node events.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER PAGE.html
import { check, exitCode, launch, openFile } from "./page.mjs";

const [chromium, playwright, file] = process.argv.slice(2);
const browser = await launch(chromium, playwright);
const usableMs = 2000;                       // of the page's own CPU time: others are busy, too

try {
  const { page, asked, complaints, cpuMs } = await openFile(browser, file,
    { viewport: { width: 1400, height: 900 } });
  await page.waitForSelector("html[data-events=yes]");
  const loaded = await cpuMs();
  check("a_page_is_loaded_in_less_than_two_seconds", loaded < usableMs, loaded);
  const said = () => page.textContent("#events .said");
  const filter = async (label, text) => {
    const before = await said();
    const input = page.locator("#events .bar label", { hasText: label }).locator("input");
    const t0 = await cpuMs();
    await input.fill(text);
    await page.waitForFunction(
      before => document.querySelector("#events .said").textContent !== before, before);
    return Math.round(await cpuMs() - t0);
  };
  check("all_events_are_there", (await said()) === "1,000,000 of 1,000,000 events", await said());
  // Its lane is one dark row from left to right, not only around the trigger.
  const filled = await page.evaluate(() => {
    const canvas = document.querySelector("#timeline"), { width, height } = canvas;
    const from = Math.floor(width * 0.9), n = width - from - 4;
    const ink = getComputedStyle(canvas).color.match(/\d+/g).map(Number);
    let most = 0;
    for (let y = 0; y < height; y++) {
      const row = canvas.getContext("2d").getImageData(from, y, n, 1).data;
      let same = 0;
      for (let i = 0; i < n; i++)
        same += row[4 * i + 3] > 200 && ink.every((v, k) => Math.abs(row[4 * i + k] - v) < 60);
      most = Math.max(most, same / n);
    }
    return most;
  });
  check("all_events_are_in_the_lane", filled > 0.9, filled);
  const times = [];
  times.push(await filter("name", "Exception"));
  check("names_are_filtered", (await said()).startsWith("10 of "), await said());
  times.push(await filter("name", ""));
  times.push(await filter("fields", "AllocationAmount>=1099990 HeapIndex<4"));
  check("fields_are_filtered", (await said()).startsWith("4 of "), await said());
  times.push(await filter("fields", ""));
  times.push(await filter("text", "!System.String"));
  check("texts_are_filtered", (await said()).startsWith("333,334 of "), await said());
  const rows = await page.locator("#events > div:last-child tbody tr").count();
  check("the_first_thousand_are_shown", rows === 1000, rows);
  console.log(`# CPU time: loading ${Math.round(loaded)} ms, filters ${times.join(", ")} ms`);
  check("a_filter_takes_less_than_two_seconds", Math.max(...times) < usableMs, times.join(" "));
  check("nothing_was_asked_for_and_the_console_is_silent", !asked.length && !complaints.length,
        complaints.join("; "));
} catch (e) {
  check("the_events_can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
process.exit(exitCode());
