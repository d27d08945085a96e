// What the page shows, apart from how: plans, links to them, commands. Nothing here knows a document.

// The number of workers stands for the placement that fills node after node.
export const WORKERS = {
  column: "workers",
  flag: "workers",
  kind: "count",
  meaning: "devices that train, node after node filled",
  more: "",
  default: "1",
  always_told: true,
  unit: "",
  least: 1,
  most: 1000000,
  or_nought: false,
  strategies: null,
};
export const VIEWS = ["throughput", "step_time", "efficiency"];
export const MOST_PLANS = 8;
const LONGEST_LINK = 20000;

// The controls of a plan: workers, then the program's list, what is always told first; and between
// them how the network is trained, of which plans may differ as well.
export function controlsOf(fields, training) {
  const told = fields.filter((f) => f.always_told);
  const facts = training.map((fact) => ({ ...fact, strategies: null, of_network: true }));
  return [WORKERS, ...told, ...facts, ...fields.filter((f) => !f.always_told)];
}

export function applies(control, plan) {
  const strategy = plan.strategy ?? "allreduce";
  return control.strategies === null || control.strategies.includes(strategy);
}

// The controls of which a plan states something, with their texts.
function statedOf(controls, plan) {
  return controls
    .filter((c) => plan[c.column] !== undefined && plan[c.column] !== "" && applies(c, plan))
    .filter((c) => c !== WORKERS || !(plan.placement || plan.hosts))
    .map((c) => [c, plan[c.column]]);
}

// The value of a control's text as a request states it. A text that is no number is left to the
// program, which has a sentence for it.
function valueOf(control, text) {
  if (control.kind === "yes or no") return text === "yes";
  if (control.unit === undefined) return text;
  const number = wordOf(control, text)?.value ?? Number(text);
  return Number.isFinite(number) ? number : text;
}

// A size that has a word, where the text is one.
export function wordOf(control, text) {
  return control.words?.find((size) => size.word === text);
}

// What a request states of `plan`, whose values are texts by column: its own fields, and in which
// way which network is trained where.
export function planRequest(controls, plan) {
  return requested(statedOf(controls, plan).filter(([control]) => !control.of_network));
}
export function targetRequest(controls, state, plan) {
  const target = { cluster: state.cluster, workload: state.workload };
  if (state.parameters) target.parameters = valueOf(WORKERS, state.parameters);
  if (state.device) target.device = state.device;
  const facts = statedOf(controls, plan).filter(([control]) => control.of_network);
  return { ...target, ...requested(facts) };
}
function requested(stated) {
  return Object.fromEntries(
    stated.map(([control, text]) => [control.column, valueOf(control, text)]),
  );
}
export function questionOf(controls, state, plan) {
  return { ...targetRequest(controls, state, plan), ...planRequest(controls, plan) };
}

