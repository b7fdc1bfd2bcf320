// All scenarios of the MCP project's conformance suite: those for servers against the fixture tools of
// `crates/service/examples/mcp_conformance.rs`, those for clients against the binary (`conformance-client.mjs`).

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { BIN, check, home, started } from './harness.mjs';

const exec = promisify(execFile);

/** Scenarios for servers that must pass. */
const SERVER_PASS = [
  'server-initialize',
  'server-session-lifecycle',
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
  'sep-2164-resource-not-found',
  'caching',
  'http-header-validation',
  'input-required-result-unsupported-methods',
  'input-required-result-validate-input',
  // They only warn that the suite's own tool is not there.
  'input-required-result-missing-input-response',
  'input-required-result-ignore-extra-params',
  // They ask nothing of a server that offers no skills.
  'sep-2640-skills-directory',
  'sep-2640-skills-enumeration',
  'sep-2640-skills-manifest',
];

const OWN_TOOL = 'it calls a tool of the suite\'s own, which asks for more than whether a call may be made';
const TASKS = 'tasks of the protocol are not supported';

/** Scenarios for servers that must fail, each with the reason: most need features that a server for an agent's tools does not have. */
const SERVER_FAIL = {
  'completion-complete': 'arguments of prompts are not completed',
  'server-stateless': 'four checks call a diagnostic tool of the suite\'s own; the other 21 pass',
  'http-custom-header-server-validation': 'no tool takes an argument from a header',
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
  'input-required-result-basic-elicitation': OWN_TOOL,
  'input-required-result-basic-sampling': OWN_TOOL,
  'input-required-result-basic-list-roots': OWN_TOOL,
  'input-required-result-request-state': OWN_TOOL,
  'input-required-result-multiple-input-requests': OWN_TOOL,
  'input-required-result-multi-round': OWN_TOOL,
  'input-required-result-non-tool-request': OWN_TOOL,
  'input-required-result-result-type': OWN_TOOL,
  'input-required-result-tampered-state': OWN_TOOL,
  'input-required-result-capability-check': OWN_TOOL,
  'tasks-lifecycle': TASKS,
  'tasks-capability-negotiation': TASKS,
  'tasks-wire-fields': TASKS,
  'tasks-request-state-removal': TASKS,
  'tasks-mrtr-input': TASKS,
  'tasks-request-headers': TASKS,
  'tasks-dispatch-and-envelope': TASKS,
  'tasks-status-notifications': TASKS,
  'tasks-required-task-error': TASKS,
  'tasks-mrtr-composition': TASKS,
};

/** Scenarios for clients that must pass. */
const CLIENT_PASS = [
  'initialize',
  'tools_call',
  'sse-retry',
  'request-metadata',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'json-schema-ref-no-deref',
];

const NO_SKILLS = 'skills of servers are not read';

/** Scenarios for clients that must fail, each with the reason. */
const CLIENT_FAIL = {
  'elicitation-sep1034-client-defaults': 'a server\'s question to the person is closed without an answer',
  'sep-2322-client-request-state': 'a tool that asks for further input is not carried out',
  'json-schema-2020-12-preservation': 'it wants the client to send a tool\'s schema back, which no call of a model does',
  'sep-2640-client-no-prefetch': NO_SKILLS,
  'sep-2640-client-verify-digest': NO_SKILLS,
  'sep-2640-client-verify-size': NO_SKILLS,
  'sep-2640-client-verify-frontmatter': NO_SKILLS,
};

/** The scenarios for clients that begin with `auth/` must fail. */
const NO_SIGN_IN = 'OAuth is not supported: a token is configured';

const PROGRAM = [
  '--import',
  './conformance-node20.mjs',
  'node_modules/@modelcontextprotocol/conformance/dist/index.js',
];

/** Clients of scenarios that run at once. */
const CLIENTS_MAX = 2;

/**
 * Runs all scenarios of a side in one process, and returns the checks of each scenario that wrote results, by its name.
 * One process for each scenario would spend most of its time on loading the suite. `prefix`: what the suite puts in front
 * of the name of a scenario's folder.
 */
