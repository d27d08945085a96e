// The page: controls made of the program's list, and what its answers look like.
import { openEngine } from "./engine.mjs";
import {
  MOST_PLANS,
  applies,
  bandwidthsFor,
  bytes,
  commandOf,
  controlsOf,
  csvOf,
  curveOf,
  digits,
  efficiencyOf,
  linkOf,
  percent,
  planNames,
  questionOf,
  readLink,
  seconds,
  shownOf,
  wordOf,
  workerSteps,
} from "./state.mjs";
import { colourOf, drawCurves, drawTimeline } from "./plot.mjs";

const element = (id) => document.getElementById(id);
const make = (name, properties = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter((child) => child !== null));
  return node;
};
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const FIRST_WORKLOAD = "resnet50";
const FIRST_PLAN = { workers: "4", local_batch: "64" };
const ANOTHER = ""; // no network has this name
const TARGETS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
// What a slider reaches; boxes take whatever the program's list allows.
const SLIDERS = {
  "Gbit/s": [0.1, 400],
  ms: [0.01, 1000],
  MiB: [1, 1024],
  "samples/s": [10, 1e5],
  count: [1, 1024],
  number: [1e-6, 0.5],
};
const SHOWN = {
  throughput: { label: "samples/s", log: true, format: (v) => digits(v) },
  step_time: { label: "step time", log: true, format: (v) => seconds(v) },
  efficiency: { label: "efficiency", log: false, format: (v) => percent(v) },
};

let engine;
let controls;
let files;
let clusters;
let workloads;
let devices;
let state;
let answers = [];
let plot;
let later = 0;

const plan = () => state.plans[state.selected];
const say = (text) => {
  element("said").textContent = text;
};
function warn(text) {
  element("alert").textContent = text;
  element("alert").hidden = text === "";
}

// ---- Controls.

function option(value, text) {
  return make("option", { value, textContent: text });
}
function fill(id, options) {
  element(id).replaceChildren(...options);
}

// A slider over decades beside a box.
function sliderFor(control) {
  const [low, high] = SLIDERS[control.unit || control.kind] ?? SLIDERS.count;
  const least = Math.max(low, control.least);
  const most = Math.min(high, control.most);
  return {
    toText(place) {
      const value = least * (most / least) ** (place / 100);
      if (control.kind === "count") return String(Math.round(value));
      return String(Number(value.toPrecision(2)));
    },
    toPlace(text) {
      const value = wordOf(control, text)?.value ?? Number(text);
      if (!(value > 0)) return 0;
      return Math.min(100, Math.max(0, (100 * Math.log(value / least)) / Math.log(most / least)));
    },
  };
}

