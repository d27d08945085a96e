// Takes the pictures of the page that docs/howto/what-if-in-a-browser.md shows:
//
//   STEPCAST_PROGRAM=... STEPCAST_NPM=... STEPCAST_CHROMIUM=... node tests/web/pictures.mjs
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { STEPCAST_PROGRAM: program, STEPCAST_NPM: npm, STEPCAST_CHROMIUM: chromium } = process.env;
const { chromium: launcher } = createRequire(join(npm, "x.js"))("playwright-core");
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const plans = ["", "&link_gbit_per_s=10", "&link_gbit_per_s=10&strategy=ps-sync&servers=4"];
const hash =
  "#cluster=ufrgs-tupi&workload=resnet50&to=64&selected=2" +
  plans.map((more) => `&plan=${encodeURIComponent(`workers=8&local_batch=128${more}`)}`).join("");

const folder = mkdtempSync(join(tmpdir(), "stepcast-pictures-"));
const file = join(folder, "what-if.html");
copyFileSync(join(root, "tests/record/calibrated/ufrgs-tupi.yaml"), join(folder, "fitted.yaml"));
execFileSync(program, ["page", "--cluster", "fitted.yaml", "--output", file], { cwd: folder });
const browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of [
    [1440, 1500],
    [390, 1500],
  ]) {
    const page = await browser.newPage({ colorScheme, viewport: { width, height } });
    await page.goto(`file://${file}${hash}`);
    await page.waitForSelector("#terms tbody tr", { state: "attached" });
    if (width < 900) await page.evaluate(() => document.querySelector(".answer").scrollIntoView());
    const path = join(root, "docs/images", `what-if-${colorScheme}-${width}.png`);
    await page.screenshot({ path });
    await page.close();
  }
}
await browser.close();
rmSync(folder, { recursive: true });
