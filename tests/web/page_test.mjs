// The page in Chromium: as a file of the disk, and as the service answers it.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { difference, draws, places, requireQuick, timedInPage } from "./support.mjs";

const { STEPCAST_PROGRAM: program, STEPCAST_NPM: npm, STEPCAST_CHROMIUM: chromium } = process.env;
const { chromium: launcher } = createRequire(join(npm, "x.js"))("playwright-core");
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const calibrated = join(root, "tests/record/calibrated/ufrgs-tupi.yaml");
const LARGEST = 1.5e6;

let folder;
let file;
let browser;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepcast-page-"));
  file = join(folder, "what-if.html");
  // All that is shipped, and a calibration with its covariance.
  const evil = readFileSync(calibrated, "utf8")
    .replace(/^name: .*$/m, 'name: "<img src=x onerror=alert(1)>"')
    .replace(/^title: .*$/m, 'title: "</script><script>window.broken = 1</script>"');
  writeFileSync(join(folder, "evil.yaml"), evil);
  const shipped = ["gce-t4", "ufrgs-poti", "mxnet-cpu-vms", "networking-perspective", "ec2-g3-ps"];
  const own = join(folder, "own.yaml");
  writeFileSync(own, "name: my_net\nparameters: 43000000\n");
  execFileSync(program, [
    "page",
    "--workload-file",
    own,
    ...[calibrated, ...shipped, join(folder, "evil.yaml")].flatMap((c) => ["--cluster", c]),
    "--output",
    file,
  ]);
  browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

// The page, opened; `seen` takes what it should not do: errors, and requests but for itself.
async function open(address, seen, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => seen.push(error.message));
  page.on("console", (message) => message.type() === "error" && seen.push(message.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address.split("#")[0] && !/^(data|blob):/.test(url)) seen.push(url);
  });
  page.on("dialog", (dialog) => {
    seen.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  const begin = performance.now();
  await page.goto(address);
  await page.waitForSelector("main[aria-busy=false]");
  return { page, took: performance.now() - begin };
}
const fileAddress = (hash = "") => `file://${file}${hash}`;
const settled = (page) => page.waitForSelector("#terms tbody tr", { state: "attached" });

test("the page is small, opens from disk within a second and asks for nothing", async (t) => {
  assert.ok(statSync(file).size <= LARGEST, `${statSync(file).size} bytes`);
  const times = [];
  for (let i = 0; i < 3; ++i) {
    const seen = [];
    const { page, took } = await open(fileAddress(), seen);
    await settled(page);
    times.push(took);
    assert.deepEqual(seen, []);
    await page.context().close();
  }
  requireQuick(t, times, 1000);
});

test("its answers are the program's, to 1e-12", async () => {
  const seen = [];
  const { page } = await open(fileAddress(), seen);
  let asked = 0;
  for (const { records, questions } of places()) {
    const answers = await page.evaluate(
      async ([text, list]) => {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const engine = await window.stepcast.open(bytes);
        return list.map(([target, body]) => engine.askText(target, body));
      },
      [records.toString("base64"), questions.map((q) => [q.target, q.body])],
    );
    questions.forEach((question, i) => {
      assert.equal(answers[i].status, question.status, answers[i].text);
      const differs = difference(question.answer, JSON.parse(answers[i].text));
      assert.equal(differs, "", `${question.target} ${question.body}`);
      asked += 1;
    });
  }
  assert.ok(asked >= 10000);
  assert.deepEqual(seen, []);
  await page.context().close();
});

for (const workload of ["vgg16", "my_net"]) test(`what it shows of ${workload} is what its command line answers`, async () => {
  const seen = [];
  const hash =
    `#cluster=ufrgs-tupi&workload=${workload}&to=16&selected=2&plan=workers%3D8%26local_batch%3D32` +
    "&plan=workers%3D6%26local_batch%3D16%26strategy%3Dps-sync%26servers%3D2%26link_gbit_per_s%3D10%26multicast%3Dyes";
  const { page } = await open(fileAddress(hash), seen);
  await settled(page);
  const command = await page.textContent("#command");
  const answer = JSON.parse(
    execFileSync("bash", ["-c", `${command.replace("stepcast", program)} --json`], { encoding: "utf8" }),
  );
  const shown = await page.evaluate(() => {
    const { engine, controls, state } = window.stepcast;
    return engine.ask("/v1/predict", window.stepcast.questionOf(state().plans[1]));
  });
  assert.equal(difference(answer, shown), "");
  assert.match(await page.textContent("#headline"), /a step/);
  assert.equal(await page.locator("#compare tbody tr").count(), 2);
  assert.deepEqual(seen, []);
  await page.context().close();
});

// The hash of an address that shows the second of two equal plans.
function hashOf(target, plan) {
  const one = encodeURIComponent(new URLSearchParams(plan).toString());
  return `#${new URLSearchParams(target)}&selected=2&plan=${one}&plan=${one}`;
}
async function go(page, hash) {
  await page.evaluate((link) => {
    history.replaceState(null, "", link);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }, hash);
}
const linkOf = async (page) => new URLSearchParams((await hashIn(page)).slice(1));
const hashIn = (page) => page.evaluate(() => location.hash);
// The second plan's text of a column, as the address tells it.
async function toldBy(page, column) {
  return new URLSearchParams((await linkOf(page)).getAll("plan")[1]).get(column);
}
// What the command line that is shown answers, and what the page does.
async function answers(page) {
  const command = await page.textContent("#command");
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["-c", `${command.replace("stepcast", program)} --json`],
    { encoding: "utf8", cwd: folder },
  );
  const shown = await page.evaluate(() => {
    const { engine, questionOf, state } = window.stepcast;
    const { status: code, text } = engine.askText(
      "/v1/predict",
      JSON.stringify(questionOf(state().plans[1])),
    );
    return { status: code, answer: JSON.parse(text) };
  });
  return { command, status, stdout, stderr, shown };
}
async function requireSameAnswer(page, what) {
  const { command, status, stdout, stderr, shown } = await answers(page);
  assert.equal(shown.status, 200, `${what}: ${shown.answer.detail}`);
  assert.ok(status < 2, `${what}: ${command}: ${stderr}`); // 1: does not fit in memory
  assert.equal(difference(JSON.parse(stdout), shown.answer), "", `${what}: ${command}`);
}