async function suite(options, prefix, folder, env = {}) {
  const output = mkdtempSync(join(folder, 'results-'));
  const args = [...PROGRAM, ...options, '--suite', 'all', '--output-dir', output];
  const limits = { env: { ...process.env, ...env }, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 };
  // Its exit code says that scenarios failed, which are looked at one by one.
  await exec('node', args, limits).catch((error) => {
    if (typeof error.code !== 'number') throw error;
  });
  const name = (file) => file.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/, '').slice(prefix.length);
  const files = readdirSync(output, { recursive: true }).filter((file) => file.endsWith('/checks.json'));
  return new Map(files.map((file) => [name(file), JSON.parse(readFileSync(join(output, file), 'utf8'))]));
}

/** Returns the failed checks of a scenario. */
function failures(results, name) {
  const checks = results.get(name);
  assert.ok(checks, `the suite wrote no results for ${name}`);
  const of = (...statuses) => checks.filter((check) => statuses.includes(check.status));
  // A scenario whose checks were all skipped has not passed.
  const counted = of('SUCCESS', 'FAILURE', 'WARNING').length > 0 ? of('FAILURE') : of('SKIPPED');
  assert.ok(of('SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED').length > 0, `${name} checked nothing`);
  return counted.map((check) => check.errorMessage ?? check.id);
}

/** Returns the names of the suite's scenarios for servers and for clients. */
async function listed() {
  const { stdout } = await exec('node', [...PROGRAM, 'list']);
  const [servers, rest] = stdout.split('Client scenarios');
  const names = (part) => [...part.matchAll(/^ {2}- (\S+)/gm)].map((found) => found[1]);
  return { servers: names(servers), clients: names(rest.split('Authorization server scenarios')[0]) };
}

/** Checks that each scenario of one side passes, or fails for its reason. */
async function both(side, results, all, pass, fail) {
  await check(`conformance: every scenario for ${side}s is in one of the two lists`, () => {
    assert.deepEqual([...all].sort(), [...pass, ...Object.keys(fail)].sort());
  });
  for (const name of pass) {
    await check(`conformance: ${side} ${name}`, () => assert.deepEqual(failures(results, name), []));
  }
  for (const [name, reason] of Object.entries(fail)) {
    await check(`conformance: ${side} ${name} is not there (${reason})`, () => {
      assert.notDeepEqual(failures(results, name), [], 'it passes now: move it to the others');
    });
  }
}

/**
 * Lets some processes at a time go on: each connects to the port that is returned, waits for a byte, and is done when it
 * ends. The suite starts the clients of all scenarios at once, and some scenarios measure time.
 */
async function turns(most) {
  const waiting = [];
  let running = 0;
  const next = () => {
    for (; running < most && waiting.length > 0; running += 1) waiting.shift().write('.');
  };
  const server = createServer((socket) => {
    waiting.push(socket);
    // A client that is killed resets its connection.
    socket.on('error', () => {});
    socket.once('close', () => {
      const place = waiting.indexOf(socket);
      if (place < 0) running -= 1;
      else waiting.splice(place, 1);
      next();
    });
    socket.resume();
    next();
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return server.address().port;
}

export async function conformance() {
  assert.ok(BIN, 'ADJUTANT_BIN is not set');
  const root = resolve('../../..');
  const cargo = ['run', '--quiet', '--locked', '-p', 'adjutant-service', '--example', 'mcp_conformance'];
  // `cargo xtask test` passes the folder of examples that are already built.
  const built = process.env.ADJUTANT_EXAMPLES;
  const [program, args] = built ? [join(built, 'mcp_conformance'), []] : ['cargo', cargo];
  const { url } = await started(spawn(program, args, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] }));
  const folder = home().HOME;
  const { servers, clients } = await listed();
  const ofServer = await suite(['server', '--url', url], 'server-', folder);
  await both('server', ofServer, servers, SERVER_PASS, SERVER_FAIL);
  const signIn = clients.filter((name) => name.startsWith('auth/')).map((name) => [name, NO_SIGN_IN]);
  // The time includes that of waiting for a turn.
  const command = ['client', '--command', `node ${resolve('conformance-client.mjs')}`, '--timeout', '240000'];
  const ofClient = await suite(command, '', folder, { ADJUTANT_TURNS: await turns(CLIENTS_MAX) });
  await both('client', ofClient, clients, CLIENT_PASS, { ...CLIENT_FAIL, ...Object.fromEntries(signIn) });
}