function controlNode(control) {
  const id = `field-${control.column}`;
  const text = plan()[control.column] ?? control.default;
  const words = control.column.replaceAll("_", " ").replace(/ (gbit per s|ms|mib)$/, "");
  const title = `${control.meaning}${control.more}`;
  const set = (value) => change(control, value);
  if (control.kind === "yes or no") {
    const box = make("input", { type: "checkbox", id, checked: text === "yes" });
    box.addEventListener("input", () => set(box.checked ? "yes" : ""));
    return make("div", { className: "field check" }, make("label", { title }, box, words));
  }
  const unit = control.unit ? make("span", { className: "unit", textContent: ` [${control.unit}]` }) : null;
  const label = make("label", { for: id, title }, words, unit);
  if (control.kind === "choice") {
    const none = control.default === "" ? [option("", "not stated")] : [];
    const list = make("select", { id }, ...none, ...control.choices.map((c) => option(c, c)));
    list.value = text;
    list.addEventListener("input", () => set(list.value));
    return make("div", { className: "field wide" }, label, make("div", { className: "line" }, list));
  }
  if (control.unit === undefined) {
    const box = make("input", { type: "text", id, value: plan()[control.column] ?? "" });
    const shown = { placement: "by workers, or like 4-4-2", method: "none, fp16, topk=0.01" };
    box.placeholder = shown[control.kind] ?? "not named";
    box.addEventListener("input", () => set(box.value.trim()));
    return make("div", { className: "field wide" }, label, make("div", { className: "line" }, box));
  }
  const box = make("input", { type: control.words ? "text" : "number", id, value: text });
  let sizes = null;
  if (control.words) {
    // A box for numbers takes no word.
    box.inputMode = "decimal";
    sizes = make("datalist", { id: `words-${control.column}` });
    sizes.append(...control.words.map((size) => option(size.word, size.meaning)));
    box.setAttribute("list", sizes.id);
  } else {
    box.step = control.kind === "count" ? 1 : "any";
    box.min = control.or_nought ? 0 : control.least;
    box.max = control.most;
  }
  if (control.default === "") box.placeholder = "unset";
  const slider = sliderFor(control);
  const range = make("input", { type: "range", min: 0, max: 100, step: 0.5, value: slider.toPlace(text) });
  range.setAttribute("aria-label", `${words}, slider`);
  const tell = () => {
    const told = box.value === "" ? "not stated" : shownOf(control, box.value);
    range.setAttribute("aria-valuetext", told);
  };
  tell();
  range.addEventListener("input", () => {
    box.value = slider.toText(Number(range.value));
    tell();
    set(box.value);
  });
  box.addEventListener("input", () => {
    range.value = slider.toPlace(box.value);
    tell();
    set(box.value.trim());
  });
  const line = make("div", { className: "line" }, range, box);
  return make("div", { className: "field" }, label, line, sizes);
}

function placeOf(control) {
  if (control.of_network) return "training";
  return control.always_told ? "told" : "others";
}
// What holds of training where the plan does not say, which the answer tells.
function tellUnstated() {
  const { prediction } = answers[state.selected];
  for (const control of controls.filter((c) => c.of_network)) {
    const holds = prediction && !plan()[control.column] ? ` (${prediction[control.column]})` : "";
    element(`field-${control.column}`).options[0].textContent = `not stated${holds}`;
  }
}

function showControls() {
  const shown = controls.filter((c) => applies(c, plan()));
  const of = (place) => shown.filter((c) => placeOf(c) === place).map(controlNode);
  for (const place of ["told", "training", "others"]) element(place).replaceChildren(...of(place));
  element("fields-legend").textContent = `Plan ${state.selected + 1} of ${state.plans.length}`;
}

function change(control, text) {
  const changed = plan();
  if (text === "" || text === control.default) delete changed[control.column];
  else changed[control.column] = text;
  if (control.column === "strategy") {
    // Servers that a strategy cannot do without.
    if (!problemOf(changed)) return refresh(true);
    const servers = { ...changed, servers: "1" };
    if (!changed.servers && !problemOf(servers)) changed.servers = "1";
    return refresh(true);
  }
  return refresh(false);
}
function problemOf(one) {
  try {
    engine.ask("/v1/predict", questionOf(controls, state, one));
    return "";
  } catch (error) {
    return error.message;
  }
}

function showPlans(names) {
  element("plans").replaceChildren(
    ...names.map((name, i) => {
      const mark = make("span", { className: "mark" });
      mark.style.borderTopColor = colourOf(i);
      const button = make("button", { type: "button" }, mark, name);
      button.setAttribute("aria-pressed", String(i === state.selected));
      button.addEventListener("click", () => {
        state.selected = i;
        refresh(true);
        element("plans").children[i].focus();
      });
      return button;
    }),
  );
  element("remove").disabled = state.plans.length === 1;
  element("add").disabled = state.plans.length === MOST_PLANS;
}

// The network: one of the list, or another that has a box for what it is called.
function showNetwork(isAnother) {
  element("workload").value = isAnother ? ANOTHER : state.workload;
  element("another").hidden = !isAnother;
  element("network").value = state.workload;
  element("parameters").value = state.parameters;
}

// ---- Answers.

