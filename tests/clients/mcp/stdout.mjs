// Standard output carries nothing but the protocol, at every log level and after every error.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BIN, check, home, run } from './harness.mjs';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'checks', version: '1' } },
};

/** Returns the messages on standard output. Anything else there is an error. */
function messages(stdout) {
  const lines = stdout.split('\n');
  assert.equal(lines.pop(), '', 'the last line ends');
  return lines.map((line) => {
    const message = JSON.parse(line);
    assert.equal(message.jsonrpc, '2.0', line);
    return message;
  });
}

const lines = (...requests) => requests.map((request) => `${JSON.stringify(request)}\n`).join('');

const SESSION = lines(
  INITIALIZE,
  { jsonrpc: '2.0', method: 'notifications/initialized' },
  { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'add_task', arguments: { description: 'x' } } },
  { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'delete_task', arguments: { task_id: '9' } } },
  { jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'nothing' } },
  { jsonrpc: '2.0', id: 5, method: 'no/such/method' },
);

export async function stdout() {
  const levels = [
    ['as it is', [], {}],
    ['RUST_LOG=trace', [], { RUST_LOG: 'trace' }],
    ['-v and RUST_LOG=trace', ['-v'], { RUST_LOG: 'trace', RUST_BACKTRACE: '1' }],
    ['--json and colours', ['--json', '--color', 'always'], { RUST_LOG: 'debug', CLICOLOR_FORCE: '1' }],
  ];
  for (const [name, args, extra] of levels) {
    await check(`stdout: only JSON-RPC, ${name}`, async () => {
      const ended = run([...args, 'mcp'], { ...home(), ...extra }, SESSION);
      assert.equal(ended.status, 0, ended.stderr);
      const ids = messages(ended.stdout).map((message) => message.id);
      assert.deepEqual(ids.sort(), [0, 1, 2, 3, 4, 5]);
    });
  }
  await check('stdout: lines that are no messages are answered with nothing else', async () => {
    const noise = `hello\n\n{}\n[1]\n{"jsonrpc":"2.0"\n\u0000\n${'x'.repeat(100_000)}\n`;
    const ended = run(['mcp'], home(), lines(INITIALIZE) + noise + SESSION.slice(lines(INITIALIZE).length));
    assert.equal(ended.status, 0, ended.stderr);
    const ids = messages(ended.stdout).map((message) => message.id).filter((id) => typeof id === 'number');
    assert.deepEqual(ids.sort(), [0, 1, 2, 3, 4, 5]);
  });
  await check('stdout: no client, no output', async () => {
    const ended = run(['mcp'], home(), '');
    assert.deepEqual([ended.status, ended.stdout], [0, '']);
  });
  const broken = home();
  mkdirSync(join(broken.HOME, '.config', 'adjutant'), { recursive: true });
  writeFileSync(join(broken.HOME, '.config', 'adjutant', 'config.toml'), 'modle = 1\n');
  const file = home();
  writeFileSync(join(file.HOME, 'no-database'), 'not a database at all, whatever it is called');
  for (const [name, args, env, words] of [
    ['a broken configuration', ['mcp'], broken, /modle/],
    ['a database that is none', ['mcp', '--database', join(file.HOME, 'no-database')], file, /no-database/],
    ['a user that is none', ['mcp', '--user', ''], home(), /user/],
  ]) {
    await check(`stdout: ${name} is told as the error of initialize, and on standard error`, async () => {
      const ended = run(args, { ...env, RUST_LOG: 'trace' }, SESSION);
      assert.ok([2, 3].includes(ended.status), `${ended.status}`);
      const [message, ...others] = messages(ended.stdout);
      assert.deepEqual([message.id, message.error.code, others], [0, -32603, []]);
      assert.match(message.error.message, words);
      assert.match(ended.stderr, /Error:/);
    });
  }
  await check('stdout: an unusable command line says so elsewhere', async () => {
    const ended = run(['mcp', '--nonsense'], home(), SESSION);
    assert.deepEqual([ended.status, ended.stdout], [2, '']);
  });
  for (const signal of ['SIGTERM', 'SIGINT']) {
    await check(`stdout: ${signal} ends it in order`, async () => {
      const child = spawn(BIN, ['mcp'], { env: home(), stdio: ['pipe', 'pipe', 'pipe'] });
      const ended = new Promise((resolve) => child.once('exit', (code, by) => resolve([code, by])));
      child.stdin.write(lines(INITIALIZE));
      for await (const line of createInterface({ input: child.stdout })) {
        assert.equal(JSON.parse(line).id, 0);
        break;
      }
      child.kill(signal);
      assert.deepEqual(await ended, [0, null]);
    });
  }
  await check('print-config: each client gets a form that names this binary', async () => {
    for (const client of ['claude', 'codex', 'cursor', 'goose', 'vscode']) {
      const ended = run(['mcp', '--user', 'ana', '--print-config', client], home());
      assert.equal(ended.status, 0, ended.stderr);
      assert.ok(ended.stdout.includes(BIN), ended.stdout);
      assert.match(ended.stdout, /"--user",\s*"ana"/);
    }
    const claude = JSON.parse(run(['mcp', '--print-config', 'claude'], home()).stdout);
    assert.deepEqual(claude, { mcpServers: { adjutant: { command: BIN, args: ['mcp'] } } });
  });
}
