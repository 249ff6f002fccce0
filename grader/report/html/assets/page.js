"use strict";
// Sorting and filtering of the table, and focus when a learner's section opens. The page is complete without it.
(() => {
  const card = document.getElementById("table");
  const rows = card ? [...card.querySelectorAll("tbody tr")] : [];

  const sorted = (column, direction) => {
    const key = (row) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    const missing = (value) => value === "" || value === "–";
    const by = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
    return [...rows].sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      // What is missing stays at the end either way.
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = typeof a === "number" && typeof b === "number" ? a - b : by.compare(String(a), String(b));
      return direction * order;
    });
  };

  const sortable = (heads) => {
    for (const [column, head] of heads.entries()) {
      const button = head.querySelector("button");
      button.disabled = false;
      button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        card.querySelector("tbody").append(...sorted(column, descending ? -1 : 1));
      });
    }
  };

  const filterable = () => {
    const [find, verdict, check] = ["find", "verdict", "check"].map((id) => document.getElementById(id));
    const shown = document.getElementById("shown");
    const texts = new Map(rows.map((row) => [row, `${row.textContent} ${row.dataset.kernel}`.toLocaleLowerCase()]));
    const apply = () => {
      const wanted = find.value.trim().toLocaleLowerCase();
      let count = 0;
      for (const row of rows) {
        const fits =
          texts.get(row).includes(wanted) &&
          (verdict.value === "" || row.dataset.verdict === verdict.value) &&
          (check.value === "" || row.dataset.checks.split(" ").includes(check.value));
        row.hidden = !fits;
        count += fits;
      }
      shown.textContent = `${count} of ${rows.length} shown`;
    };
    for (const control of [find, verdict, check]) control.addEventListener("input", apply);
    for (const button of document.querySelectorAll("button[data-check]")) {
      button.disabled = false;
      button.title = "show these in the table";
      button.addEventListener("click", () => {
        [find.value, verdict.value, check.value] = ["", "", button.dataset.check];
        apply();
        card.scrollIntoView();
        check.focus({ preventScroll: true });
      });
    }
    find.closest("[hidden]").hidden = false;
    // A browser that reloads keeps what was typed.
    apply();
  };

  if (card) {
    sortable([...card.querySelectorAll("thead th")]);
    filterable();
  }

  // Keyboards and screen readers follow to the section that a link opened.
  const title = document.title;
  const opened = () => {
    const target = document.getElementById(location.hash.slice(1));
    const section = target && target.closest("section.learner");
    const heading = section && section.querySelector("h1");
    document.title = heading ? `${heading.textContent} · ${title}` : title;
    if (heading && target === section) {
      heading.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  };
  window.addEventListener("hashchange", opened);
  opened();
})();
