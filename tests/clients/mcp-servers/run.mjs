// The reference servers of the Model Context Protocol, started and called by adjutant. Prints one line per check.
//
// It runs ADJUTANT_BIN with its own configuration in a temporary folder. The service that `cargo xtask clients` has
// started is not used.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const adjutant = process.env.ADJUTANT_BIN;
assert.ok(adjutant, "ADJUTANT_BIN names the program");
const home = realpathSync(mkdtempSync(join(tmpdir(), "adjutant-mcp-servers-")));
const shared = join(home, "shared");
mkdirSync(shared);

const program = (name) => join(here, "node_modules", "@modelcontextprotocol", `server-${name}`, "dist", "index.js");
const text = JSON.stringify; // JSON strings are valid TOML strings.

const servers = {
  everything: { command: [process.execPath, program("everything"), "stdio"] },
  files: { command: [process.execPath, program("filesystem"), shared], deny: ["read_file"] },
  memory: {
    command: [process.execPath, program("memory")],
    env: { MEMORY_FILE_PATH: join(home, "memory.jsonl") },
  },
};

const toml = (value) => {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value === "object") {
    return `{ ${Object.entries(value).map(([key, inner]) => `${key} = ${toml(inner)}`).join(", ")} }`;
  }
  return text(value);
};
const configure = (tables) => {
  const lines = Object.entries(tables).map(([name, table]) =>
    [`[mcp.servers.${name}]`, ...Object.entries(table).map(([key, value]) => `${key} = ${toml(value)}`)].join("\n"),
  );
  writeFileSync(join(home, "config.toml"), lines.join("\n\n") + "\n");
};

const run = (args) =>
  new Promise((resolve, reject) => {
    const child = spawn(adjutant, ["-C", join(home, "config.toml"), "--json", ...args], {
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        HOME: home,
        XDG_CONFIG_HOME: join(home, "config"),
        XDG_DATA_HOME: join(home, "data"),
        GEMINI_API_KEY: "a-key-that-no-server-may-see",
      },
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data) => (stdout += data));
    child.stderr.on("data", (data) => (stderr += data));
    child.on("error", reject);
    child.on("close", (code) => {
      try {
        resolve({ code, json: JSON.parse(stdout), stderr });
      } catch (error) {
        reject(new Error(`${error}: ${stdout}${stderr}`));
      }
    });
  });

let scripts = 0;
const script = (...lines) => {
  const file = join(home, `script-${scripts++}.jsonl`);
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join("\n") + "\n");
  return `scripted:${file}`;
};
const ask = (name, args) =>
  // Arguments that the person did not write would be asked about first.
  run(["ask", "-m", script({ calls: [{ name, args }] }, { text: "Done." }), `call ${name} with ${text(args)}`]);
const data = async (name, args) => {
  const { code, json, stderr } = await ask(name, args);
  assert.equal(code, 0, stderr);
  const [used] = json.tools_used;
  assert.equal(used.result.success, true, JSON.stringify(used));
  return used.result.data;
};

const check = async (words, test) => {
  await test();
  console.log(`ok  ${words}`);
};

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

let remote;
try {
  configure(servers);

  await check("all three start, and all of their tools can be used but one that runs only as a task", async () => {
    const { json } = await run(["tools"]);
    for (const server of json.servers) {
      assert.equal(server.health, "connected", JSON.stringify(server));
      const leftOut = server.left_out.filter((tool) => !tool.by_configuration).map((tool) => tool.original_name);
      assert.deepEqual(leftOut, server.name === "everything" ? ["simulate-research-query"] : []);
    }
    const names = json.tools.map((tool) => tool.name);
    assert.ok(names.includes("everything__get_sum") && names.includes("memory__read_graph"));
    assert.ok(names.includes("files__read_text_file") && !names.includes("files__read_file"));
  });

  await check("structured content is the result", async () => {
    const weather = await data("everything__get_structured_content", { location: "New York" });
    assert.equal(typeof weather.temperature, "number");
  });

  await check("text is text, and a picture is named and not passed on", async () => {
    assert.equal(await data("everything__echo", { message: "hi" }), "Echo: hi");
    const blocks = await data("everything__get_tiny_image", {});
    const image = blocks.find((block) => block.type === "image");
    assert.equal(image.mime_type, "image/png");
    assert.ok(image.bytes > 0 && !("data" in image));
  });

  await check("arguments that do not fit never reach the server", async () => {
    const { json } = await ask("everything__get_sum", { a: "one", b: 2 });
    assert.deepEqual(json.tools_used, []);
    assert.equal(await data("everything__get_sum", { a: 1, b: 2 }), "The sum of 1 and 2 is 3.");
  });

  await check("a server sees no key of ours", async () => {
    const seen = await data("everything__get_env", {});
    assert.ok(!seen.includes("a-key-that-no-server-may-see"));
    assert.ok(JSON.parse(seen).PATH);
  });

  await check("writing a file waits for a yes, in another process too", async () => {
    const path = join(shared, "note.txt");
    const model = script({ calls: [{ name: "files__write_file", args: { path, content: "hello" } }] }, { text: "Written." });
    const asked = await run(["ask", "-m", model, "write it"]);
    assert.equal(asked.code, 4);
    assert.equal(asked.json.outcome, "PENDING:CONFIRMATION");
    assert.ok(asked.json.pending[0].preview.startsWith("Write File (files) with path “"));
    assert.ok(!existsSync(path));
    const done = await run(["pending", "approve", asked.json.pending[0].id, "-m", model]);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(readFileSync(path, "utf8"), "hello");
  });

  await check("what a tool refuses is told in its own words", async () => {
    const { json } = await ask("files__read_text_file", { path: "/etc/hostname" });
    assert.equal(json.tools_used[0].result.success, false);
    assert.match(json.tools_used[0].result.error, /outside allowed directories/);
  });

  await check("a memory outlives the process that wrote it", async () => {
    const entities = [{ name: "Ana", entityType: "person", observations: ["likes tea"] }];
    await data("memory__create_entities", { entities });
    const graph = await data("memory__read_graph", {});
    assert.equal(graph.entities[0].observations[0], "likes tea");
  });

  await check("a call that takes too long ends in time, and says so", async () => {
    // The server may take half of this time to start, even on a busy machine.
    configure({ everything: { ...servers.everything, timeout: "10s" } });
    const { json } = await ask("everything__trigger_long_running_operation", { duration: 600, steps: 2 });
    assert.match(json.tools_used[0].result.error, /did not finish within 10 s/);
  });

  await check("the same over streamable HTTP", async () => {
    const port = await freePort();
    remote = spawn(process.execPath, [program("everything"), "streamableHttp"], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env.PATH, PORT: String(port) },
    });
    await new Promise((resolve, reject) => {
      let output = "";
      remote.stderr.on("data", (words) => {
        output += words;
        if (output.includes("listening on port")) resolve();
      });
      remote.on("close", () => reject(new Error(`it does not listen: ${output}`)));
    });
    configure({ remote: { url: `http://127.0.0.1:${port}/mcp` } });
    assert.equal(await data("remote__echo", { message: "over HTTP" }), "Echo: over HTTP");
    const weather = await data("remote__get_structured_content", { location: "Chicago" });
    assert.equal(typeof weather.humidity, "number");
  });
} finally {
  remote?.removeAllListeners("close");
  remote?.kill();
  rmSync(home, { recursive: true, force: true });
}
