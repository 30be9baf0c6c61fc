// Opens the page of a diff in headless Chromium and uses it; prints one line a check.
//
//   node diff.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER DIFF.html [SCREENSHOT.png [dark]]
//
// What is compared is said in tests/cli/diff.sh: burn_alpha 6,000,000 us -> 4,000,000, burn_beta
// the other way round from 2,000,000.
import { check as checkNamed, exitCode, launch, openFile } from "./page.mjs";

const [chromium, playwright, report, picture, scheme] = process.argv.slice(2);
const browser = await launch(chromium, playwright);
const check = (name, ...rest) => checkNamed("diff_page_" + name, ...rest);

try {
  const { page, asked, complaints, text } = await openFile(browser, report,
    { viewport: { width: 1300, height: 900 }, colorScheme: scheme ?? "light" });

  // A number that changes with any pixel; how many are clearly red, how many clearly blue.
  const look = () => page.evaluate(() => {
    const c = document.getElementById("flame");
    const p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let hash = 0, red = 0, blue = 0;
    for (let i = 0; i < p.length; i += 4) {
      hash = (Math.imul(hash, 31) + p[i] * 65536 + p[i + 1] * 256 + p[i + 2]) | 0;
      red += p[i] > p[i + 2] + 40;
      blue += p[i + 2] > p[i] + 40;
    }
    return { hash, red, blue };
  });
  const row = name => page.evaluate(name => {
    const tr = [...document.querySelectorAll("#functions tbody tr")]
      .find(r => r.textContent.includes(name));
    return tr ? [...tr.cells].map(c => c.textContent).join("|") : "";
  }, name);

  const first = await look();
  check("has_red_and_blue", first.red > 500 && first.blue > 500, JSON.stringify(first));
  check(
    "says_what_was_compared", /Base window.*1000 samples/.test(await page.textContent("header")));
  check("has_both_times_of_a_function",
    (await row("burn_alpha")) ===
      "0|n/a|n/a|6,000,000|4,000,000|−33.3 %|60.0 %|40.0 %|server!burn_alpha",
    await row("burn_alpha"));
  check("has_processes_and_threads", /server.*worker/s.test(await text("threads")));

  await page.selectOption("#width", "base");
  const base = await look();
  check("can_be_as_wide_as_the_base", base.hash !== first.hash);
  await page.selectOption("#width", "test");
  check("can_be_as_wide_as_the_test", (await look()).hash !== base.hash);
  await page.selectOption("#width", "both");
  check("comes_back_to_both", (await look()).hash === first.hash);

  await page.fill("#search", "burn_beta");
  check("search_tells_the_share", /^matched: 30.0 %$/.test(await text("matched")),
    await text("matched"));
  await page.fill("#search", "");
  await page.focus("#flame");
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowUp");
  const said = await text("said");
  check("arrows_walk_the_graph", / — base [0-9,]+, test [0-9,]+ us of CPU time/.test(said), said);
  await page.keyboard.press("Enter");
  check("enter_shows_callers", (await text("focus")).startsWith(said.split(" — ")[0]) &&
    (await page.locator("#callers tbody tr").count()) > 0, await text("focus"));
  await page.keyboard.press("Escape");
  await page.click("#icicle");
  check("upside_down_changes_the_picture", (await look()).hash !== first.hash);
  await page.click("#icicle");
  await page.selectOption("#who", { index: 1 });
  check("one_process_has_no_other", (await row("Batch::Run")) === "", await row("Batch::Run"));
  await page.selectOption("#who", "-1");

  check("asks_for_nothing_but_itself", asked.length === 0, asked.join(" "));
  check("leaves_the_console_silent", complaints.length === 0, complaints.join("; "));
  check("made_no_element_of_a_name",
    (await page.locator("main script, header script, td script").count()) === 0);
  if (picture) await page.screenshot({ path: picture, fullPage: true });
} catch (e) {
  check("can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
process.exit(exitCode());
