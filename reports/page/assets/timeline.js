"use strict";
// Bars in rows over time: shapes while few are in view, a picture while they are many. The bars of a
// row stand in the order of time, so that what is in view and under the pointer is found by bisection.
const timelines = (() => {
  const MOST_SHAPES = 4000; // more take a browser a second, a picture of them a tenth of that
  const EDGED = 12; // pixels of a bar on the average from which on its edge does not hide it
  const HALF = 0.42; // half the height of a bar, over the distance of two rows
  const SIGN = 7; // pixels of the width of a sign
  const NEAR = 3; // pixels by which a pointer may miss a narrow bar
  const FINE = 2; // columns of a picture for each pixel
  const LINES = 12; // of a picture, for each row
  const MOST_LINES = 2400;
  const INK = "#16171a"; // on a bar, whatever the theme
  const EDGE = "#888888";

  const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
  const numbers = (packed) => {
    if (Array.isArray(packed)) return packed;
    const bytes = Uint8Array.from(atob(packed.bdata), (sign) => sign.charCodeAt(0));
    return new TYPES[packed.dtype](bytes.buffer);
  };
  const read = (bars) => {
    const columns = {};
    for (const name of ["first", "kind", "start", "stop", "text", "label"]) {
      columns[name] = numbers(bars[name]);
    }
    return { ...bars, ...columns };
  };

  // The first bar of a row that ends after a time; the row's end where none does.
  const after = (bars, row, time) => {
    let low = bars.first[row];
    let high = bars.first[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bars.stop[middle] * bars.unit > time) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const seen = (bars, [from, to]) => {
    const places = [];
    bars.rows.forEach((_, row) => {
      const end = bars.first[row + 1];
      for (let bar = after(bars, row, from); bar < end && bars.start[bar] * bars.unit < to; bar += 1) {
        places.push([row, bar]);
      }
    });
    return places;
  };

  const shapes = (bars, places, width) => {
    const paths = bars.colours.map(() => []);
    for (const [row, bar] of places) {
      const from = (bars.start[bar] * bars.unit).toPrecision(9);
      const to = (bars.stop[bar] * bars.unit).toPrecision(9);
      paths[bars.kind[bar]].push(`M${from},${row - HALF}H${to}V${row + HALF}H${from}Z`);
    }
    const edge = (width * bars.rows.length) / places.length < EDGED ? 0 : 0.5;
    return paths.flatMap((parts, kind) => (parts.length ? [{ type: "path", path: parts.join(""),
      fillcolor: bars.colours[kind], line: { width: edge, color: EDGE }, layer: "above" }] : []));
  };
  const picture = (bars, places, [from, to], width) => {
    const canvas = document.createElement("canvas");
    const lines = Math.max(2, Math.min(LINES, Math.floor(MOST_LINES / bars.rows.length)));
    canvas.width = FINE * Math.ceil(width);
    canvas.height = lines * bars.rows.length;
    const ground = canvas.getContext("2d");
    const scale = canvas.width / (to - from);
    const gap = lines > 4 ? 2 : 1;
    for (const [row, bar] of places) {
      const left = Math.max(0, Math.floor((bars.start[bar] * bars.unit - from) * scale));
      const right = Math.min(canvas.width, Math.round((bars.stop[bar] * bars.unit - from) * scale));
      const wide = right - left;
      ground.fillStyle = bars.colours[bars.kind[bar]];
      ground.fillRect(left, row * lines, Math.max(1, wide > 4 ? wide - 1 : wide), lines - gap);
    }
    return { source: canvas.toDataURL(), xref: "x", yref: "y", x: from, y: -0.5, sizex: to - from,
      sizey: bars.rows.length, sizing: "stretch", layer: "above" };
  };
  const labels = (bars, places, scale) => {
    const fitting = places.filter(([, bar]) => {
      const text = bars.labels[bars.label[bar]] ?? "";
      return text && (bars.stop[bar] - bars.start[bar]) * bars.unit * scale > SIGN * (text.length + 1);
    });
    return {
      type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false,
      textfont: { color: INK, size: 10 },
      x: fitting.map(([, bar]) => ((bars.start[bar] + bars.stop[bar]) / 2) * bars.unit),
      y: fitting.map(([row]) => row),
      text: fitting.map(([, bar]) => bars.labels[bars.label[bar]]),
    };
  };

  // What plotly draws of the bars between two times, on `width` pixels.
  const drawn = (bars, range, width) => {
    const places = seen(bars, range);
    const few = places.length <= MOST_SHAPES;
    return {
      trace: labels(bars, few ? places : [], width / (range[1] - range[0])),
      layout: {
        shapes: few ? shapes(bars, places, width) : [],
        images: few ? [] : [picture(bars, places, range, width)],
      },
    };
  };

  const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "us"]];
  const seconds = (value) => {
    const [size, unit] = UNITS.find(([each]) => value >= each) ?? (value ? UNITS[2] : UNITS[0]);
    const digits = value / size >= 1000 ? (value / size).toFixed(0) : (value / size).toPrecision(4);
    return `${digits} ${unit}`;
  };
  const said = (bars, row, from, to, text) =>
    `${bars.rows[row]}: ${text}\n${seconds(from)} + ${seconds(to - from)}`;
  // What is at a time in a row; a bar is found up to `near` seconds beside it.
  const at = (bars, row, time, near) => {
    const next = after(bars, row, time);
    const [first, end] = [bars.first[row], bars.first[row + 1]];
    const begins = next < end ? bars.start[next] * bars.unit : bars.end;
    const ended = next > first ? bars.stop[next - 1] * bars.unit : 0;
    const [to, since] = [begins - time, time - ended];
    const before = next > first && since <= near && since < to;
    const bar = before ? next - 1 : next < end && to <= near ? next : -1;
    if (bar < 0) return bars.idle ? said(bars, row, ended, begins, bars.idle) : "";
    const text = bars.texts[bars.text[bar]];
    return said(bars, row, bars.start[bar] * bars.unit, bars.stop[bar] * bars.unit, text);
  };

  // Follows the zoom of a plot, and says what is under the pointer.
  const attached = (plot, bars, place) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    plot.parentElement.append(tip);
    plot.on("plotly_relayout", () => {
      const { trace, layout } = drawn(bars, plot.layout.xaxis.range, plot._fullLayout._size.w);
      const { x, y, text } = trace;
      Plotly.update(plot, { x: [x], y: [y], text: [text] }, layout, [place]);
    });
    const shown = (event) => {
      const { _size: size, xaxis, yaxis } = plot._fullLayout;
      const box = plot.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left - size.l, event.clientY - box.top - size.t];
      const row = Math.round(yaxis.p2d(y));
      const inside = x >= 0 && y >= 0 && x <= size.w && y <= size.h && row >= 0 && row < bars.rows.length;
      const near = (NEAR * (xaxis.range[1] - xaxis.range[0])) / size.w;
      tip.textContent = inside && !event.buttons ? at(bars, row, xaxis.p2d(x), near) : "";
      tip.hidden = !tip.textContent;
      const room = plot.parentElement.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(room, event.clientX - box.left + 12))}px`;
      tip.style.top = `${plot.offsetTop + event.clientY - box.top + 16}px`;
    };
    plot.addEventListener("pointermove", shown);
    plot.addEventListener("pointerleave", () => { tip.hidden = true; });
  };

  return { read, drawn, attached };
})();
