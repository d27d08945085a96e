// Drawings: curves by uPlot, the time line of a step as bars.

// Okabe and Ito's colours, as the plots of the command line have; on a dark page the lightest of
// each pair.
const COLOURS = [
  ["#0072b2", "#56b4e9"],
  ["#b34a00", "#ff8c42"],
  ["#007a5a", "#2fd6a8"],
  ["#a03d78", "#e79ac6"],
  ["#6b5d00", "#f0e442"],
  ["#444444", "#d0d0d0"],
  ["#5b3fbf", "#b6a2ff"],
  ["#9c1c1c", "#ff9a9a"],
];
const DASHES = [[], [8, 4], [2, 3], [12, 4, 2, 4]];
export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
export const colourOf = (i) => COLOURS[i % COLOURS.length][isDark() ? 1 : 0];

function steps125(least, most) {
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(least)); power <= most; power *= 10) {
    for (const digit of [1, 2, 5]) {
      const tick = digit * power;
      if (tick >= least * 0.999 && tick <= most * 1.001) ticks.push(tick);
    }
  }
  return ticks.length > 9 ? ticks.filter((t) => /^1/.test(t.toExponential())) : ticks;
}
function powersOfTwo(least, most) {
  const ticks = [];
  for (let tick = 1; tick <= most * 1.001; tick *= 2) if (tick >= least * 0.999) ticks.push(tick);
  return ticks;
}
function linearSteps(least, most) {
  const rough = (most - least) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((d) => d * power).find((s) => s >= rough);
  const ticks = [];
  for (let t = Math.ceil(least / step) * step; t <= most * 1.0001; t += step) ticks.push(t);
  return ticks;
}

// Draws `series` ({name, x, y, low, high, colour}) and returns the plot. `format` writes a value.
export function drawCurves(place, series, { log, yLabel, format, height, at }) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--soft").trim();
  const grid = { stroke: style.getPropertyValue("--grid").trim(), width: 1 };
  const x = series[0].x;
  const data = [x];
  const shown = [{ label: "workers", value: (_, v) => (v === null ? "–" : String(v)) }];
  const bands = [];
  series.forEach((one, i) => {
    const colour = colourOf(one.colour);
    data.push(one.y);
    shown.push({
      label: one.name,
      stroke: colour,
      width: 2,
      dash: DASHES[Math.floor(i) % DASHES.length],
      points: { show: false },
      value: (_, v, s, row) =>
        v === null || row === null || row === undefined
          ? "–"
          : one.low
            ? `${format(v)} (${format(one.low[row])} to ${format(one.high[row])})`
            : format(v),
    });
    if (!one.low) return;
    const high = data.push(one.high) - 1;
    const low = data.push(one.low) - 1;
    for (let k = 0; k < 2; ++k) {
      shown.push({ label: "", stroke: "transparent", width: 0, points: { show: false } });
    }
    bands.push({ series: [high, low], fill: `${colour}2e` });
  });
  const values = series.flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]);
  const known = values.filter((v) => v !== null && v > 0);
  const least = known.length ? Math.min(...known) : 1;
  const most = known.length ? Math.max(...known) : 10;
  const range = log ? [least / 1.15, most * 1.15] : [0, Math.max(1, most) * 1.05];
  const options = {
    width: Math.max(240, place.clientWidth),
    height,
    padding: [10, 12, 0, 0],
    scales: {
      x: { time: false, distr: 3, log: 2, range: () => [x[0], x[x.length - 1]] },
      y: { distr: log ? 3 : 1, range: () => range },
    },
    axes: [
      {
        label: "workers",
        stroke: ink,
        grid,
        ticks: grid,
        splits: (_, __, a, b) => powersOfTwo(a, b),
        filter: (_, s) => s,
        values: (_, s) => s.map(String),
      },
      {
        label: yLabel,
        stroke: ink,
        grid,
        ticks: grid,
        size: 68,
        splits: (_, __, a, b) => (log ? steps125(a, b) : linearSteps(a, b)),
        filter: (_, s) => s,
        values: (_, s) => s.map(format),
      },
    ],
    series: shown,
    bands,
    legend: { live: true },
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    hooks: {
      draw: [
        (plot) => {
          // Where each plan stands.
          for (const { workers, value, colour } of at) {
            if (value === null || workers < x[0] || workers > x[x.length - 1]) continue;
            const context = plot.ctx;
            context.beginPath();
            context.arc(
              plot.valToPos(workers, "x", true),
              plot.valToPos(value, "y", true),
              4.5 * devicePixelRatio,
              0,
              7,
            );
            context.fillStyle = colourOf(colour);
            context.fill();
          }
        },
      ],
    },
  };
  place.replaceChildren();
  const plot = new uPlot(options, data, place);
  // Bands are no lines of their own in the legend.
  [...place.querySelectorAll(".u-legend .u-series")].forEach((row, i) => {
    if (shown[i].label === "") row.classList.add("unseen");
  });
  return plot;
}

const PART_COLOURS = {
  "micro-steps without an exchange": "#8fb8de",
  forward: "#56b4e9",
  backward: "#2f9bd6",
  "waiting for the network": "#e69f00",
  "starting the exchange": "#f0c75e",
  update: "#7fc9a6",
  "waiting for stragglers": "#d8a0c4",
};

// Two lanes of bars over the time of one step; `write` is for times.
export function drawTimeline(place, spans, write) {
  const make = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const width = Math.max(280, place.clientWidth);
  const left = 62;
  const inner = width - left - 8;
  const svg = make("svg", { viewBox: `0 0 ${width} 104` });
  const end = Math.max(...spans.map((s) => s.end_s));
  const at = (time) => left + (time / end) * inner;
  for (const [lane, y] of [
    ["device", 8],
    ["network", 44],
  ]) {
    svg.append(make("text", { x: 0, y: y + 18 }, lane));
    svg.append(make("line", { x1: left, x2: left + inner, y1: y + 28.5, y2: y + 28.5 }));
  }
  for (const tick of linearSteps(0, end)) {
    svg.append(make("line", { x1: at(tick), x2: at(tick), y1: 6, y2: 80 }));
    const last = at(tick) > left + inner - 24;
    svg.append(
      make(
        "text",
        { x: at(tick), y: 96, "text-anchor": tick === 0 ? "start" : last ? "end" : "middle" },
        tick === 0 ? "0" : write(tick),
      ),
    );
  }
  spans.forEach((span, i) => {
    const y = span.lane === "device" ? 8 : 44;
    const wide = at(span.end_s) - at(span.start_s);
    const fill =
      span.lane === "device" ? PART_COLOURS[span.name] ?? "#aaaaaa" : i % 2 ? "#e69f00" : "#f0b93a";
    const bar = make("rect", {
      x: at(span.start_s),
      y,
      width: Math.max(wide, 0.75),
      height: 26,
      fill,
    });
    bar.append(
      make("title", {}, `${span.name}: ${write(span.end_s - span.start_s)}, from ${write(span.start_s)}`),
    );
    svg.append(bar);
    if (wide > span.name.length * 6.6 + 8) {
      svg.append(make("text", { x: at(span.start_s) + 5, y: y + 18, class: "inside" }, span.name));
    }
  });
  place.replaceChildren(svg);
}
