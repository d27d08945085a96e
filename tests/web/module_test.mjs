// The module as node runs it, and what of the page needs no document.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { openEngine } from "../../predictor/web/page/engine.mjs";
import * as state from "../../predictor/web/page/state.mjs";
import { difference, draws, places, requireQuick } from "./support.mjs";

const { STEPCAST_WASM: wasm, STEPCAST_PROGRAM: program } = process.env;
const factory = createRequire(import.meta.url)(join(wasm, "stepcast_web.js"));
const binary = readFileSync(join(wasm, "stepcast_web.wasm"));

test("the module answers as the program does, to 1e-12", async () => {
  let asked = 0;
  let answered = 0;
  for (const { records, questions } of places()) {
    const engine = await openEngine(factory, binary, records);
    for (const { target, body, status, answer } of questions) {
      const reply = engine.askText(target, body);
      assert.equal(reply.status, status, `${target} ${body}: ${reply.text}`);
      const differs = difference(answer, JSON.parse(reply.text));
      assert.equal(differs, "", `${target} ${body}`);
      asked += 1;
      answered += status === 200 ? 1 : 0;
    }
  }
  assert.ok(answered >= 10000, `only ${answered} of ${asked} have an answer`);
});

test("a thousand plans with their bands take a frame", async (t) => {
  const engine = await openEngine(factory, binary, places()[0].records);
  const cluster = engine.ask("/v1/clusters").clusters[0];
  const question = {
    cluster: cluster.name,
    workload: "resnet50",
    device: "v100",
    plan: { local_batch: 32 },
    queries: { workers: Array.from({ length: 1000 }, (_, i) => i + 1) },
  };
  const times = [];
  for (let i = 0; i < 30; ++i) {
    const begin = performance.now();
    assert.equal(engine.ask("/v1/predict_batch", question).failed, 0);
    times.push(performance.now() - begin);
  }
  requireQuick(t, times, 16);
});

test("records that are not of this build are refused with a sentence", async () => {
  await assert.rejects(openEngine(factory, binary, Buffer.from("stepcast")), /not those of this build/);
});

// ---- The program.

test("the program says what is wrong in one line", () => {
  const wrong = (...options) => spawnSync(program, ["page", ...options], { encoding: "utf8" });
  for (const [options, sentence] of [
    [[], /^stepcast: --output: is required/],
    [["--output", "x.html", "--cluster", "nowhere"], /^stepcast: --cluster: 'nowhere'/],
    [["--output", "x.html", "--cluster", "gce-t4", "--cluster", "gce-t4"], /^stepcast: --cluster: .gce-t4. has the name of two clusters, gce-t4/],
    [["--output", "/nowhere/x.html"], /^stepcast: \/nowhere\/x.html/],
  ]) {
    const { status, stdout, stderr } = wrong(...options);
    assert.equal(status, 2, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, sentence);
    assert.equal(stderr.trimEnd().split("\n").length, 1);
  }
});

