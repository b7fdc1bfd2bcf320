// The official MCP client, over both transports.

import assert from 'node:assert/strict';
import { call, check, home, http, run, serve, stdio, tasks } from './harness.mjs';

/** Returns the tool of this name. */
const tool = (client, name) => client.known.find((known) => known.name === name);

/**
 * Checks for any transport. `connect(person)` returns a client, always of the same user; `approve` confirms a pending
 * call as that user, outside of MCP.
 */
async function conversation(name, connect, approve, more = []) {
  const client = await connect();
  await check(`${name}: who it is, and a ping`, async () => {
    assert.equal(client.getServerVersion().name, 'adjutant');
    assert.ok(client.getServerCapabilities().tools);
    assert.match(client.getInstructions(), /confirmation_required/);
    assert.deepEqual(await client.ping(), {});
  });
  await check(`${name}: the tools with titles, hints and schemas`, async () => {
    assert.deepEqual(
      client.known.map((tool) => tool.name).filter((name) => name !== 'ask'),
      ['add_task', 'list_tasks', 'update_task', 'complete_task', 'delete_task', ...more],
    );
    const remove = tool(client, 'delete_task');
    assert.equal(remove.title, 'Delete task');
    assert.deepEqual(remove.annotations, {
      title: 'Delete task',
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: false,
    });
    assert.ok(remove.inputSchema.properties.confirmation_id);
    assert.ok(client.known.every((tool) => tool.outputSchema.required.includes('success')));
  });
  await check(`${name}: add, list, rename, complete; every result fits its schema`, async () => {
    const added = await call(client, 'add_task', { description: 'Buy milk' });
    assert.equal(added.data.description, 'Buy milk');
    await call(client, 'add_task', { description: 'Call Bob' });
    const renamed = await call(client, 'update_task', { task_id: 'milk', description: 'Buy oat milk' });
    assert.equal(renamed.data.previous_description, 'Buy milk');
    assert.equal((await call(client, 'complete_task', { task_id: added.data.id })).data.completed, true);
    assert.deepEqual(await tasks(client), ['Buy oat milk', 'Call Bob']);
  });
  await check(`${name}: bad arguments are told to the model, an unknown tool to the client`, async () => {
    const bad = await call(client, 'add_task', { description: '' });
    assert.ok(bad.isError && /description/.test(bad.error), JSON.stringify(bad));
    const foreign = await call(client, 'add_task', { description: 'x', user_id: 'other' });
    assert.ok(foreign.isError && /user_id/.test(foreign.error));
    await assert.rejects(client.callTool({ name: 'drop_tasks' }), { code: -32602 });
    await assert.rejects(client.listTools({ cursor: 'nowhere' }), { code: -32602 });
  });
  await check(`${name}: without a way to ask, a deletion waits for the person elsewhere`, async () => {
    const asked = await call(client, 'delete_task', { task_id: 'oat milk' });
    assert.equal(asked.status, 'confirmation_required');
    assert.equal(asked.preview, 'Delete “Buy oat milk”');
    assert.ok(Date.parse(asked.expires_at) > Date.now(), asked.expires_at);
    const confirmation_id = asked.confirmation_id;
    for (const args of [
      { task_id: 'oat milk', confirmation_id: 'yes' },
      { task_id: 'Bob', confirmation_id },
    ]) {
      assert.ok((await call(client, 'delete_task', args)).isError);
    }
    const still = await call(client, 'delete_task', { task_id: 'oat milk', confirmation_id });
    assert.equal(still.status, 'confirmation_required');
    assert.deepEqual(await tasks(client), ['Buy oat milk', 'Call Bob']);
    await approve(confirmation_id);
    const done = await call(client, 'delete_task', { task_id: 'oat milk', confirmation_id });
    assert.equal(done.data.deleted, true);
    assert.deepEqual(await tasks(client), ['Call Bob']);
  });
  await check(`${name}: a client that can ask is asked, and only a plain yes counts`, async () => {
    const questions = [];
    let answer;
    const asking = await connect((question) => {
      questions.push(question);
      return answer;
    });
    for (answer of [{ action: 'decline' }, { action: 'accept', content: { confirm: false } }]) {
      const declined = await call(asking, 'delete_task', { task_id: 'Bob' });
      assert.equal(declined.status, 'declined');
    }
    assert.deepEqual(await tasks(asking), ['Call Bob']);
    answer = { action: 'accept', content: { confirm: true } };
    assert.equal((await call(asking, 'delete_task', { task_id: 'Bob' })).data.deleted, true);
    assert.deepEqual(await tasks(asking), []);
    assert.deepEqual(new Set(questions.map((question) => question.message)), new Set(['Delete “Call Bob”?']));
    assert.equal(questions[0].requestedSchema.properties.confirm.type, 'boolean');
  });
  await check(`${name}: a question that the client closes waits for the person elsewhere`, async () => {
    const closing = await connect(() => ({ action: 'cancel' }));
    await call(closing, 'add_task', { description: 'Mow lawn' });
    const closed = await call(closing, 'delete_task', { task_id: 'lawn' });
    assert.equal(closed.status, 'confirmation_required');
    assert.deepEqual(await tasks(closing), ['Mow lawn']);
    const { confirmation_id } = closed;
    await approve(confirmation_id);
    assert.equal((await call(closing, 'delete_task', { task_id: 'lawn', confirmation_id })).data.deleted, true);
    assert.deepEqual(await tasks(closing), []);
  });
  await check(`${name}: a call that is given up while it waits for the person does nothing`, async () => {
    await call(client, 'add_task', { description: 'Water plants' });
    const giveUp = new AbortController();
    const asking = await connect(() => {
      giveUp.abort('changed my mind');
      return { action: 'accept', content: { confirm: false } };
    });
    const given = asking.callTool({ name: 'delete_task', arguments: { task_id: 'plants' } }, undefined, {
      signal: giveUp.signal,
    });
    await assert.rejects(given, /changed my mind/);
    assert.deepEqual(await tasks(asking), ['Water plants']);
  });
  await check(`${name}: what is done is logged to a client that wants it`, async () => {
    const heard = new Promise((resolve) => {
      client.fallbackNotificationHandler = async (notification) => resolve(notification);
    });
    await client.setLoggingLevel('info');
    await call(client, 'add_task', { description: 'Feed cat' });
    const { method, params } = await heard;
    assert.equal(method, 'notifications/message');
    assert.deepEqual(params, { level: 'info', logger: 'tools', data: { tool: 'add_task', outcome: 'done' } });
  });
}

