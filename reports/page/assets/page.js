"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const drawn = new Set();
  const busy = new Map();

  const ink = () => {
    const style = getComputedStyle(root);
    return { text: style.getPropertyValue("--ink").trim(), line: style.getPropertyValue("--line").trim() };
  };

  // A layout with the colours of the theme; figures themselves say none.
  const themed = (layout) => {
    const { text, line } = ink();
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
    return {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: text, size: 12, family: "system-ui, sans-serif" },
      margin: { l: 60, r: 20, t: 20, b: 50 },
      xaxis: { ...layout.xaxis, ...axis },
      yaxis: { ...layout.yaxis, ...axis },
    };
  };

  const numbers = (array) => {
    if (Array.isArray(array)) return array;
    const bytes = Uint8Array.from(atob(array.bdata), (sign) => sign.charCodeAt(0));
    return array.dtype === "u1" ? bytes : new Float32Array(bytes.buffer);
  };

  // A picture of a timeline's bars between two times; a bar covers at least one of its columns.
  const COLUMNS = 2000;
  const unpacked = (bars) => ({ rows: bars.rows, row: numbers(bars.row), kind: numbers(bars.kind),
    start: numbers(bars.start), stop: numbers(bars.stop) });
  const painted = ({ rows, row, kind, start, stop }, from, to) => {
    const width = (to - from) / COLUMNS;
    const z = Array.from({ length: rows }, () => new Float32Array(COLUMNS).fill(NaN));
    for (let i = 0; i < row.length; i += 1) {
      if (stop[i] <= from || start[i] >= to) continue;
      const first = Math.max(0, Math.floor((start[i] - from) / width));
      const last = Math.min(COLUMNS, Math.max(first + 1, Math.round((stop[i] - from) / width)));
      z[row[i]].fill(kind[i], first, last);
    }
    return { z, x0: from + width / 2, dx: width };
  };
  const followed = (plot, place, bars, whole) => {
    plot.on("plotly_relayout", () => {
      const [from, to] = plot.layout.xaxis.autorange ? whole : plot.layout.xaxis.range;
      const { z, x0, dx } = painted(bars, from, to);
      Plotly.restyle(plot, { z: [z], x0: [x0], dx: [dx] }, [place]);
    });
  };

  const draw = (plot) => {
    const figure = figures[plot.id];
    if (!figure || typeof Plotly === "undefined") return Promise.resolve();
    const fresh = !drawn.has(plot);
    drawn.add(plot);
    const place = figure.bars ? -1 : figure.data.findIndex((trace) => trace.bars);
    const whole = figure.layout.xaxis?.range;
    if (fresh && place >= 0) {
      const { bars, ...rest } = figure.data[place];
      figure.bars = unpacked(bars);
      figure.data[place] = { ...rest, ...painted(figure.bars, ...whole) };
    }
    plot.style.minHeight = `${figure.layout.height}px`;
    const settings = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" };
    // One drawing at a time: two at once leave an axis with the ticks of neither.
    const done = (busy.get(plot) ?? Promise.resolve()).then(async () => {
      await Plotly.react(plot, figure.data, themed(figure.layout), settings);
      if (fresh && figure.bars) followed(plot, place, figure.bars, whole);
    });
    busy.set(plot, done);
    return done;
  };

  const dress = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
    drawn.forEach(draw);
  };
  dress(system.matches);
  system.addEventListener("change", (event) => dress(event.matches));
  button.addEventListener("click", () => dress(root.dataset.theme !== "dark"));

  // Figures are drawn when they come near the screen; to print, all of them.
  const seen = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      seen.unobserve(entry.target);
      if (!drawn.has(entry.target)) draw(entry.target);
    });
  }, { rootMargin: "300px" });
  plots.forEach((plot) => seen.observe(plot));
  const drawAll = () => plots.filter((plot) => !drawn.has(plot)).forEach(draw);
  addEventListener("beforeprint", drawAll);
  if (location.hash === "#print") drawAll();

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
  root.dataset.ready = "true";
})();