function quoted(text) {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// A control's text as people and command lines have it.
export function shownOf(control, text) {
  return control.unit && !wordOf(control, text) ? `${text} ${control.unit}` : text;
}

// The command that answers the same.
// `files` says what a command line calls clusters and own networks.
export function commandOf(controls, state, plan, files) {
  const words = ["stepcast", "predict", "--cluster", quoted(files.clusters[state.cluster])];
  if (state.device) words.push("--device", quoted(state.device));
  let own = Object.hasOwn(files.workloads, state.workload) ? files.workloads[state.workload] : "";
  if (state.parameters && !own) {
    // A command knows a network by its size from a file alone.
    own = "network.yaml";
    const parameters = valueOf(WORKERS, state.parameters); // a file takes no 1.1e8
    const lines = [`name: ${JSON.stringify(state.workload)}`, `parameters: ${parameters}`];
    words.unshift("printf", "'%s\\n'", ...lines.map(quoted), ">", own, "&&");
  }
  if (own) words.push("--workload-file", quoted(own));
  words.push("--workload", quoted(state.workload));
  for (const [control, text] of statedOf(controls, plan)) {
    if (control.kind === "yes or no") {
      if (text === "yes") words.push(`--${control.flag}`);
      continue;
    }
    words.push(`--${control.flag}`, quoted(shownOf(control, text)));
  }
  return words.join(" ");
}

// What tells plans apart, in words: by the fields in which they differ, as far as they say something
// else than the default or are always told.
export function planNames(controls, plans) {
  const differing = controls.filter(
    (c) => c !== WORKERS && plans.some((p) => textOf(c, p) !== textOf(c, plans[0])),
  );
  const strategy = controls.filter((c) => c.column === "strategy");
  const words = (plan) =>
    (differing.length > 0 ? differing : strategy)
      .filter((c) => textOf(c, plan) !== "" && (c.always_told || textOf(c, plan) !== c.default))
      .map((c) => {
        const text = textOf(c, plan);
        if (c.kind === "yes or no") return c.flag.replaceAll("-", " ");
        if (c.kind === "count") return `${text} ${c.flag.replaceAll("-", " ")}`;
        return c.noun ? `${text} ${c.noun}` : shownOf(c, text);
      })
      .join(", ");
  return plans.map((plan, i) => words(plan) || `plan ${i + 1}`);
}
function textOf(control, plan) {
  return applies(control, plan) ? (plan[control.column] ?? control.default) : "";
}

// ---- Links.

export function linkOf(controls, state) {
  const link = new URLSearchParams();
  link.set("cluster", state.cluster);
  link.set("workload", state.workload);
  if (state.parameters) link.set("parameters", state.parameters);
  if (state.device) link.set("device", state.device);
  link.set("view", state.view);
  link.set("to", String(state.to));
  link.set("selected", String(state.selected + 1));
  for (const plan of state.plans) {
    const one = new URLSearchParams();
    for (const control of controls) {
      const text = plan[control.column];
      if (text !== undefined && text !== "") one.set(control.column, text);
    }
    link.append("plan", one.toString());
  }
  return link.toString();
}

// The state that a link tells. Throws an Error with a sentence for one that tells none: clusters and
// devices are known to `known`; networks, which are more than have a name, and plans are judged by
// whoever is asked about them.
export function readLink(hash, controls, known) {
  const text = hash.replace(/^#/, "");
  if (text.length > LONGEST_LINK) {
    throw new Error(`The link is too long: ${text.length} characters, at most ${LONGEST_LINK}.`);
  }
  const link = new URLSearchParams(text);
  const keys = ["cluster", "workload", "parameters", "device", "view", "to", "selected", "plan"];
  for (const key of link.keys()) {
    if (!keys.includes(key)) {
      throw new Error(`The link's '${shortened(key)}' is not known; allowed: ${keys.join(", ")}.`);
    }
    if (key !== "plan" && link.getAll(key).length > 1) {
      throw new Error(`The link says '${key}' twice.`);
    }
  }
  const choose = (key, names, otherwise) => {
    const name = link.get(key) ?? otherwise;
    if (names.includes(name)) return name;
    throw new Error(`The link's ${key} '${shortened(name)}' is not in this page.`);
  };
  const count = (key, least, most, otherwise) => {
    const digits = link.get(key);
    if (digits === null) return otherwise;
    const number = Number(digits);
    if (/^\d{1,9}$/.test(digits) && number >= least && number <= most) return number;
    throw new Error(
      `The link's ${key} '${shortened(digits)}' is not a whole number from ${least} to ${most}.`,
    );
  };
  const plans = link.getAll("plan").map((one) => {
    const plan = {};
    for (const [column, value] of new URLSearchParams(one)) {
      if (!controls.some((c) => c.column === column)) {
        throw new Error(`The link's plan has no field '${shortened(column)}'.`);
      }
      if (column in plan) throw new Error(`The link's plan says '${column}' twice.`);
      plan[column] = value;
    }
    return plan;
  });
  if (plans.length > MOST_PLANS) {
    throw new Error(`The link has ${plans.length} plans, at most ${MOST_PLANS} are shown.`);
  }
  if (plans.length === 0) plans.push(known.firstPlan);
  return {
    cluster: choose("cluster", known.clusters, known.clusters[0]),
    workload: link.get("workload") ?? known.firstWorkload,
    parameters: link.get("parameters") ?? "",
    device: choose("device", ["", ...known.devices], ""),
    view: choose("view", VIEWS, VIEWS[0]),
    to: count("to", 2, 4096, 64),
    selected: count("selected", 1, plans.length, 1) - 1,
    plans,
  };
}
function shortened(text) {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}

// ---- Curves.

// Numbers of workers from 1 to `to`: each up to 64, full nodes and powers of two beyond.
export function workerSteps(to, perNode) {
  const steps = new Set();
  for (let n = 1; n <= Math.min(to, 64); ++n) steps.add(n);
  for (let n = 64; n < to; n = Math.max(n + 1, Math.round(n * 1.05))) {
    steps.add(Math.max(1, Math.round(n / perNode)) * perNode);
  }
  for (let n = 1; n <= to; n *= 2) steps.add(n);
  steps.add(to);
  return [...steps].filter((n) => n <= to).sort((a, b) => a - b);
}

// One plan over numbers of workers: the columns that a plot, a table and a file are made of.
export function curveOf(engine, controls, state, plan, workers) {
  const request = planRequest(controls, plan);
  for (const column of ["placement", "hosts"]) delete request[column];
  request.workers = Math.max(...workers);  // so that there may be backups, and servers beside them
  const question = {
    ...targetRequest(controls, state, plan),
    plan: request,
    interval: true,
    queries: { workers },
  };
  const answer = engine.ask("/v1/predict_batch", question);
  const perStep = workers.map((w) => samplesOf(plan, w));
  const rate = (seconds) =>
    seconds.map((t, i) => (t === null || t === undefined ? null : perStep[i] / t));
  const curve = {
    workers,
    step_time: answer.step_time_s,
    step_time_low: answer.low_s,
    step_time_high: answer.high_s,
    throughput: rate(answer.step_time_s),
    throughput_low: rate(answer.high_s),
    throughput_high: rate(answer.low_s),
    memory: answer.memory,
  };
  const alone = throughputAlone(engine, controls, state, plan);
  curve.alone = alone;
  curve.efficiency = curve.throughput.map((t, i) => efficiencyOf(t, workers[i], alone));
  return curve;
}
// Samples a second of one worker that exchanges nothing, as efficiency is told by everywhere; null of
// a bare message.
export function throughputAlone(engine, controls, state, plan) {
  const single = { ...plan, strategy: "none", workers: "1", placement: "", hosts: "" };
  const question = JSON.stringify(questionOf(controls, state, single));
  engine.alone ??= new Map(); // few sliders change it
  if (engine.alone.size > 1000) engine.alone.clear();
  if (!engine.alone.has(question)) {
    const { status, text } = engine.askText("/v1/predict", question);
    const throughput = status === 200 ? JSON.parse(text).throughput_samples_per_s : null;
    engine.alone.set(question, throughput);
  }
  return engine.alone.get(question);
}
export function efficiencyOf(throughput, workers, alone) {
  if (typeof throughput !== "number" || alone === null) return null;
  return throughput / (workers * alone);
}
// Samples of a step that count: the gradients of backup workers come too late and are dropped.
function samplesOf(plan, workers) {
  const counted = workers - Math.min(Number(plan.backup_workers || 0), workers);
  return Number(plan.local_batch) * Number(plan.accumulation_steps || 1) * counted;
}

// The least rate of links with which the plan's `workers`, placed as it says, are as efficient as
// each of `targets`: 0 where the least that is tried is enough, and null where none is. Found in
// one list of rates, a hundredth apart.
export function bandwidthsFor(engine, controls, state, plan, workers, targets) {
  const rates = [];
  for (let rate = 0.01; rate < 2000; rate *= 1.01) rates.push(rate);
  const request = planRequest(controls, plan);
  delete request.link_gbit_per_s;
  const alone = throughputAlone(engine, controls, state, plan);
  const { step_time_s: steps } = engine.ask("/v1/predict_batch", {
    ...targetRequest(controls, state, plan),
    plan: request,
    interval: false,
    queries: { link_gbit_per_s: rates },
  });
  const samples = samplesOf(plan, workers);
  return targets.map((target) => {
    const found = steps.findIndex(
      (step) => step !== null && efficiencyOf(samples / step, workers, alone) >= target,
    );
    if (found < 0) return null;
    return found === 0 ? 0 : rates[found];
  });
}

export function csvOf(names, curves) {
  const rows = ["plan,workers,step_time_s,low_s,high_s,throughput_samples_per_s,efficiency"];
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  curves.forEach((curve, p) => {
    if (!curve) return;
    curve.workers.forEach((workers, i) => {
      const numbers = [
        workers,
        curve.step_time[i],
        curve.step_time_low[i],
        curve.step_time_high[i],
        curve.throughput[i],
        curve.efficiency[i],
      ];
      rows.push([cell(names[p]), ...numbers.map((n) => n ?? "")].join(","));
    });
  });
  return `${rows.join("\n")}\n`;
}

// ---- Numbers in words.

export function digits(value, count = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-GB");
  return String(Number(value.toPrecision(count)));
}
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  for (const [least, size, unit] of [
    [1, 1, "s"],
    [1e-3, 1e-3, "ms"],
    [0, 1e-6, "µs"],
  ]) {
    if (value >= least) return `${digits(value / size)} ${unit}`;
  }
  return "–";
}
export function percent(value) {
  if (value === null || value === undefined) return "–";
  return `${digits(100 * value, 3)} %`;
}
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ]) {
    if (value >= size) return `${digits(value / size)} ${unit}`;
  }
  return `${digits(value)} B`;
}