/**
 * Checks of the agent as a tool. `connect(person)` returns a client of a user without tasks, and `approve` confirms as
 * that user.
 */
async function asking(name, connect, approve) {
  const client = await connect();
  const ask = (client, message, more) => call(client, 'ask', { message, ...more });
  await check(`${name}: the agent answers, and goes on with its conversation`, async () => {
    assert.equal(client.known.at(-1).name, 'ask');
    const added = await ask(client, 'add green tea');
    assert.equal(added.data.answer, '[demo] Added “green tea”.');
    const { conversation_id } = added.data;
    const listed = await ask(client, 'list', { conversation_id });
    assert.deepEqual(listed.data, { answer: '[demo] Your tasks: green tea.', conversation_id, disposition: 'ran', failed_calls: [] });
    const { contents } = await client.readResource({ uri: `adjutant://threads/${conversation_id}` });
    assert.match(contents[0].text, /add green tea[^]*list/);
    const unknown = await ask(client, 'list', { conversation_id: '0199d5b6-7e3c-7c8a-a2f5-3d1f0e6b9a11' });
    assert.ok(unknown.isError && /no such conversation/.test(unknown.error));
  });
  await check(`${name}: what the agent wants to destroy waits for the person`, async () => {
    const asked = await ask(client, 'delete green tea');
    assert.equal(asked.status, 'confirmation_required');
    assert.equal(asked.preview, 'Delete “green tea”');
    const { confirmation_id } = asked;
    const [conversation_id] = confirmation_id.split('.');
    assert.equal((await ask(client, 'yes', { conversation_id })).status, 'confirmation_required', 'no client says yes');
    assert.deepEqual(await tasks(client), ['green tea']);
    await approve(conversation_id);
    const done = await ask(client, 'delete green tea', { confirmation_id });
    assert.equal(done.data.answer, '[demo] Deleted “green tea”.');
    assert.deepEqual(await tasks(client), []);
  });
  await check(`${name}: a client that can ask its person is asked in the middle of the turn`, async () => {
    let answer = { action: 'decline' };
    const questions = [];
    const able = await connect((question) => {
      questions.push(question.message);
      return answer;
    });
    await ask(able, 'add black tea');
    await ask(able, 'delete black tea');
    assert.deepEqual(await tasks(able), ['black tea']);
    answer = { action: 'accept', content: { confirm: true } };
    assert.equal((await ask(able, 'delete black tea')).data.answer, '[demo] Deleted “black tea”.');
    assert.deepEqual(questions, ['Delete “black tea”?', 'Delete “black tea”?']);
    assert.deepEqual(await tasks(able), []);
  });
}