function row(cells, head = false, classes = []) {
  return make(
    "tr",
    {},
    ...cells.map((cell, i) => {
      const node = make(head ? "th" : "td", { className: classes[i] ?? "" });
      if (head) node.scope = "col";
      node.append(cell);
      return node;
    }),
  );
}
function table(id, head, rows, classes = []) {
  element(id).replaceChildren(
    make("thead", {}, row(head, true, classes)),
    make("tbody", {}, ...rows.map((cells) => (cells instanceof Node ? cells : row(cells, false, classes)))),
  );
}

// All that the selected view shows of each plan.
function evaluate() {
  const perNode = clusters.find((c) => c.name === state.cluster).devices_per_node;
  const workers = workerSteps(state.to, perNode);
  answers = state.plans.map((one) => {
    const answer = { curve: null, prediction: null, problem: "" };
    try {
      answer.prediction = engine.ask("/v1/predict", questionOf(controls, state, one));
      answer.curve = curveOf(engine, controls, state, one, workers);
      const at = answer.prediction.plan.workers;
      const { throughput_samples_per_s: throughput } = answer.prediction;
      answer.efficiency = efficiencyOf(throughput, at, answer.curve.alone);
    } catch (error) {
      answer.problem = error.message;
    }
    return answer;
  });
}

function valueAt(answer) {
  if (state.view === "efficiency") return answer.efficiency;
  return state.view === "throughput"
    ? answer.prediction.throughput_samples_per_s
    : answer.prediction.step_time_s;
}

function showCurves(names) {
  const view = SHOWN[state.view];
  const series = [];
  const at = [];
  answers.forEach((answer, i) => {
    if (!answer.curve) return;
    series.push({
      name: names[i],
      colour: i,
      x: answer.curve.workers,
      y: answer.curve[state.view],
      low: answer.curve[`${state.view}_low`],
      high: answer.curve[`${state.view}_high`],
    });
    at.push({ workers: answer.prediction.plan.workers, value: valueAt(answer), colour: i });
  });
  const place = element("curve");
  plot?.destroy();
  plot = undefined;
  if (series.length === 0) {
    place.replaceChildren();
  } else {
    plot = drawCurves(place, series, {
      log: view.log,
      yLabel: view.label,
      format: view.format,
      height: innerWidth < 700 ? 280 : 360,
      at,
    });
  }
  place.setAttribute(
    "aria-label",
    series
      .map((s) => {
        const last = s.y.findLastIndex((v) => v !== null);
        return `${s.name}: ${view.format(s.y[0])} with 1 worker, ${view.format(s.y[last])} with ${s.x[last]}`;
      })
      .join("; ") || "nothing to draw",
  );
  const placed = state.plans.some((p) => p.placement || p.hosts);
  element("curve-note").textContent =
    `${state.view === "efficiency" ? "Throughput as a share of that of as many workers that exchange nothing." : "Bands are 90 % prediction intervals."} Dots are the plans.` +
    (placed ? " Curves fill node after node, whatever placement and hosts say." : "");
}

function showComparison(names) {
  const rows = answers.map((answer, i) => {
    const mark = make("span", { className: "mark" });
    mark.style.borderTopColor = colourOf(i);
    mark.style.display = "inline-block";
    mark.style.verticalAlign = "middle";
    const name = make("span", {}, mark, ` ${names[i]}`);
    if (answer.problem) {
      const cell = make("td", { className: "text wrap error", colSpan: 7, textContent: answer.problem });
      return make("tr", {}, make("td", { className: "wrap" }, name), cell);
    }
    const p = answer.prediction;
    const one = row(
      [
        name,
        String(p.plan.workers),
        seconds(p.step_time_s),
        `${seconds(p.low_s)} to ${seconds(p.high_s)}`,
        `${digits(p.throughput_samples_per_s)}/s`,
        percent(answer.efficiency),
        p.binding.part.replaceAll("_", " "),
        p.memory.verdict.replaceAll("_", " "),
      ],
      false,
      ["wrap", "", "", "", "", "", "text", "text"],
    );
    if (i === state.selected) one.className = "chosen";
    return one;
  });
  table(
    "compare",
    ["plan", "workers", "step", "90 % interval", "samples", "efficiency", "binds", "memory"],
    rows,
    ["", "", "", "", "", "", "text", "text"],
  );
}

