//! The class page in a real browser: both sizes, both schemes, nothing said on the console, nothing fetched.

use std::path::PathBuf;

use super::cdp::Browser;
use super::classes::{LONG, hostile, large, small, timing};
use heat_grader::report::html::{Class, page};

const LAPTOP: (u32, u32) = (1280, 720);
const PHONE: (u32, u32) = (390, 844);

/// The page as a file, in a folder that ends with the value.
fn written(class: &Class) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.html");
    std::fs::write(&path, page(class)).unwrap();
    (folder, path)
}

/// Keeps a picture to look at where HEAT_GRADER_SHOTS names a folder.
fn keep(browser: &mut Browser, name: &str) {
    let shot = browser.screenshot();
    assert!(shot.len() > 5_000, "{name} is blank");
    if let Some(folder) = std::env::var_os("HEAT_GRADER_SHOTS") {
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), shot).unwrap();
    }
}

/// Ratios of text to its ground below WCAG's AA, over every element that shows text of its own.
const LOW_CONTRAST: &str = r#"(() => {
  const parse = (color) => (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.getClientRects().length || element.closest("option, script, title, [aria-hidden]")) continue;
    const style = getComputedStyle(element);
    const color = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(color), light(ground(element))].sort((a, b) => b - a);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${element.tagName}.${element.className.baseVal ?? element.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(low)].join(", ");
})()"#;

/// Texts of charts that reach beyond their drawing.
const CUT_OFF: &str = r#"[...document.querySelectorAll("svg.plot text")].filter((text) => {
  const [own, plot] = [text, text.closest("svg")].map((element) => element.getBoundingClientRect());
  return own.left < plot.left - 0.5 || own.right > plot.right + 0.5;
}).map((text) => text.textContent).join(", ")"#;

#[test]
#[ignore = "needs chromium"]
fn browser_shows_the_page_at_both_sizes_in_both_schemes() {
    let mut class = large(60);
    class.entries[5].learner = LONG.replace("Hubert", "Adolph");
    let (_folder, path) = written(&class);
    let mut browser = Browser::start();
    for (size, device) in [(LAPTOP, "laptop"), (PHONE, "phone")] {
        for scheme in ["light", "dark"] {
            browser.open(&path, size, scheme);
            keep(&mut browser, &format!("class-{device}-{scheme}"));
            assert_eq!(browser.value(LOW_CONTRAST), "", "{device}, {scheme}");
            let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.value(wide), 0, "nothing sticks out: {device}");
            let pushed = "(() => { const box = document.querySelector('.scroll'); return box.scrollWidth - box.clientWidth; })()";
            assert_eq!(browser.value(pushed), 0, "no name pushes the table aside: {device}");
            assert_eq!(browser.value(CUT_OFF), "", "{device}");
            let learner =
                "[...document.querySelectorAll('section.learner')].find((one) => one.querySelector('svg.apron')).id";
            browser.value(&format!("location.hash = {learner}"));
            browser.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))");
            assert_eq!(browser.value(wide), 0, "nothing sticks out of a learner's page: {device}");
            assert_eq!(browser.value(LOW_CONTRAST), "", "a learner's, {device}, {scheme}");
            keep(&mut browser, &format!("learner-{device}-{scheme}"));
            browser.value("window.scrollTo(0, 700)");
            keep(&mut browser, &format!("learner-below-{device}-{scheme}"));
            browser.value("location.hash = ''");
            browser.value("document.getElementById('table').scrollIntoView()");
            keep(&mut browser, &format!("table-{device}-{scheme}"));
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs chromium"]
fn browser_shows_every_label_whole_where_an_axis_is_short() {
    let mut class = small();
    // All well within the budget: the lesson's kernel that reads most stands at the right edge.
    class.entries.truncate(2);
    class.entries.iter_mut().for_each(|entry| entry.report.timing = Some(timing(0.8, 0.843)));
    let (_folder, path) = written(&class);
    let mut browser = Browser::start();
    for (size, device) in [(LAPTOP, "laptop"), (PHONE, "phone")] {
        browser.open(&path, size, "light");
        assert_eq!(browser.value(CUT_OFF), "", "{device}");
        keep(&mut browser, &format!("short-axis-{device}"));
    }
}