export async function sdk() {
  const env = home();
  const inTerminal = () => {
    const [waits] = JSON.parse(run(['pending', 'list', '--json'], env).stdout);
    const approval = run(['pending', 'approve', waits.id], env);
    assert.equal(approval.status, 0, approval.stdout + approval.stderr);
  };
  await conversation('stdio', (person) => stdio(env, [], person), inTerminal);
  await check('stdio: the agent is no tool unless it is wanted', async () => {
    const { known } = await stdio(env);
    assert.deepEqual(known.filter(({ name }) => name === 'ask'), []);
  });
  const other = home();
  const approved = () => {
    const [waits] = JSON.parse(run(['pending', 'list', '--json'], other).stdout);
    const approval = run(['pending', 'approve', waits.id, '-m', 'demo'], other);
    assert.equal(approval.status, 0, approval.stdout + approval.stderr);
  };
  await asking('stdio', (person) => stdio(other, ['--agent', '-m', 'demo'], person), approved);
  await check('stdio: --user has tasks of its own, and the terminal shares those of local', async () => {
    const ana = await stdio(env, ['--user', 'ana']);
    assert.deepEqual(await tasks(ana), []);
    assert.match(run(['tasks', 'list'], env).stdout, /Feed cat/);
  });

  const { url, tokens, process } = await serve(['ana', 'ben', 'carl', 'dora']);
  const overHttp = (user) => async (thread_id) => {
    const ask = async (method, path, body) => {
      const init = { method, body: body && JSON.stringify(body), headers: headers(tokens[user]) };
      const answer = await fetch(new URL(path, url), init);
      assert.equal(answer.status, 200, path);
      return answer.json();
    };
    const { pending } = await ask('GET', '/v1/pending');
    const { interrupt_id } = pending.find((waiting) => waiting.thread_id === thread_id);
    await ask('POST', '/v1/chat', { thread_id, resume: [{ interrupt_id, approved: true }] });
  };
  // A service also offers the memory tools.
  const memory = ['remember', 'recall', 'forget'];
  await conversation('http', (person) => http(url, tokens.ana, person), overHttp('ana'), memory);
  await asking('http', (person) => http(url, tokens.dora, person), overHttp('dora'));
  await check('http: another user has other tasks, and no use for the session or the id', async () => {
    const [ana, ben] = [await http(url, tokens.ana), await http(url, tokens.ben)];
    assert.deepEqual(await tasks(ben), []);
    await call(ben, 'add_task', { description: 'Buy milk' });
    const asked = await call(ben, 'delete_task', { task_id: '1' });
    const stolen = await call(ana, 'delete_task', {
      task_id: 'Feed cat',
      confirmation_id: asked.confirmation_id,
    });
    assert.ok(stolen.isError);
    assert.deepEqual(await tasks(ben), ['Buy milk']);
    const session = ana.transport.sessionId;
    assert.ok(session);
    for (const [method, body] of [
      ['POST', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
      ['GET'],
      ['DELETE'],
    ]) {
      const status = async (token) => {
        const answer = await fetch(url, { method, body, headers: headers(token, session) });
        await answer.body?.cancel();
        return answer.status;
      };
      assert.equal(await status(tokens.ben), 404, `${method} with another user's session`);
      assert.equal(await status('wrong'), 401, `${method} with a wrong token`);
    }
    assert.ok((await tasks(ana)).length > 0, 'the session still lives');
  });
  // Another user from here on, because each may send sixty requests per minute.
  await check('http: who ends a session has ended it', async () => {
    const client = await http(url, tokens.carl);
    const session = client.transport.sessionId;
    await client.transport.terminateSession();
    const answer = await fetch(url, { method: 'GET', headers: headers(tokens.carl, session) });
    assert.equal(answer.status, 404);
  });
  await check('http: pages of other origins and rebound names are refused', async () => {
    const { default: request } = await import('node:http');
    const status = (method, extra) =>
      new Promise((resolve, reject) => {
        const sent = request.request(url, { method, headers: { ...headers(tokens.carl), ...extra } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject).end();
      });
    for (const method of ['POST', 'GET', 'DELETE']) {
      assert.equal(await status(method, { Host: 'evil.example' }), 403, method);
      assert.equal(await status(method, { Origin: 'http://evil.example' }), 403, method);
    }
  });
  await check('http: the version without sessions asks by ending the call, and is answered by its repeat', async () => {
    const one = (params, capabilities) => sessionless(url, tokens.carl, params, capabilities);
    const args = { description: 'Sweep floor' };
    const added = await one({ name: 'add_task', arguments: args }, {});
    assert.equal(added.structuredContent.data.description, 'Sweep floor');
    const task_id = added.structuredContent.data.id;
    const deletion = { name: 'delete_task', arguments: { task_id } };
    const plain = await one(deletion, {});
    assert.equal(plain.structuredContent.status, 'confirmation_required');
    const ask = async () => {
      const asked = await one(deletion, { elicitation: { form: {} } });
      assert.equal(asked.resultType, 'input_required');
      assert.equal(asked.inputRequests.confirm.method, 'elicitation/create');
      return (action, content) => ({
        ...deletion,
        requestState: asked.requestState,
        inputResponses: { confirm: { action, content } },
      });
    };
    const refused = await ask();
    for (const answer of [refused('decline'), refused('accept', { confirm: true })]) {
      const no = await one(answer, { elicitation: {} });
      assert.equal(no.structuredContent.status, 'declined', 'a no is a no');
    }
    const agreed = await ask();
    for (let times = 0; times < 2; times += 1) {
      const yes = await one(agreed('accept', { confirm: true }), { elicitation: {} });
      assert.equal(yes.structuredContent.data.deleted, true, 'sent again, it is told again');
    }
  });
  await check('http: a service that is told to end ends its sessions and itself', async () => {
    const client = await http(url, tokens.carl);
    assert.ok(client.transport.sessionId);
    process.kill('SIGTERM');
    assert.equal(await process.ended, 0);
    assert.doesNotMatch(process.stderrText, /not all that ran had ended/, 'it waited for the client to go');
  });
}

/** Sends `tools/call` in the protocol version without sessions. */
async function sessionless(url, token, params, capabilities) {
  const version = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'checks', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      ...headers(token),
      'MCP-Protocol-Version': version,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': params.name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta } }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  assert.equal(answer.headers.get('mcp-session-id'), null);
  const data = text.split('\n').filter((line) => line.startsWith('data: {'));
  return JSON.parse(data.length ? data.at(-1).slice(6) : text).result;
}

function headers(token, session) {
  return {
    Authorization: `Bearer ${token}`,
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    ...(session && { 'mcp-session-id': session }),
  };
}
