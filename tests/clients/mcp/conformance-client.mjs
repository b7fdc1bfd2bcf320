// The client of one scenario of the conformance suite: the binary with the suite's server among its MCP servers, and a
// model that follows a script. The suite appends the server's address, and names the scenario in a variable.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}');

/** Calls of a scenario that does not list them itself. */
const CALLS = {
  tools_call: [['add_numbers', { a: 5, b: 3 }]],
  'sse-retry': [['test_reconnection', {}]],
  'elicitation-sep1034-client-defaults': [['test_client_elicitation_defaults', {}]],
  'http-standard-headers': [['test_headers', {}], ['my-hyphenated-tool', {}]],
  'http-invalid-tool-headers': [['valid_tool', { region: 'eu' }]],
  'sep-2322-client-request-state': [
    ['test_mrtr_unrelated', {}],
    ['test_mrtr_echo_state', {}],
    ['test_mrtr_no_state', {}],
    ['test_mrtr_no_result_type', {}],
  ],
};
const listed = (context.toolCalls ?? []).map((call) => [call.name, call.arguments ?? {}]);
const calls = listed.length > 0 ? listed : (CALLS[scenario] ?? [['test-tool', {}]]);

// The connection ends with this process, and with it the turn.
const turn = connect(Number(process.env.ADJUTANT_TURNS), '127.0.0.1');
await once(turn, 'data');

const home = mkdtempSync(join(tmpdir(), 'adjutant-conformance-'));
try {
  const script = join(home, 'script.jsonl');
  const name = (tool) => `s__${tool.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}`;
  // A model leaves out what it has no value for.
  const given = (args) => Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
  const lines = calls.map(([tool, args]) => ({ calls: [{ name: name(tool), args: given(args) }] }));
  lines.push({ text: 'done', repeat: true });
  writeFileSync(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const config = join(home, 'config.toml');
  const table = `[agent]\nmax_tool_iterations = 12\n[mcp.servers.s]\nurl = "${url}"\nread_only = ["*"]\n`;
  writeFileSync(config, table);
  const folders = ['CONFIG', 'DATA', 'STATE', 'CACHE'].map((kind) => [`XDG_${kind}_HOME`, join(home, kind)]);
  folders.forEach(([, folder]) => mkdirSync(folder));
  const env = { PATH: process.env.PATH, HOME: home, ...Object.fromEntries(folders) };
  const args = ['--config', config, '-m', `scripted:${script}`, 'ask', '--json', 'go'];
  const ended = spawnSync(process.env.ADJUTANT_BIN, args, { env, encoding: 'utf8', timeout: 60_000 });
  process.stderr.write(`${ended.stdout}${ended.stderr}`);
} finally {
  rmSync(home, { recursive: true, force: true });
  turn.destroy();
}
