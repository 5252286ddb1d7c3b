"use strict";
// The theme, and tables that sort and filter.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const figures = typeof drawings === "undefined" ? null : drawings;

  const dress = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
    figures?.redraw();
  };
  dress(system.matches);
  system.addEventListener("change", (event) => dress(event.matches));
  button.addEventListener("click", () => dress(root.dataset.theme !== "dark"));

  // Paper is light, and has all figures.
  let before = "";
  const toPaper = () => {
    before ||= root.dataset.theme;
    if (before === "dark") dress(false);
    figures?.drawAll();
  };
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", () => {
    if (before === "dark") dress(true);
    before = "";
  });
  if (location.hash === "#print") toPaper();

  // Numbers sort as numbers, whatever unit stands behind them on all of their lines.
  const value = (text) => {
    const found = /^[-+]?[\d,]*\.?\d+(e[-+]?\d+)?/.exec(text.trim());
    return found ? Number(found[0].replaceAll(",", "")) : NaN;
  };
  const UNITS = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400 };
  const key = (text) => {
    const unit = UNITS[/[a-z]+$/.exec(text.trim())?.[0]];
    return value(text) * (unit ?? 1);
  };
  const compare = (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
    return Number.isNaN(a) ? one.localeCompare(other) : a - b;
  };
  const sort = (head) => {
    const row = head.parentElement;
    const body = head.closest("table").tBodies[0];
    const place = [...row.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    [...row.children].forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const text = (line) => line.children[place].textContent;
    const lines = [...body.rows].sort((one, other) => compare(text(one), text(other)));
    body.append(...(down ? lines.reverse() : lines));
  };
  document.querySelectorAll("th button").forEach((each) =>
    each.addEventListener("click", () => sort(each.parentElement)));

  document.querySelectorAll(".filter input").forEach((input) => {
    const body = input.closest("section").querySelector("tbody");
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      [...body.rows].forEach((line) => {
        line.hidden = !line.textContent.toLowerCase().includes(wanted);
      });
    });
  });

  root.dataset.usable = "true";
  const ready = () => { root.dataset.ready = "true"; };
  if (figures) figures.watch(ready);
  else ready();
})();
