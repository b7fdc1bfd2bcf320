// Spectral and Redocly against /openapi.json: they may report nothing, not even hints.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const response = await fetch(`${process.env.ADJUTANT_URL}/openapi.json`);
const folder = mkdtempSync(join(tmpdir(), "adjutant-openapi-"));
const file = join(folder, "openapi.json");
writeFileSync(file, await response.text());

const bin = (name) => join("node_modules", ".bin", name);
const checks = {
  spectral: [bin("spectral"), "lint", file, "--ruleset", ".spectral.yaml", "--fail-severity", "hint"],
  redocly: [bin("redocly"), "lint", file, "--config", "redocly.yaml", "--format", "stylish"],
};
const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
let failed = 0;
try {
  for (const [name, [command, ...args]] of Object.entries(checks)) {
    const { status, error, stdout, stderr } = spawnSync(command, args, { env, encoding: "utf8" });
    if (error) throw error;
    const isWell = status === 0;
    console.log(`${isWell ? "ok   " : "FAIL "} ${name}${isWell ? "" : `\n${stdout}${stderr}`}`);
    failed += isWell ? 0 : 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
process.exit(failed === 0 ? 0 : 1);