test("the program says how long the page is that it writes", () => {
  const folder = mkdtempSync(join(tmpdir(), "stepcast-"));
  try {
    const output = join(folder, "page.html");
    const { status, stdout, stderr } = spawnSync(
      program,
      ["page", "--cluster", "gce-t4", "--output", output, "--json"],
      { encoding: "utf8" },
    );
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), {
      output,
      bytes: statSync(output).size,
      clusters: ["gce-t4"],
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

// ---- Controls.

// Options of the commands whose questions the page answers that have no control, each with the
// reason.
const ONE_STEP = "the page tells of one step, not of the whole job";
const FRONTIER = "the page shows every batch worth trying, and leaves the choice to its reader";
const AS_GIVEN = "the page tries batches and accumulation, as recommend does where nobody says";
const CURVES = "the curves and tables of the page show where scaling ends";
const WITHOUT_CONTROL = {
  "workload-file": "a page has the files that it was written with",
  profile: "a page has no measured layers",
  parameters: "is a box beside that of a network in no list",
  "one-worker": "a page learns from no measured step",
  json: "says how an answer is printed",
  help: "asks nothing",
  "time-limit": "says what the command exits with; the page shows the interval",
  beside: "is a file of runs, and a page reads no files; link_others has a control",
  "data-set": ONE_STEP,
  "noise-scale": ONE_STEP,
  "known-batch": ONE_STEP,
  "least-steps": ONE_STEP,
  "node-mtbf": ONE_STEP,
  "device-mtbf": ONE_STEP,
  "checkpoint-time": ONE_STEP,
  "restart-time": ONE_STEP,
  "most-workers": CURVES,
  "global-batch": CURVES,
  "target-efficiency": CURVES,
  "most-global-batch": FRONTIER,
  objective: FRONTIER,
  "try-workers": AS_GIVEN,
  "try-local-batch": AS_GIVEN,
  "try-accumulation": AS_GIVEN,
  "try-servers": AS_GIVEN,
  "try-strategy": AS_GIVEN,
  "try-bucket": AS_GIVEN,
  "try-shard": AS_GIVEN,
  "try-compress": AS_GIVEN,
};

test("every option that changes an answer has a control, or a reason why it has none", async () => {
  const { controls } = await opened();
  const html = readFileSync(new URL("../../predictor/web/page/index.html", import.meta.url), "utf8");
  const where = ["cluster", "workload", "device"];
  for (const id of where) assert.ok(html.includes(`id="${id}"`), id);
  const shown = [...where, ...controls.map((control) => control.flag)];
  assert.equal(new Set(shown).size, shown.length);
  const options = new Set();
  for (const command of ["predict", "limits", "recommend"]) {
    const help = execFileSync(program, [command, "--help"], { encoding: "utf8" });
    for (const [, option] of help.matchAll(/^  --([a-z-]+)/gm)) options.add(option);
  }
  assert.deepEqual(
    [...options].filter((option) => !shown.includes(option) && !(option in WITHOUT_CONTROL)),
    [],
    "have neither a control nor a reason",
  );
  assert.deepEqual(shown.filter((flag) => !options.has(flag)), [], "are options of no command");
  assert.deepEqual(
    Object.keys(WITHOUT_CONTROL).filter((option) => !options.has(option) || shown.includes(option)),
    [],
    "have a reason for nothing",
  );
});

// ---- Links.

async function opened() {
  const engine = await openEngine(factory, binary, places()[0].records);
  const names = (list) => list.map((one) => one.name);
  return {
    engine,
    controls: state.controlsOf(engine.ask("fields"), engine.ask("training")),
    known: {
      clusters: names(engine.ask("/v1/clusters").clusters),
      workloads: names(engine.ask("/v1/workloads").workloads),
      devices: names(engine.ask("devices")),
      firstWorkload: "resnet50",
      firstPlan: { workers: "4", local_batch: "64" },
    },
  };
}
function drawState(draw, { controls, known }) {
  const plans = Array.from({ length: 1 + draw.whole(8) }, () => {
    const plan = {};
    for (const control of controls) {
      if (draw.next() < 0.5) continue;
      const texts = control.choices ?? ["1", "3", "0.5", "yes", "a+b", "<b>&\"'", "\u00e9 %20+#"];
      plan[control.column] = draw.from(texts);
    }
    return plan;
  });
  return {
    cluster: draw.from(known.clusters),
    workload: draw.from([...known.workloads, "gpt:layers=2:hidden=64:heads=2@64", "\u00e9 %20+#", ""]),
    parameters: draw.from(["", "", "110000000", "<b>"]),
    device: draw.from(["", ...known.devices]),
    view: draw.from(state.VIEWS),
    to: 2 + draw.whole(4000),
    selected: draw.whole(plans.length),
    plans,
  };
}

test("what a link tells is what was shown", async () => {
  const page = await opened();
  const draw = draws(1);
  for (let i = 0; i < 500; ++i) {
    const shown = drawState(draw, page);
    const link = state.linkOf(page.controls, shown);
    assert.deepEqual(state.readLink(`#${link}`, page.controls, page.known), shown);
  }
});

test("any other link opens or is refused with a sentence", async () => {
  const page = await opened();
  const draw = draws(2);
  let refused = 0;
  for (let i = 0; i < 3000; ++i) {
    const link = [...state.linkOf(page.controls, drawState(draw, page))];
    for (let k = draw.whole(6); k >= 0; --k) {
      const at = draw.whole(link.length);
      link.splice(at, draw.whole(9), draw.from(["&", "=", "%", "%ff", "plan=", "x", "9", "\u0000", "__proto__=1&"]));
    }
    try {
      const read = state.readLink(link.join(""), page.controls, page.known);
      assert.ok(page.known.clusters.includes(read.cluster));
      assert.ok(read.plans[read.selected]);
      for (const plan of read.plans) {
        state.commandOf(page.controls, read, plan, { clusters: { [read.cluster]: "c" }, workloads: {} });
        const question = JSON.stringify(state.questionOf(page.controls, read, plan));
        const reply = page.engine.askText("/v1/predict", question);
        assert.ok(reply.status === 200 || JSON.parse(reply.text).detail.length > 10, reply.text);
      }
      state.planNames(page.controls, read.plans);
    } catch (error) {
      assert.match(error.message, /^The link.*\.$/s);
      assert.ok(error.message.length < 400);
      refused += 1;
    }
  }
  assert.ok(refused > 100 && refused < 2990, `${refused} were refused`);
});

test("efficiency and throughput are the program's", async () => {
  const { engine, controls, known } = await opened();
  const draw = draws(3);
  let compared = 0;
  for (const cluster of known.clusters) {
    for (let i = 0; i < 60; ++i) {
      const shown = { cluster, workload: draw.from(["resnet50", "vgg16", "bert_base"]), device: "v100" };
      const plan = {
        workers: String(2 + draw.whole(30)),
        local_batch: String(1 + draw.whole(200)),
        accumulation_steps: String(1 + draw.whole(5)),
        ...draw.from([{}, { backup_workers: "1" }, { strategy: "ps-sync", servers: "2" }, { strategy: "ps-async", servers: "3" }]),
        ...draw.from([{}, { precision: "fp16" }, { optimizer: "adam", recompute: "full" }]),
      };
      const question = state.questionOf(controls, shown, plan);
      const curve = state.curveOf(engine, controls, shown, plan, [1, Number(plan.workers)]);
      const prediction = engine.ask("/v1/predict", question);
      const { baseline } = engine.ask("recommend", question);
      assert.ok(Math.abs(curve.throughput[1] / prediction.throughput_samples_per_s - 1) < 1e-9, JSON.stringify(plan));
      assert.ok(Math.abs(curve.efficiency[1] / baseline.efficiency - 1) < 1e-9, JSON.stringify(plan));
      compared += 1;
    }
  }
  assert.ok(compared >= 60);
});

test("a rate for an efficiency is that of the plan's own layout", async () => {
  const { engine, controls, known } = await opened();
  const shown = { cluster: known.clusters[0], workload: "resnet50", device: "v100" };
  const rates = (plan) => state.bandwidthsFor(engine, controls, shown, plan, 4, [0.2, 0.4, 1.1]);
  // Apart the four need a network; on one node none, whatever is asked below what they reach.
  const apart = { placement: "1-1-1-1", local_batch: "32", link_gbit_per_s: "7" };
  const [little, more, none] = rates(apart);
  assert.ok(0 < little && little < more, `${little} and ${more}`);
  assert.equal(none, null);
  assert.deepEqual(rates({ placement: "4", local_batch: "32" }).map((rate) => rate === 0), [true, true, false]);
  // The rate is the least: a hundredth less is too little.
  const single = { workers: "1", local_batch: "32", strategy: "none" };
  const target = state.questionOf(controls, shown, single);
  const alone = engine.ask("/v1/predict", target).throughput_samples_per_s;
  const reached = (rate) => {
    const question = { ...state.questionOf(controls, shown, apart), link_gbit_per_s: rate };
    const answer = engine.ask("/v1/predict", question);
    return answer.throughput_samples_per_s / (4 * alone);
  };
  assert.ok(reached(little) >= 0.2 && reached(little / 1.02) < 0.2);
  assert.ok(reached(more) >= 0.4 && reached(more / 1.02) < 0.4);
});

test("a command is quoted for a shell", async () => {
  const { controls } = await opened();
  const shown = { cluster: "a b", workload: "x;y", device: "" };
  const plan = { workers: "4", link_gbit_per_s: "10", strategy: "ps-sync", multicast: "yes", hosts: "" };
  assert.equal(
    state.commandOf(controls, shown, plan, {
      clusters: { "a b": "it's.yaml" },
      workloads: { "x;y": "own.yaml" },
    }),
    "stepcast predict --cluster 'it'\\''s.yaml' --workload-file own.yaml --workload 'x;y' --workers 4 --strategy ps-sync" +
      " --bandwidth '10 Gbit/s' --multicast",
  );
});

test("a command names the network in every way that there is", async () => {
  const { controls } = await opened();
  const files = { clusters: { here: "here" }, workloads: {} };
  const plan = { local_batch: "8", precision: "bf16", recompute: "full", bucket_mib: "one-message" };
  const commandOf = (workload, parameters) =>
    state.commandOf(controls, { cluster: "here", workload, parameters, device: "" }, plan, files);
  const rest = "--local-batch 8 --precision bf16 --recompute full --bucket one-message";
  const decoder = "gpt:layers=2:hidden=64:heads=2@64";
  assert.equal(
    commandOf(decoder, ""),
    `stepcast predict --cluster here --workload ${decoder} ${rest}`,
  );
  // What every object has is no file.
  assert.equal(
    commandOf("constructor", ""),
    `stepcast predict --cluster here --workload constructor ${rest}`,
  );
  assert.equal(commandOf("net", "1.1e8"), commandOf("net", "110000000"));
  assert.equal(
    commandOf('our "net"', "110000000"),
    `printf '%s\\n' 'name: "our \\"net\\""' 'parameters: 110000000' > network.yaml &&` +
      ` stepcast predict --cluster here --workload-file network.yaml --workload 'our "net"' ${rest}`,
  );
});

test("plans are told apart by how the network is trained", async () => {
  const { controls } = await opened();
  const plans = [{}, { recompute: "full" }, { precision: "bf16", recompute: "none" }, { bucket_mib: "tensor" }];
  assert.deepEqual(state.planNames(controls, plans), [
    "plan 1",
    "full recompute",
    "bf16, none recompute",
    "tensor",
  ]);
});
