// Starts processes of the binary in empty homes and clients for them, and prints one line per check.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export const BIN = process.env.ADJUTANT_BIN;

const cleanups = [];
let failed = 0;

/** Runs a check and prints the result. A failure does not stop the following checks. */
export async function check(name, body) {
  try {
    await body();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n      ${String(error?.stack ?? error).replaceAll('\n', '\n      ')}`);
  }
}

/** Ends all processes, and returns the exit code. */
export async function end() {
  for (const cleanup of cleanups.reverse()) await cleanup();
  console.log(failed ? `${failed} failed` : 'all passed');
  return failed ? 1 : 0;
}

/** Creates an empty home, and returns the environment of a process in it. */
export function home() {
  const folder = mkdtempSync(join(tmpdir(), 'adjutant-mcp-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return { HOME: folder, PATH: process.env.PATH };
}

/** Runs the binary until it ends. */
export function run(args, env, input = '') {
  return spawnSync(BIN, args, { env, input, encoding: 'utf8', timeout: 300_000 });
}

/** Starts a service, with a token for each user. Without users, it serves everyone on this machine. */
export async function serve(users) {
  const env = home();
  const tokens = {};
  for (const user of users) {
    const made = run(['token', 'create', '--user', user, '--json'], env);
    tokens[user] = JSON.parse(made.stdout).token;
    if (!tokens[user]) throw new Error(`no token: ${made.stdout}${made.stderr}`);
  }
  const auth = users.length > 0 ? 'token' : 'none';
  const args = ['serve', '--json', '--bind', '127.0.0.1:0', '-m', 'demo', '--auth', auth];
  const process = spawn(BIN, args, { env });
  const { url } = await started(process);
  return { url: new URL('/mcp', url), tokens, process };
}

/** Waits for the first line of a process, which is JSON. The process ends with the checks. */
export async function started(process) {
  process.ended = new Promise((resolve) => process.once('exit', (code, signal) => resolve(signal ?? code)));
  cleanups.push(async () => {
    process.kill('SIGTERM');
    await process.ended;
  });
  process.stderrText = '';
  process.stderr?.on('data', (data) => (process.stderrText += data));
  for await (const line of createInterface({ input: process.stdout })) return JSON.parse(line);
  throw new Error(`it ended: ${process.stderrText}`);
}

/** Connects a client to a new process over standard input and output. */
export function stdio(env, args = [], person = undefined) {
  const transport = new StdioClientTransport({ command: BIN, args: ['mcp', ...args], env, stderr: 'pipe' });
  return connect(transport, person);
}

/** Connects a client to a service over HTTP. */
export function http(url, token, person = undefined) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), person);
}

/** `person` answers elicitations. Without it, the client does not support them. */
async function connect(transport, person) {
  const capabilities = person ? { elicitation: {} } : {};
  const client = new Client({ name: 'checks', version: '1' }, { capabilities });
  if (person) client.setRequestHandler(ElicitRequestSchema, ({ params }) => person(params));
  await client.connect(transport);
  // Loads the output schemas, so that the client validates every structured content from now on.
  client.known = (await client.listTools()).tools;
  cleanups.push(() => client.close().catch(() => {}));
  return client;
}

/** Calls a tool, and returns its structured content and whether it is an error. */
export async function call(client, name, args = {}) {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: args });
  if (JSON.stringify(JSON.parse(content[0].text)) !== JSON.stringify(structuredContent)) {
    throw new Error(`text and structured content differ: ${content[0].text}`);
  }
  return { ...structuredContent, isError: isError ?? false };
}

/** Returns the descriptions of all tasks. */
export async function tasks(client) {
  return (await call(client, 'list_tasks')).data.tasks.map((task) => task.description);
}
