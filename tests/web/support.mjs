// What the tests of the module and of the page share.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export const folder = process.env.STEPCAST_WEB_QUESTIONS;

// Places with their records, and for each the questions with the program's answers.
export function places() {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".records"))
    .map((name) => ({
      records: readFileSync(join(folder, name)),
      questions: readFileSync(join(folder, name.replace(".records", ".jsonl")), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    }));
}

// Digits within a text, as of flags, are rounded there: two roundings apart they may differ in the
// last one.
const NUMBER = /-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?/g;

// Where two answers differ; empty where they are the same to 1e-12, which rounding of two
// mathematical libraries may leave. Bars of a time line begin and end at sums and differences of
// times, whose rounding is that of the whole step.
export function difference(a, b, path = "", whole = a?.step_time_s) {
  if (typeof a === "number" && typeof b === "number") {
    // A derivative has the rounding of its terms, which may cancel.
    const derivative = path.endsWith("/elasticity");
    const least = path.startsWith("/timeline") ? whole : derivative ? 10 : 1e-12;
    const scale = Math.max(Math.abs(a), Math.abs(b), least);
    return Math.abs(a - b) <= 1e-12 * scale ? "" : `${path}: ${a} and ${b}`;
  }
  if (typeof a === "string" && typeof b === "string") {
    return a.replace(NUMBER, "#") === b.replace(NUMBER, "#") ? "" : `${path}: ${a} and ${b}`;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    return a === b ? "" : `${path}: ${a} and ${b}`;
  }
  const keys = Object.keys(a);
  if (keys.join() !== Object.keys(b).join()) return `${path}: keys ${keys} and ${Object.keys(b)}`;
  for (const key of keys) {
    const found = difference(a[key], b[key], `${path}/${key}`, whole);
    if (found) return found;
  }
  return "";
}

// Numbers that are random and the same in each run.
export function draws(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    whole: (below) => Math.floor(next() * below),
    from(list) {
      return list[Math.floor(next() * list.length)];
    },
  };
}

// Work that takes as long as the machine lets it: promised times were measured where it took
// REFERENCE_MS (tests/bench/reference.h).
const REFERENCE_MS = 0.9;
function reference() {
  const numbers = new Map();
  for (let i = 0; i < 4000; ++i) numbers.set(`parameter_${(i * 7919) % 1024}`, Math.log(1 + i));
  const read = JSON.parse(JSON.stringify([...numbers]));
  return read.reduce((sum, [name, n]) => sum + Math.exp(-n) * name.length, 0);
}
// The same for memory that is touched for the first time, of which a browser takes much as it
// starts.
const MEMORY = 64 << 20;
const MEMORY_MS = 40;
function memorySlowness() {
  const begin = performance.now();
  assert.equal(Buffer.alloc(MEMORY).fill(1)[MEMORY - 1], 1);
  return (performance.now() - begin) / MEMORY_MS;
}
function slowness() {
  let least = Infinity;
  for (let i = 0; i < 100; ++i) {
    const begin = performance.now();
    assert.ok(reference() > 0);
    least = Math.min(least, performance.now() - begin);
  }
  return Math.max(1, least / REFERENCE_MS);
}
// The script of a page that does `work` so many times, and between them what a browser's own
// slowness is told by: {times, slow, last}, of which `last` is what the work told at last.
export function timedInPage(work, count) {
  const references = 5;  // at a time, as a page's clock is coarse
  return `(() => {
    ${reference}
    const times = [];
    let last;
    let least = Infinity;
    const took = (act) => {
      const begin = performance.now();
      act();
      return performance.now() - begin;
    };
    for (let i = 0; i < ${count}; ++i) {
      times.push(took(() => (last = ${work})));
      least = Math.min(least, took(() => { for (let j = 0; j < ${references}; ++j) reference(); }));
    }
    return { times, slow: Math.max(1, least / ${references * REFERENCE_MS}), last };
  })()`;
}

// Demands of test `t` that the quickest of several times is at most `most`, and as many times more
// as the machine takes longer. Where that is more than twice as long, others slow some work more
// than other work, and what is too slow tells nothing.
export function requireQuick(t, times, most, slow = slowness()) {
  const quickest = Math.min(...times);
  const told =
    `${quickest.toFixed(1)} ms of ${most}; the machine takes ${slow.toFixed(2)} times as long`;
  t.diagnostic(told);
  const memory = memorySlowness();
  if (quickest > most * slow && Math.max(slow, memory) > 2) {
    return t.skip(`${told}, and to map memory ${memory.toFixed(1)} times`);
  }
  assert.ok(quickest <= most * slow, told);
}
