"use strict";
// Figures are drawn when they come near the screen, and to print all of them; plotly's script, which
// is most of the page, runs before the first of them and not before the page can be used.
const drawings = (() => {
  const NEAR = "300px";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const drawn = new Set();
  const waiting = new Map();

  // The page's policy names the hash of this script, whose element does not run by itself.
  const loaded = () => {
    const source = document.getElementById("plotly");
    if (!source) return;
    const script = document.createElement("script");
    script.textContent = source.textContent;
    source.remove();
    document.head.append(script);
  };

  // A layout with the colours of the theme; figures themselves say none.
  const themed = (layout) => {
    const style = getComputedStyle(root);
    const [text, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
    return {
      ...layout,
      uirevision: "kept", // a new theme leaves the zoom as it is
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: text, size: 12, family: "system-ui, sans-serif" },
      margin: { l: 60, r: 20, t: 20, b: 50 },
      xaxis: { ...layout.xaxis, ...axis },
      yaxis: { ...layout.yaxis, ...axis },
    };
  };
  const SETTINGS = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" };

  const react = async (plot, figure, fresh) => {
    const layout = themed(figure.layout);
    if (!figure.bars) return Plotly.react(plot, figure.data, layout, SETTINGS);
    if (fresh) figure.bars = timelines.read(figure.bars);
    const range = plot.layout?.xaxis?.range ?? figure.layout.xaxis.range;
    const width = plot._fullLayout?._size?.w ?? plot.clientWidth;
    const bars = timelines.drawn(figure.bars, range, width);
    const settings = { ...SETTINGS, doubleClick: "reset", modeBarButtonsToRemove: ["autoScale2d"] };
    const data = [...figure.data, bars.trace];
    await Plotly.react(plot, data, { ...layout, ...bars.layout }, settings);
    if (fresh) timelines.attached(plot, figure.bars, figure.data.length);
  };

  // One drawing of a plot at a time: two at once leave an axis with the ticks of neither.
  const draw = (plot) => {
    const figure = figures[plot.id];
    if (!figure) return Promise.resolve();
    loaded();
    const fresh = !drawn.has(plot);
    drawn.add(plot);
    plot.style.minHeight = `${figure.layout.height}px`;
    const done = (waiting.get(plot) ?? Promise.resolve()).then(() => react(plot, figure, fresh));
    waiting.set(plot, done);
    return done;
  };
  const redraw = () => Promise.all([...drawn].map(draw));
  const drawAll = () => Promise.all(plots.filter((plot) => !drawn.has(plot)).map(draw));

  // Calls `done` once the figures that are near the screen at first are drawn.
  const watch = (done) => {
    let first = true;
    const seen = new IntersectionObserver(async (entries) => {
      const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      const opening = first;
      first = false;
      for (const plot of near.filter((each) => !drawn.has(each))) {
        seen.unobserve(plot);
        await draw(plot);
        // Between two figures the page answers who uses it.
        await new Promise((next) => { setTimeout(next); });
      }
      if (!opening) return;
      done();
      (globalThis.requestIdleCallback ?? setTimeout)(loaded);
    }, { rootMargin: NEAR });
    plots.forEach((plot) => seen.observe(plot));
  };
  return { redraw, drawAll, watch };
})();