// What each control is moved to: by its column, or else by its unit.
const MOVED = { placement: "4-4", hosts: "one+two", compress: "int8", "Gbit/s": "10", ms: "2", MiB: "8", "samples/s": "1000" };
function movedTo(control) {
  if (control.kind === "yes or no") return "yes";
  if (control.choices) return control.choices.findLast((choice) => choice !== control.default);
  const plain = control.kind === "count" || control.least >= 1 ? "2" : "0.3";
  return MOVED[control.column] ?? MOVED[control.unit] ?? plain;
}
// What a field says nothing without.
const BESIDE = {
  loss_rate: { rtt_ms: "2" },
  congestion_control: { rtt_ms: "2", loss_rate: "0.01" },
  loss_burst_ms: { rtt_ms: "2", loss_rate: "0.01" },
  oversubscription: { nodes_per_switch: "2" },
  nodes_per_switch: { oversubscription: "4" },
  slow_nodes: { slow_speed: "0.6" },
  slow_speed: { slow_nodes: "1" },
  slow_local_batch: { slow_nodes: "1", slow_speed: "0.6" },
  compress_gbit_per_s: { compress: "fp16" },
};

test("each field of a plan has a control, and a link and a command line that tell it", async () => {
  const seen = [];
  const { page } = await open(fileAddress(), seen);
  const { controls, listed } = await page.evaluate(() => {
    const { controls: all, engine } = window.stepcast;
    const columns = ["fields", "training"].flatMap((list) => engine.ask(list).map((f) => f.column));
    return { controls: all, listed: columns };
  });
  assert.deepEqual(controls.map((c) => c.column).sort(), ["workers", ...listed].sort());
  const target = { cluster: "gce-t4", workload: "gpt:layers=2:hidden=64:heads=2@64", device: "h100" };
  for (const control of controls) {
    const { column, flag, strategies } = control;
    const plan = { workers: "8", local_batch: "32", ...BESIDE[column] };
    if (!(strategies ?? ["allreduce"]).includes("allreduce")) {
      Object.assign(plan, { strategy: strategies[0], servers: "1" });
    }
    delete plan[column === "hosts" ? "workers" : ""];
    await go(page, hashOf(target, plan));
    const box = page.locator(`#field-${column}`);
    assert.equal(await box.count(), 1, `${column} has no control`);
    assert.ok(await page.locator(`label[for="field-${column}"], label:has(#field-${column})`).count(), `${column} has no label`);
    const text = movedTo(control);
    assert.notEqual(plan[column] ?? control.default, text, `${column} is not moved`);
    if (control.kind === "yes or no") await box.check();
    else if (control.choices) await box.selectOption(text);
    else await box.fill(text);
    assert.equal(await toldBy(page, column), text, `the link tells ${column}`);
    assert.ok(`${await page.textContent("#command")} `.includes(` --${flag} `), `the command has --${flag}`);
    const [first, second] = await page.locator("#plans button").allTextContents();
    assert.ok(first !== second || column === "workers", `plans differ in ${column}: ${second}`);
    await requireSameAnswer(page, column);
    // What the link opens is what was shown.
    await go(page, await hashIn(page));
    const shown = control.kind === "yes or no" ? (await box.isChecked()) && "yes" : await box.inputValue();
    assert.equal(shown, text, `${column} is opened`);
    if (control.unit === undefined) continue;
    // The slider beside a number moves its box.
    await page.locator(".field", { has: box }).locator('input[type="range"]').press("End");
    assert.notEqual(await box.inputValue(), text, `the slider moves ${column}`);
    assert.equal(await toldBy(page, column), await box.inputValue());
  }
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("the box of the bucket takes its words", async () => {
  const seen = [];
  const { page } = await open(fileAddress(hashOf({ cluster: "gce-t4" }, { workers: "8", local_batch: "32" })), seen);
  for (const [word, meaning] of [["tensor", "each tensor by itself"], ["one-message", "all gradients together"]]) {
    await page.fill("#field-bucket_mib", word);
    const box = page.locator("#field-bucket_mib");
    const offered = page.locator(`#${await box.getAttribute("list")} option[value="${word}"]`);
    assert.equal(await offered.textContent(), meaning);
    assert.match(await page.textContent("#command"), new RegExp(` --bucket ${word}$`));
    assert.ok((await page.locator("#plans button").nth(1).textContent()).endsWith(word));
    await requireSameAnswer(page, word);
  }
  await page.fill("#field-bucket_mib", "tensors");
  assert.match(await page.textContent("#headline"), /^bucket_mib: 'tensors'/);
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("what holds of training where the plan says nothing is told, and what is refused is said", async () => {
  const seen = [];
  const hash = hashOf({ cluster: "ufrgs-tupi", workload: "gpt2" }, { workers: "2", local_batch: "2" });
  const { page } = await open(fileAddress(hash), seen);
  const unstated = () => page.locator("#field-precision option").first().textContent();
  assert.equal(await unstated(), "not stated (fp32)");
  await page.selectOption("#field-precision", "bf16");
  assert.equal(await unstated(), "not stated");
  const [before, after] = await page.evaluate(() =>
    [0, 1].map((i) => document.querySelectorAll("#compare tbody tr")[i].children[2].textContent),
  );
  assert.notEqual(before, after);
  await settled(page);
  // The sentence is the program's, but for what it calls the key.
  await page.selectOption("#field-precision", "fp8");
  const { status, stderr } = await answers(page);
  assert.equal(status, 2);
  assert.equal(stderr.trim().replace("stepcast: --", ""), await page.textContent("#headline"));
  assert.equal(await page.textContent("#binding"), "");
  await page.selectOption("#field-precision", "");
  assert.equal(await toldBy(page, "precision"), null);
  assert.match(await page.textContent("#headline"), /a step/);
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("a network that no list has is known by its name and numbers", async () => {
  const seen = [];
  const hash = hashOf({ cluster: "gce-t4", device: "h100" }, { workers: "4", local_batch: "4" });
  const { page } = await open(fileAddress(hash), seen);
  const told = async (key) => (await linkOf(page)).get(key);
  assert.ok(await page.isHidden("#network"));
  await page.selectOption("#workload", { label: "another, by name and numbers" });
  assert.equal(await page.inputValue("#network"), "resnet50");
  const note = await page.textContent("#network-note");
  const examples = note.match(/[\w:=]+@\d+|message_\d+/g);
  assert.equal(examples.length, 3, note);
  for (const [name, parameters] of [...examples.map((e) => [e, ""]), ["ours", "110000000"]]) {
    await page.fill("#network", name);
    await page.fill("#parameters", parameters);
    assert.equal(await told("workload"), name);
    assert.equal(await told("parameters"), parameters || null);
    await requireSameAnswer(page, name);
    const link = await hashIn(page);
    await go(page, "#");
    assert.ok(await page.isHidden("#network"));
    await go(page, link);
    assert.equal(await page.inputValue("#workload"), "");
    assert.equal(await page.inputValue("#network"), name);
    assert.equal(await page.inputValue("#parameters"), parameters);
    const noBatch = page.locator("#batch-note", { hasText: `'${name}' is a bare message` });
    if (name.startsWith("message")) await noBatch.waitFor();
    // Also what has no batch to recommend has all that is shown below it.
    else await page.locator("#batches tbody tr").first().waitFor();
    assert.equal(await page.locator("#rates tbody tr").count(), 7);
  }
  await page.fill("#parameters", "");
  for (const wrong of ["gpt:layers=2", "gpt:layers=2:hidden=64:heads=3", "vgg16@10"]) {
    await page.fill("#network", wrong);
    const { status, stderr } = await answers(page);
    assert.equal(status, 2);
    assert.equal(stderr.trim().replace("stepcast: --", ""), await page.textContent("#headline"));
  }
  await page.selectOption("#workload", "resnet18");
  assert.ok(await page.isHidden("#network"));
  assert.equal(await told("workload"), "resnet18");
  await requireSameAnswer(page, "resnet18");
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("a thousand plans and their bands are drawn anew within a frame", async (t) => {
  const plans = Array.from(
    { length: 8 },
    (_, i) => `&plan=${encodeURIComponent(`workers=4&local_batch=${32 + i}&link_gbit_per_s=${1 + i}`)}`,
  );
  // Eight plans over 128 numbers of workers each, and more.
  const seen = [];
  const { page } = await open(fileAddress(`#to=512${plans.join("")}`), seen);
  await settled(page);
  const { times, slow, last: points } = await page.evaluate(
    timedInPage("window.stepcast.redraw()", 40));
  assert.ok(points >= 800, `${points} points`);
  requireQuick(t, times, 16, slow);
  await page.context().close();
});

test("any link opens or is refused with a sentence", async () => {
  const seen = [];
  const { page } = await open(fileAddress(), seen);
  const draw = draws(7);
  const parts = ["cluster=", "ufrgs-tupi", "workload=", "gpt:layers=2:hidden=64:heads=2@64", "parameters=", "precision%3D", "&", "plan=", "workers%3D", "local_batch%3D", "9", "0", "-1", "%26",
    "strategy%3Dps-sync", "servers%3D3", "to=", "view=", "efficiency", "<b>", "%00", "1e999", "placement%3D4-4",
    "hosts%3Dtupi1", "selected=", "\u{1f600}"];
  for (let i = 0; i < 150; ++i) {
    const hash = `#${Array.from({ length: 1 + draw.whole(14) }, () => draw.from(parts)).join("")}`;
    const outcome = await page.evaluate((link) => {
      history.replaceState(null, "", link);
      dispatchEvent(new HashChangeEvent("hashchange"));
      return {
        alert: document.querySelector("#alert").hidden ? "" : document.querySelector("#alert").textContent,
        headline: document.querySelector("#headline").textContent,
      };
    }, hash);
    assert.ok(outcome.alert === "" || /^The link.*\.$/s.test(outcome.alert), outcome.alert);
    assert.ok(outcome.headline.length > 10, hash);
  }
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("texts of files never become markup", async () => {
  const seen = [];
  const name = encodeURIComponent("<img src=x onerror=alert(1)>");
  const { page } = await open(
    fileAddress(`#cluster=${name}&plan=${encodeURIComponent("workers=2&local_batch=9&hosts=<b>x</b>+<i>y</i>")}`),
    seen,
  );
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator("main img, main b, main i:not(.bar > i)").count(), 0);
  assert.match(await page.textContent("#command"), /evil\.yaml/);
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("all of it works by keyboard", async () => {
  const seen = [];
  const { page } = await open(fileAddress(), seen);
  await settled(page);
  const reached = new Set();
  for (let i = 0; i < 120; ++i) {
    await page.keyboard.press("Tab");
    const id = await page.evaluate(() => {
      const at = document.activeElement;
      return at.id || at.closest("details")?.id || at.textContent.slice(0, 20);
    });
    reached.add(id);
  }
  for (const id of ["cluster", "workload", "device", "add", "field-workers", "field-strategy",
    "field-precision", "field-recompute", "field-link_gbit_per_s", "view", "to", "csv", "svg", "png", "link", "copy"]) {
    assert.ok(reached.has(id), `${id} is not reached: ${[...reached].join(", ")}`);
  }
  await page.focus("#field-workers");
  const before = await page.textContent("#headline");
  await page.keyboard.press("ArrowUp");
  assert.notEqual(await page.textContent("#headline"), before);
  await page.focus("#add");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#plans button").count(), 2);
  assert.deepEqual(seen, []);
  await page.context().close();
});

test("a checker of accessibility finds nothing serious, light and dark, wide and narrow", async () => {
  const checker = readFileSync(join(npm, "axe-core", "axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1440, 390]) {
      const seen = [];
      const hash = "#workload=gpt:layers=2:hidden=64:heads=2@64";
      const { page } = await open(fileAddress(hash), seen, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
      await settled(page);
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
      await page.evaluate(checker);
      const found = await page.evaluate(async () => (await window.axe.run()).violations);
      const serious = found
        .filter((v) => ["serious", "critical"].includes(v.impact))
        .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
      assert.deepEqual(serious, [], `${colorScheme} ${width}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} pixels on ${width}`);
      await page.context().close();
    }
  }
});

test("what is saved is CSV, SVG and PNG", async () => {
  const seen = [];
  const { page } = await open(fileAddress(), seen);
  await settled(page);
  const saved = async (id) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#${id}`)]);
    return readFileSync(await download.path());
  };
  const csv = (await saved("csv")).toString().trimEnd().split("\n");
  assert.equal(csv[0], "plan,workers,step_time_s,low_s,high_s,throughput_samples_per_s,efficiency");
  assert.equal(csv.length, 65);
  assert.match((await saved("svg")).toString(), /^<\?xml|^<svg/);
  assert.equal((await saved("png")).subarray(1, 4).toString(), "PNG");
  await page.context().close();
});

test("the service answers the same page at /", async () => {
  const service = spawn(program, ["serve", "--cluster", calibrated, "--listen", "127.0.0.1:0", "--json"]);
  try {
    const line = await new Promise((resolve) => service.stdout.once("data", resolve));
    const address = `http://${JSON.parse(line).listen}/`;
    const seen = [];
    const { page } = await open(address, seen);
    await settled(page);
    assert.match(await page.textContent("#headline"), /a step/);
    assert.match(await page.textContent("#command"), /calibrated\/ufrgs-tupi\.yaml/);
    assert.deepEqual(seen, []);
    await page.context().close();
  } finally {
    service.kill();
  }
});
