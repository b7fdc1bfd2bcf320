// The command line of the MCP Inspector.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { BIN, check, home, serve } from './harness.mjs';

const exec = promisify(execFile);

/** Runs it against a server, and returns the JSON that it prints. */
async function inspect(server, env, ...args) {
  const program = 'node_modules/@modelcontextprotocol/inspector/cli/build/cli.js';
  const { stdout } = await exec('node', [program, '--cli', ...server, ...args], { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

export async function inspector() {
  const env = home();
  // This version cannot send a token from the command line.
  const { url } = await serve([]);
  const over = {
    stdio: [[BIN, 'mcp'], 5],
    // Includes the three memory tools.
    http: [[url.href, '--transport', 'http'], 8],
  };
  // Most of the time is that of starting the inspector.
  const all = Object.entries(over).map(([name, [server, count]]) =>
    check(`inspector over ${name}: lists and calls tools`, async () => {
      const { tools } = await inspect(server, env, '--method', 'tools/list');
      assert.equal(tools.filter(({ name }) => name !== 'ask').length, count);
      const add = ['--method', 'tools/call', '--tool-name', 'add_task', '--tool-arg', 'description=Buy milk'];
      const added = await inspect(server, env, ...add);
      assert.equal(added.structuredContent.data.description, 'Buy milk');
      const remove = ['--method', 'tools/call', '--tool-name', 'delete_task', '--tool-arg', 'task_id=milk'];
      const asked = await inspect(server, env, ...remove);
      assert.equal(asked.structuredContent.status, 'confirmation_required');
      const list = await inspect(server, env, '--method', 'tools/call', '--tool-name', 'list_tasks');
      assert.equal(list.structuredContent.data.count, 1);
    }),
  );
  await Promise.all(all);
}