const PARTS = {
  forward_s: "forward",
  backward_s: "backward",
  update_s: "update",
  exposed_transfer_s: "exposed transfer",
  exposed_latency_s: "exposed latency",
  straggler_wait_s: "waiting for stragglers",
  coding_s: "coding",
  input_wait_s: "waiting for input",
};
const MEMORY = ["parameters", "gradients", "optimizer", "accumulation", "buckets", "activations", "workspace"];

function showStep() {
  const { prediction: p, problem } = answers[state.selected];
  const head = element("headline");
  if (problem) {
    head.replaceChildren(make("span", { className: "error", textContent: problem }));
    for (const id of ["timeline", "parts", "memory", "flags", "batches", "rates", "parameters", "terms"]) {
      element(id).replaceChildren();
    }
    for (const id of ["binding", "batch-note", "rate-note"]) element(id).textContent = "";
  } else {
    head.replaceChildren(
      `${seconds(p.step_time_s)} a step, ${digits(p.throughput_samples_per_s)} samples/s `,
      make("small", { textContent: `nine of ten steps take ${seconds(p.low_s)} to ${seconds(p.high_s)}` }),
    );
    table(
      "parts",
      ["part", "time", "share"],
      Object.entries(PARTS)
        .filter(([key]) => p.breakdown[key] > 0)
        .map(([key, name]) => [name, seconds(p.breakdown[key]), percent(p.breakdown[key] / p.step_time_s)]),
    );
    element("binding").textContent = p.binding.sentence;
    showMemory(p.memory);
    element("flags").replaceChildren(...p.flags.map((flag) => make("li", { textContent: flag })));
  }
  element("command").textContent = commandOf(controls, state, plan(), files);
}
function showMemory(memory) {
  const { total_bytes: total, available_bytes: available, verdict } = memory;
  const share = available ? total / available : null;
  const bar = make("div", { className: share > 1 ? "bar full" : "bar" }, make("i"));
  bar.firstChild.style.width = `${Math.min(100, 100 * (share ?? 0))}%`;
  const parts = MEMORY.filter((name) => memory[`${name}_bytes`] > 0).map(
    (name) => `${name} ${bytes(memory[`${name}_bytes`])}`,
  );
  element("memory").replaceChildren(
    bar,
    make("p", {
      className: "note",
      textContent: `About ${bytes(total)} of ${available ? bytes(available) : "an unknown size"}: ${verdict.replaceAll("_", " ")}. ${parts.join(", ")}.`,
    }),
  );
}

// What takes longer than a frame is shown once nobody moves anything.
function showLater() {
  const { problem } = answers[state.selected];
  if (problem) return;
  const question = questionOf(controls, state, plan());
  const why = engine.ask("explain", question);
  drawTimeline(element("timeline"), why.timeline, seconds);
  element("timeline").setAttribute(
    "aria-label",
    why.timeline
      .filter((s) => s.lane === "device")
      .map((s) => `${s.name} ${seconds(s.end_s - s.start_s)}`)
      .join(", "),
  );
  table(
    "parameters",
    ["parameter", "value", "1 % more is", "from", "meaning"],
    why.parameters.map((p) => [
      p.name.replaceAll("_", " "),
      `${digits(p.value)} ${p.unit}`,
      `${p.elasticity > 0 ? "+" : ""}${digits(p.elasticity, 2)} %`,
      p.origin,
      p.meaning,
    ]),
    ["", "", "", "text", "text wrap"],
  );
  table(
    "terms",
    ["term", "formula", "result", "with"],
    why.terms.map((t) => [
      t.name,
      t.formula,
      `${digits(t.result.value)} ${t.result.unit}`,
      t.inputs.map((v) => `${v.symbol || v.name} = ${digits(v.value)} ${v.unit}`).join(", "),
    ]),
    ["text", "text", "", "text wrap"],
  );
  showBatches(question);
  showRates();
}

