// Makes one HTML file of the page's parts:
//
//   node build.mjs FOLDER_OF_THE_PAGE FOLDER_OF_THE_MODULE FOLDER_OF_NODE_MODULES OUTPUT
//
// The module lies in it compressed, as text.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [page, wasm, modules, output] = process.argv.slice(2);
const read = (...path) => readFileSync(join(...path), "utf8");

// The modules of the page in one script: each declares its names once for all.
const script = ["engine.mjs", "state.mjs", "plot.mjs", "app.mjs"]
  .map((file) => read(page, file))
  .join("\n")
  .replace(/^import [^;]*;$/gm, "")
  .replace(/^export /gm, "");
const parts = {
  STYLE: read(modules, "uplot", "dist", "uPlot.min.css") + read(page, "style.css"),
  // With its licence, as that asks for.
  LIBRARY: `/*\n${read(modules, "uplot", "LICENSE")}*/\n${read(modules, "uplot", "dist", "uPlot.iife.min.js")}`,
  LOADER: read(wasm, "stepcast_web.js"),
  SCRIPT: script,
  MODULE: gzipSync(readFileSync(join(wasm, "stepcast_web.wasm")), { level: 9 }).toString("base64"),
};
for (const [name, text] of Object.entries(parts)) {
  if (/<\/(script|style)/i.test(text)) throw new Error(`${name} would end its own element`);
}
const html = read(page, "index.html").replace(/@([A-Z]+)@/g, (mark, name) => parts[name] ?? mark);
writeFileSync(output, html);
