// A TypeScript client for /openapi.json: generated, compiled in strict mode, and run.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

// Inside the folder of the packages, so that the compiler finds them.
const generated = join("node_modules", ".generated");
rmSync(generated, { recursive: true, force: true });
mkdirSync(generated);

const bin = (name) => join("node_modules", ".bin", name);
const steps = {
  "the types are generated": [bin("openapi-typescript"), `${process.env.ADJUTANT_URL}/openapi.json`, "--output", join(generated, "api.d.ts")],
  "the client fits them": [bin("tsc"), "--project", "tsconfig.json"],
  "the client runs": [process.execPath, join(generated, "client.mjs")],
};
for (const [name, [command, ...args]] of Object.entries(steps)) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (error) throw error;
  console.log(`${status === 0 ? "ok   " : "FAIL "} ${name}`);
  if (status !== 0) {
    console.log(stdout + stderr);
    process.exit(1);
  }
}