function showBatches(question) {
  let advice;
  try {
    advice = engine.ask("recommend", question);
  } catch (error) {
    // A plan that is predicted may have nothing to compare with.
    element("batch-note").textContent = error.message;
    element("batches").replaceChildren();
    return;
  }
  const best = advice.best;
  element("batch-note").textContent = best
    ? advice.recommended
      ? `${digits(advice.gain)} times the throughput with ${best.local_batch} x ${best.accumulation_steps}. Whether training bears so large a batch is for you to say.`
      : "The plan as given is best."
    : `No batch fits: ${advice.binding_constraint}.`;
  const rows = advice.pareto.map((r) => {
    const use = make("button", { type: "button", textContent: "use" });
    use.setAttribute("aria-label", `use ${r.local_batch} x ${r.accumulation_steps}`);
    use.addEventListener("click", () => {
      plan().local_batch = String(r.local_batch);
      plan().accumulation_steps = String(r.accumulation_steps);
      refresh(true);
    });
    return row([
      `${r.local_batch} x ${r.accumulation_steps}`,
      digits(r.global_batch),
      seconds(r.step_time_s),
      `${digits(r.throughput_samples_per_s)}/s`,
      percent(r.efficiency),
      use,
    ]);
  });
  const unseen = make("span", { className: "unseen", textContent: "use" });
  table("batches", ["batch", "global", "step", "samples", "efficiency", unseen], rows);
}

function showRates() {
  const { prediction: p } = answers[state.selected];
  const workers = p.plan.workers;
  element("rates").replaceChildren();
  if (workers === 1) {
    element("rate-note").textContent = "One worker needs no network.";
    return;
  }
  const rates = bandwidthsFor(engine, controls, state, plan(), workers, TARGETS);
  element("rate-note").textContent = `The line rate with which ${workers} workers reach it.`;
  table(
    "rates",
    ["efficiency", "line rate"],
    TARGETS.map((target, i) => [
      percent(target),
      rates[i] === null
        ? "no rate is enough"
        : rates[i] === 0
          ? "any rate is enough"
          : `${digits(rates[i])} Gbit/s`,
    ]),
  );
}

// ---- Together.

function refresh(withControls) {
  const names = planNames(controls, state.plans);
  evaluate();
  showPlans(names);
  if (withControls) showControls();
  tellUnstated();
  element("view").value = state.view;
  element("to").value = String(state.to);
  showCurves(names);
  showComparison(names);
  showStep();
  history.replaceState(null, "", `#${linkOf(controls, state)}`);
  clearTimeout(later);
  later = setTimeout(showLater, 60);
}

function readAddress() {
  const known = {
    clusters: clusters.map((c) => c.name),
    workloads: workloads.map((w) => w.name),
    devices: devices.map((d) => d.name),
    firstWorkload: workloads.some((w) => w.name === FIRST_WORKLOAD) ? FIRST_WORKLOAD : workloads[0].name,
    firstPlan: { ...FIRST_PLAN },
  };
  warn("");
  try {
    state = readLink(location.hash, controls, known);
  } catch (error) {
    warn(error.message);
    state = readLink("", controls, known);
  }
  element("cluster").value = state.cluster;
  showNetwork(state.parameters !== "" || !known.workloads.includes(state.workload));
  element("device").value = state.device;
  refresh(true);
}

function save(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  say(`${name} saved`);
}
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A file of the disk may be refused the clipboard.
    const box = make("textarea", { value: text });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  say(`${what} copied`);
}
function plotSvg() {
  const view = SHOWN[state.view];
  const names = planNames(controls, state.plans);
  const series = [];
  answers.forEach(({ curve }, i) => {
    if (!curve) return;
    series.push({
      name: names[i],
      x: curve.workers,
      y: curve[state.view],
      low: curve[`${state.view}_low`] ?? [],
      high: curve[`${state.view}_high`] ?? [],
    });
  });
  return engine.ask("plot", {
    title: `${state.workload} on ${state.cluster}`,
    subtitle: "bands are 90 % prediction intervals",
    y_label: { throughput: "throughput [samples/s]", step_time: "step time [s]", efficiency: "efficiency" }[state.view],
    log_y: view.log,
    series,
  });
}

