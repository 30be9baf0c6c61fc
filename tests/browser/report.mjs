// Opens an HTML report in headless Chromium and uses it; prints one line a check, "ok" or "not ok".
//
//   node report.mjs CHROMIUM PLAYWRIGHT_CORE_FOLDER REPORT.html [SCREENSHOT.png [dark]]
import { readFileSync } from "node:fs";
import { check, exitCode, launch, openFile } from "./page.mjs";

const [chromium, playwright, report, picture, scheme] = process.argv.slice(2);
const browser = await launch(chromium, playwright);

try {
  const { page, own, asked, complaints, text } = await openFile(browser, report,
    { viewport: { width: 1300, height: 900 }, colorScheme: scheme ?? "light" });

  // How many different colours a canvas has, and a number that changes with any of its pixels.
  const look = id => page.evaluate(id => {
    const c = document.getElementById(id);
    const image = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    const pixels = new Uint32Array(image.data.buffer);
    let hash = 0;
    for (const p of pixels) hash = (Math.imul(hash, 31) + p) | 0;
    return { colours: new Set(pixels).size, hash };
  }, id);
  const share = async name => page.evaluate(name => {
    const row = [...document.querySelectorAll("#functions tbody tr")]
      .find(tr => tr.textContent.includes(name));
    return row ? row.textContent : "";
  }, name);

  const all = await look("flame");
  check("the_flame_graph_is_drawn", all.colours > 5, JSON.stringify(all));
  check("the_timeline_is_drawn", (await look("timeline")).colours > 5);
  check(
    "the_header_tells_what_fired", /over its limit|manual/.test(await page.textContent("header")));
  check("the_window_is_summed", /^the whole window: [1-9]/.test(await text("time-said")),
    await text("time-said"));

  // Of main all the window is filled: no part without it, from the first second to the last.
  const main = (await page.evaluate(() => [...document.querySelectorAll("#functions tbody tr")]
    .map(tr => [...tr.cells].map(c => c.textContent)).find(c => c.at(-1).endsWith("!main")))) ?? [];
  check("functions_have_a_when_column", /^[.o1-9]{32}$/.test(main.at(-2)), main.join("|"));
  check("functions_have_their_first_and_last_time",
    +main.at(-4) < +main.at(-3) && Math.abs(+main.at(-4) + 12) < 0.1 &&
      Math.abs(+main.at(-3) - 5) < 0.1,
    main.join("|"));

  const first = await page.textContent("#functions tbody tr td:last-child");
  await page.fill("#search", first.split("!")[1].slice(0, 8));
  check("search_tells_the_share", /^matched: [0-9.]+ %$/.test(await text("matched")),
    await text("matched"));
  check("search_changes_the_picture", (await look("flame")).hash !== all.hash);
  await page.fill("#search", "no such name");
  check("search_without_a_match_is_zero", (await text("matched")) === "matched: 0.0 %",
    await text("matched"));
  await page.fill("#search", "");
  check("an_empty_search_is_none", (await look("flame")).hash === all.hash);

  await page.focus("#flame");
  for (const key of ["ArrowUp", "ArrowUp", "ArrowUp"]) await page.keyboard.press(key);
  const said = await text("said");
  check("arrows_walk_the_graph", / — [0-9,]+ /.test(said), said);
  await page.keyboard.press("Enter");
  check("enter_zooms_and_shows_callers", (await text("focus")).startsWith(said.split(" — ")[0]),
    await text("focus"));
  check("callers_are_listed", (await page.locator("#callers tbody tr").count()) > 0);
  const zoomed = await look("flame");
  check("a_zoom_changes_the_picture", zoomed.hash !== all.hash);
  await page.keyboard.press("Escape");

  // In a low window the graph has more rows than room: its root is seen first.
  const low = await browser.newPage({ viewport: { width: 1300, height: 80 } });
  await low.goto(own);
  await low.waitForSelector("html[data-ready=yes]");
  const scrolled = () => low.evaluate(() => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const b = document.getElementById("flame-box");
      done([b.scrollTop, b.scrollHeight - b.clientHeight]);
    }))));
  const [top, most] = await scrolled();
  check("the_graph_starts_at_its_root", most > 20 && Math.abs(top - most) < 2, `${top} of ${most}`);
  for (const height of [900, 400, 80]) {
    await low.setViewportSize({ width: 1300, height });
    await scrolled();
  }
  const [now, end] = await scrolled();
  check("and_still_shows_it_in_a_window_that_became_lower",
    end > 20 && Math.abs(now - end) < 2, `${now} of ${end}`);
  await low.close();

  await page.click("#icicle");
  check("upside_down_changes_the_picture", (await look("flame")).hash !== all.hash);
  await page.click("#icicle");

  const functions = await page.textContent("#functions tbody"), sum = await text("time-said");
  await page.locator("#timeline").scrollIntoViewIfNeeded();
  const at = await page.locator("#timeline").boundingBox();
  await page.mouse.move(at.x + at.width * 0.3, at.y + 40);
  await page.mouse.down();
  await page.mouse.move(at.x + at.width * 0.5, at.y + 40, { steps: 4 });
  await page.mouse.up();
  check("brushing_counts_a_part",
    (await text("time-said")) !== sum &&
      +(await page.inputValue("#from")) < +(await page.inputValue("#to")),
    await text("time-said"));
  check(
    "brushing_changes_the_functions", (await page.textContent("#functions tbody")) !== functions);
  await page.click("#whole");
  check("the_whole_window_comes_back", (await page.textContent("#functions tbody")) === functions);

  await page.selectOption("#who", { index: 1 });
  check("one_process_is_part_of_all", (await page.textContent("#functions tbody")) !== functions);
  await page.selectOption("#who", "-1");
  check("nothing_but_the_file_was_asked_for", asked.length === 0, asked.join(" "));
  const refused =
    await page.evaluate(() => fetch("http://127.0.0.1:9/").then(() => "answered", () => "refused"));
  check("the_policy_refuses_a_request",
    refused === "refused" && complaints.some(c => c.includes("Content Security Policy")),
    complaints.join("; "));
  const rest = complaints.filter(c => !c.includes("127.0.0.1:9"));
  check("the_console_is_silent", rest.length === 0, rest.join("; "));
  check("no_name_became_an_element",
    (await page.locator("main script, header script, td script").count()) === 0);
  if (picture) await page.screenshot({ path: picture, fullPage: true });
} catch (e) {
  check("the_report_can_be_used", false, String(e.message).split("\n")[0]);
} finally {
  await browser.close();
}
process.exit(exitCode());
