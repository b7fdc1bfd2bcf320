// All server scenarios of the MCP project's conformance suite, against the fixture tools of
// `crates/service/examples/mcp_conformance.rs`.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { check, home, started } from './harness.mjs';

const exec = promisify(execFile);

/** Scenarios that must pass. */
const PASS = [
  'server-initialize',
  'logging-set-level',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-error',
  'tools-call-with-progress',
  'tools-call-elicitation',
  'json-schema-2020-12',
  'server-sse-polling',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
  'prompts-list',
  'resources-list',
  // The result is empty, which the scenario accepts.
  'completion-complete',
];

/** Scenarios that must fail, each with the reason: they need features that a server for an agent's tools does not have. */
const FAIL = {
  'tools-call-image': 'a tool gives JSON, not pictures',
  'tools-call-audio': 'a tool gives JSON, not sound',
  'tools-call-embedded-resource': 'a tool gives JSON, not resources',
  'tools-call-mixed-content': 'a tool gives JSON, not pictures and resources',
  'tools-call-with-logging': 'a call is logged once, when it ends; the scenario wants three messages of the tool itself',
  'tools-call-sampling': 'tools never ask the client\'s model',
  'elicitation-sep1034-defaults': 'the only question is whether a call may be made',
  'elicitation-sep1330-enums': 'the only question is whether a call may be made',
  'resources-read-text': 'it reads a resource of the suite\'s own; ours are conversations',
  'resources-read-binary': 'it reads a resource of the suite\'s own; ours are conversations',
  'resources-templates-read': 'it reads a resource of the suite\'s own; ours are conversations',
  'resources-subscribe': 'a conversation is read, not watched',
  'resources-unsubscribe': 'a conversation is read, not watched',
  'prompts-get-simple': 'it asks for a prompt of the suite\'s own',
  'prompts-get-with-args': 'it asks for a prompt of the suite\'s own',
  'prompts-get-embedded-resource': 'it asks for a prompt of the suite\'s own',
  'prompts-get-with-image': 'it asks for a prompt of the suite\'s own',
};

const PROGRAM = [
  '--import',
  './conformance-node20.mjs',
  'node_modules/@modelcontextprotocol/conformance/dist/index.js',
];

/** Runs a scenario, and returns true if it passes, and the failed checks. */
async function scenario(url, name, folder) {
  const output = mkdtempSync(join(folder, 'results-'));
  const args = [...PROGRAM, 'server', '--url', url, '--scenario', name, '--output-dir', output];
  const ended = await exec('node', args, { timeout: 300_000 }).then(
    () => 0,
    (error) => error.code,
  );
  const files = readdirSync(output, { recursive: true }).filter((file) => file.endsWith('checks.json'));
  assert.equal(files.length, 1, `the suite wrote no results for ${name} (exit code ${ended})`);
  const checks = JSON.parse(readFileSync(join(output, files[0]), 'utf8'));
  assert.ok(checks.some((check) => ['SUCCESS', 'FAILURE'].includes(check.status)), `${name} checked nothing`);
  return checks.filter((check) => check.status === 'FAILURE').map((check) => check.errorMessage ?? check.id);
}

export async function conformance() {
  const root = resolve('../../..');
  const cargo = ['run', '--quiet', '--locked', '-p', 'adjutant-service', '--example', 'mcp_conformance'];
  // `cargo xtask test` passes the folder of examples that are already built.
  const built = process.env.ADJUTANT_EXAMPLES;
  const [program, args] = built ? [join(built, 'mcp_conformance'), []] : ['cargo', cargo];
  const { url } = await started(spawn(program, args, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] }));
  const folder = home().HOME;
  await check('conformance: every scenario of the suite is in one of the two lists', async () => {
    const { stdout } = await exec('node', [...PROGRAM, 'list', '--server']).catch(() =>
      exec('node', [...PROGRAM, 'list']),
    );
    const part = stdout.split('Client scenarios')[0];
    const all = [...part.matchAll(/^ {2}- (\S+)/gm)].map((found) => found[1]);
    assert.deepEqual(all.sort(), [...PASS, ...Object.keys(FAIL)].sort());
  });
  for (const name of PASS) {
    await check(`conformance: ${name}`, async () => {
      assert.deepEqual(await scenario(url, name, folder), []);
    });
  }
  for (const [name, reason] of Object.entries(FAIL)) {
    await check(`conformance: ${name} is not there (${reason})`, async () => {
      assert.notDeepEqual(await scenario(url, name, folder), [], 'it passes now: move it to PASS');
    });
  }
}