#[test]
#[ignore = "needs chromium"]
fn browser_sorts_and_filters_the_table() {
    let (_folder, path) = written(&large(60));
    let mut browser = Browser::start();
    browser.open(&path, LAPTOP, "light");
    let reads = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[3].dataset.value).filter((value) => value).map(Number)";
    let rising = format!("(({reads}).every((value, at, all) => at === 0 || all[at - 1] <= value))");
    let last_missing = "!('value' in document.querySelector('#table tbody tr:last-child').cells[3].dataset)";
    let heading = "document.querySelector('[data-key=reads]')";
    assert_eq!(browser.value(&rising), false);
    // By keyboard alone.
    browser.value(&format!("{heading}.querySelector('button').focus()"));
    browser.press("Enter");
    assert_eq!(browser.value(&format!("{heading}.getAttribute('aria-sort')")), "ascending");
    assert_eq!((browser.value(&rising), browser.value(last_missing)), (true.into(), true.into()));
    browser.press("Enter");
    assert_eq!(browser.value(&format!("{heading}.getAttribute('aria-sort')")), "descending");
    assert_eq!(browser.value(last_missing), true, "what has no figure stays at the end");
    assert_eq!(browser.value("document.querySelectorAll('[aria-sort]').length"), 1);
    browser.press("Tab");
    browser.press("Enter");
    assert_eq!(browser.value("document.querySelector('[aria-sort]').dataset.key"), "time");

    let visible = "[...document.querySelectorAll('tbody tr')].filter((row) => !row.hidden)";
    let set = |id: &str, value: &str| {
        format!(
            "(() => {{ const control = document.getElementById('{id}'); control.value = '{value}'; control.dispatchEvent(new Event('input')); }})()"
        )
    };
    let all = browser.value("document.querySelectorAll('#table tbody tr').length");
    browser.value(&set("verdict", "failed"));
    let failed = browser.value(&format!("({visible}).filter((row) => row.closest('#table')).length"));
    assert!(failed.as_u64() > Some(0) && failed.as_u64() < all.as_u64(), "{failed} of {all}");
    let every =
        format!("({visible}).filter((row) => row.closest('#table')).every((row) => row.dataset.verdict === 'failed')");
    assert_eq!(browser.value(&every), true);
    assert_eq!(browser.value("document.getElementById('shown').textContent"), format!("{failed} of {all} shown"));
    // Whoever has no verdict is found as well, so that nobody is thought to be missing.
    for (verdict, count) in [("ungraded", 1), ("not graded yet", 2)] {
        browser.value(&set("verdict", verdict));
        assert_eq!(browser.value("document.getElementById('shown').textContent"), format!("{count} of {all} shown"));
    }
    browser.value(&set("find", "no such learner"));
    assert_eq!(browser.value("document.getElementById('shown').textContent"), format!("0 of {all} shown"));
    browser.value("document.querySelector('button[data-check=values]').click()");
    assert_eq!(browser.value("document.getElementById('check').value"), "values");
    let every = format!(
        "({visible}).filter((row) => row.closest('#table')).every((row) => row.dataset.checks.includes('values'))"
    );
    assert_eq!(browser.value(&every), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs chromium"]
fn browser_opens_one_learner_at_a_time() {
    let (_folder, path) = written(&small());
    let mut browser = Browser::start();
    browser.open(&path, LAPTOP, "light");
    let seen = "[...document.querySelectorAll('main, section.learner')].filter((one) => one.getClientRects().length).map((one) => one.id).join()";
    assert_eq!(browser.value(seen), "class");
    browser.value("document.querySelector('#table a[href=\"#learner-shared-one-past\"]').click()");
    let settled = "new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))";
    browser.value(settled);
    assert_eq!(browser.value(seen), "learner-shared-one-past");
    assert_eq!(browser.value("document.activeElement.textContent"), "shared_one_past");
    browser.value("document.querySelector('a[href=\"#learner-shared-one-past--L33\"]').click()");
    browser.value(settled);
    assert_eq!(browser.value(seen), "learner-shared-one-past", "a line's link stays on its page");
    keep(&mut browser, "line-laptop-light");
    browser.value("document.querySelector('#learner-shared-one-past .back').click()");
    browser.value(settled);
    assert_eq!(browser.value(seen), "class");
    keep(&mut browser, "small-laptop-light");
    browser.print();
    keep(&mut browser, "small-printed");
    browser.value("location.hash = 'learner-halo-one-cell'");
    browser.value(settled);
    assert_eq!(browser.value("document.querySelector('.learner:target nav').getClientRects().length"), 0);
    keep(&mut browser, "learner-printed");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs chromium"]
fn browser_runs_nothing_that_a_learner_wrote() {
    let (_folder, path) = written(&hostile());
    let mut browser = Browser::start();
    browser.open(&path, PHONE, "dark");
    for at in 0..6 {
        browser.value(&format!("location.hash = document.querySelectorAll('section.learner')[{at}].id"));
        browser.value("new Promise((done) => setTimeout(done, 50))");
    }
    keep(&mut browser, "hostile-phone-dark");
    assert_eq!(browser.value("typeof window.stolen"), "undefined");
    assert_eq!(browser.value("document.querySelectorAll('img, iframe, script').length"), 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // And were it in the page, the policy would not let it.
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.stolen=1\">')");
    browser.value("new Promise((done) => setTimeout(done, 100))");
    assert_eq!(browser.value("typeof window.stolen"), "undefined");
}