function listen() {
  for (const id of ["cluster", "device", "view", "parameters"]) {
    element(id).addEventListener("input", () => {
      state[id] = element(id).value;
      refresh(false);
    });
  }
  element("workload").addEventListener("input", () => {
    const name = element("workload").value;
    if (name !== ANOTHER) Object.assign(state, { workload: name, parameters: "" });
    showNetwork(name === ANOTHER);
    refresh(false);
  });
  element("network").addEventListener("input", () => {
    state.workload = element("network").value.trim();
    refresh(false);
  });
  element("to").addEventListener("input", () => {
    state.to = Number(element("to").value);
    refresh(false);
  });
  element("add").addEventListener("click", () => {
    state.plans.push({ ...plan() });
    state.selected = state.plans.length - 1;
    refresh(true);
    say("a copy of the plan was added");
  });
  element("remove").addEventListener("click", () => {
    state.plans.splice(state.selected, 1);
    state.selected = Math.min(state.selected, state.plans.length - 1);
    refresh(true);
    say("the plan was removed");
  });
  element("csv").addEventListener("click", () =>
    save("what-if.csv", "text/csv", csvOf(planNames(controls, state.plans), answers.map((a) => a.curve))),
  );
  element("svg").addEventListener("click", () => save("what-if.svg", "image/svg+xml", plotSvg()));
  element("png").addEventListener("click", () =>
    plot?.ctx.canvas.toBlob((blob) => save("what-if.png", "image/png", blob)),
  );
  element("link").addEventListener("click", () => copy(location.href, "link"));
  element("copy").addEventListener("click", () => copy(element("command").textContent, "command"));
  addEventListener("hashchange", readAddress);
  addEventListener("resize", () => {
    showCurves(planNames(controls, state.plans));
    clearTimeout(later);
    later = setTimeout(showLater, 60);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refresh(false));
}

// Draws the curves anew, and tells how many points they have.
function redraw() {
  evaluate();
  showCurves(planNames(controls, state.plans));
  return answers.reduce((sum, answer) => sum + (answer.curve?.workers.length ?? 0), 0);
}

async function start() {
  const wasm = await unpacked(bytesOf(element("module").textContent));
  const open = (records) => openEngine(StepcastModule, wasm, records);
  engine = await open(bytesOf(element("records").textContent));
  controls = controlsOf(engine.ask("fields"), engine.ask("training"));
  files = JSON.parse(element("files").textContent);
  clusters = engine.ask("/v1/clusters").clusters;
  workloads = engine.ask("/v1/workloads").workloads;
  devices = engine.ask("devices");
  fill("cluster", clusters.map((c) => option(c.name, `${c.name}${c.calibrated ? ", calibrated" : ""}`)));
  const another = option(ANOTHER, "another, by name and numbers");
  fill("workload", [...workloads.map((w) => option(w.name, w.title || w.name)), another]);
  fill("device", [option("", "that of the cluster"), ...devices.map((d) => option(d.name, d.title || d.name))]);
  fill("to", [8, 16, 32, 64, 128, 256, 1024, 4096].map((n) => option(String(n), `${n} workers`)));
  for (const id of ["trained", "more"]) element(id).open = innerWidth > 900;
  // For tests, and for who would rather ask than look.
  window.stepcast = {
    open,
    engine,
    controls,
    state: () => state,
    questionOf: (one) => questionOf(controls, state, one),
    redraw,
  };
  listen();
  readAddress();
  element("main").setAttribute("aria-busy", "false");
}

start().catch((error) => warn(`The page cannot be shown: ${error.message}`));
