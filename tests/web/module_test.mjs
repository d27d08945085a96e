// The module as node runs it, and what of the page needs no document.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
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

// ---- Links.

async function opened() {
  const engine = await openEngine(factory, binary, places()[0].records);
  const names = (list) => list.map((one) => one.name);
  return {
    engine,
    controls: state.controlsOf(engine.ask("fields")),
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
    workload: draw.from(known.workloads),
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
        const reply = page.engine.askText(
          "/v1/predict",
          JSON.stringify({ ...state.targetRequest(read), ...state.planRequest(page.controls, plan) }),
        );
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
      };
      const question = { ...state.targetRequest(shown), ...state.planRequest(controls, plan) };
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
  const target = { ...state.targetRequest(shown), workers: 1, local_batch: 32, strategy: "none" };
  const alone = engine.ask("/v1/predict", target).throughput_samples_per_s;
  const reached = (rate) => {
    const question = { ...state.planRequest(controls, apart), link_gbit_per_s: rate };
    const answer = engine.ask("/v1/predict", { ...state.targetRequest(shown), ...question });
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
