// What a conversation looks like: turns out of stored messages and out of events. Pure; nothing given is changed.
//
// A turn: { key, id, text, at, memory, parts, steps, work, decision, problem, status, feedback } with status running | done | waiting |
// stopped | failed. `memory`: the facts that were attached to the message, { id, text }. `feedback`: the user's rating of the answer, { rating, comment }; null: nothing. `work`: it is at work since
// `from` (milliseconds of the clock; null: it is not), and was for `ms` before.
// A step, shown while waiting: { kind: "model" | "reading" | "retrying" | "tool", ... }, in the order of their start.
// A part: { kind: "text" | "thinking" | "tool", step, ... }; `step` is the model call it belongs to, from 1. A text that
// `isNew` came while the page was open, and is read out to who listens, however fast it came. A tool's `status` is running | ok |
// failed | waiting | refused (it did not run) | settled (a person says that it was done) | open (no result, or
// its result is unknown).

/** A turn that starts with the user's message. */
export function newTurn(key, text, at = new Date().toISOString()) {
  return { key, id: null, text, at, memory: [], parts: [], steps: [], work: { from: new Date(at).getTime(), ms: 0 }, decision: null, problem: null, status: "running", feedback: null };
}

/** Returns the milliseconds that the model and the tools worked on a turn, without the person's time to answer; `null`: not known. */
export function worked({ status, work, decision }, now) {
  if (status === "running") return work.ms + (work.from === null ? 0 : Math.max(0, now - work.from));
  const { llm, tools } = decision?.timing_ms ?? {};
  return llm == null && tools == null ? null : (llm ?? 0) + (tools ?? 0);
}

/** The turns of stored messages; `decisions` are their rows in the log, by id. */
export function turnsOf(messages, pending, decisions) {
  const turns = [];
  const calls = new Map();
  let step = 0;
  for (const message of messages) {
    let turn = turns.at(-1);
    if (message.role === "user") {
      turn = { ...newTurn(message.run_id ?? `history-${turns.length}`, message.content, message.created_at), id: message.run_id ?? null };
      turn.status = "done";
      turn.memory = message.memory ?? [];
      turns.push(turn);
      step = 0;
      continue;
    }
    if (turn === undefined || (message.run_id ?? null) !== turn.id) {
      turn = { ...newTurn(message.run_id ?? `part-${turns.length}`, null, message.created_at), id: message.run_id ?? null, status: "done" };
      turns.push(turn);
      step = 0;
    }
    if (message.role === "tool") {
      const part = calls.get(message.tool_call_id);
      if (part) Object.assign(part, toldAgain(message));
      continue;
    }
    step += 1;
    turn.feedback = message.feedback ?? turn.feedback;
    if (message.content) turn.parts.push({ kind: "text", id: `${turn.key}-text-${step}`, step, text: message.content, done: true });
    for (const call of message.tool_calls ?? []) {
      const part = { kind: "tool", id: call.id, step, name: call.tool, args: call.args, status: "running" };
      calls.set(call.id, part);
      turn.parts.push(part);
    }
  }
  for (const turn of turns) settle(turn, decisions.get(turn.id));
  const last = turns.at(-1);
  // Its answers were given, and it goes on.
  if (last?.status === "waiting" && pending.length === 0) last.status = "running";
  if (last && pending.length > 0) {
    last.status = "waiting";
    // The question is shown in its card; the messages have it as text too.
    if (last.parts.at(-1)?.kind === "text") last.parts.pop();
    last.parts = waiting(last.parts, pending);
  }
  return turns.filter((turn, at) => !(mayBeReplaced(turn) && turns[at + 1]?.text === turn.text));
}

/**
 * Returns whether the same message, sent again, takes the place of a turn: it failed, and no tool was called in it. What a
 * tool did stays in sight.
 */
export function mayBeReplaced(turn) {
  return turn.status === "failed" && turn.text !== null && turn.parts.every((part) => part.kind !== "tool");
}

/** A call's part as its stored result says. */
function toldAgain({ result, content, summary, ms, asked }) {
  const after = { ...ended(result ?? resultOf(content), ms), summary: summary ?? asked, ms };
  // It did not run again: a person says that it was done.
  return after.status === "ok" && asked && ms == null ? { ...after, status: "settled" } : after;
}

/** Outcomes of turns that have no answer but an error. */
const FAILED = /^(ERROR:(?!TOOL_FAILURE)|LIMIT:|REFUSAL:RATE_LIMITED)/;

function settle(turn, row) {
  if (!row) return;
  turn.decision = decisionOf(row);
  if (!row.outcome) turn.status = "running";
  else if (row.outcome === "CANCELLED:BY_USER") {
    turn.status = "stopped";
    turn.parts = withoutEnd(turn.parts, row.content);
  } else if (row.outcome.startsWith("PENDING")) turn.status = "waiting";
  else if (FAILED.test(row.outcome)) turn.status = "failed";
  for (const part of turn.parts) {
    if (part.kind === "tool" && part.status === "running" && row.outcome) part.status = "open";
  }
}

/** The parts without the words with which the service ends a cancelled turn: the page shows its own. */
function withoutEnd(parts, content) {
  const last = parts.at(-1);
  if (last?.kind !== "text") return parts;
  const before = parts.slice(0, -1);
  if (last.id.endsWith("-end")) return before;
  if (last.text !== content) return parts;
  // In front of them, on lines of its own, is what the person had read when the answer was stopped.
  const end = content.lastIndexOf("\n");
  return end > 0 ? [...before, { ...last, text: content.slice(0, end) }] : before;
}

/** A row of the decision log, made from the events of a decision. */
export function decisionOf(row) {
  if (row.timing_ms && row.decision_id) return row;
  return {
    decision_id: row.decision_id ?? row.id,
    decision: row.decision ?? row.kind,
    outcome: row.outcome,
    usage: row.usage ?? {},
    timing_ms: row.timing_ms ?? {},
    notices: row.notices ?? [],
  };
}

/** The calls that wait, marked; one that has no part yet gets one. */
function waiting(parts, pending) {
  const result = parts.map((part) => ({ ...part }));
  for (const call of pending) {
    const open = result.filter((part) => part.kind === "tool" && part.name === call.tool && part.interrupt === undefined && !hasEnded(part));
    const part =
      result.find((part) => part.kind === "tool" && part.id === call.call_id) ??
      open.find((part) => JSON.stringify(part.args) === JSON.stringify(call.args)) ??
      open[0];
    if (part) Object.assign(part, { status: "waiting", interrupt: call.interrupt_id, args: call.args ?? part.args });
    else result.push({ kind: "tool", id: call.interrupt_id, step: 0, name: call.tool, args: call.args, status: "waiting", interrupt: call.interrupt_id });
  }
  return result;
}

const hasEnded = (part) => part.status === "ok" || part.status === "failed" || part.status === "refused";

/** Returns whether a pending call waits for a person, and not for the result that another program brings. */
export const isQuestion = (call) => call.kind !== "awaits_result";

/** A pending call in the form of `/v1/chat` and `/v1/threads`, made from an interrupt of AG-UI. */
export function pendingOf(interrupt) {
  const { tool, args, kind, since, for_conversation, always } = interrupt.metadata ?? {};
  return {
    interrupt_id: interrupt.id,
    call_id: interrupt.toolCallId,
    kind: kind ?? (interrupt.reason === "in_doubt" ? "doubt" : "confirmation"),
    tool: tool ?? "tool",
    args: args ?? {},
    preview: interrupt.message ?? "",
    expires_at: interrupt.expiresAt,
    since,
    for_conversation,
    always,
  };
}

/** The turn after an event of its run, which came at `now`. */
export function afterEvent(turn, event, now = Date.now()) {
  switch (event.type) {
    case "STEP_STARTED": {
      const step = Number(/(\d+)$/.exec(event.stepName)?.[1] ?? 0);
      // The model call was repeated (after a crash, or because the run is replayed): its earlier text is void.
      const parts = turn.parts.filter((part) => part.step < step);
      return { ...withStep(turn, { kind: "model", number: step }), step, parts };
    }
    case "TEXT_MESSAGE_START":
      return withPart(turn, { kind: "text", id: event.messageId, step: turn.step ?? 1, text: "", done: false, isNew: true });
    case "TEXT_MESSAGE_CONTENT":
      return changed(turn, "text", event.messageId, (part) => ({ text: part.text + event.delta }));
    case "TEXT_MESSAGE_END":
      return changed(turn, "text", event.messageId, () => ({ done: true }));
    case "REASONING_MESSAGE_START":
      return withPart(turn, { kind: "thinking", id: event.messageId, step: turn.step ?? 1, text: "", done: false });
    case "REASONING_MESSAGE_CONTENT":
      return changed(turn, "thinking", event.messageId, (part) => ({ text: part.text + event.delta }));
    case "REASONING_MESSAGE_END":
      return changed(turn, "thinking", event.messageId, () => ({ done: true }));
    case "TOOL_CALL_START": {
      const part = { kind: "tool", id: event.toolCallId, step: turn.step ?? 1, name: event.toolCallName, argsText: "", args: null, status: "running" };
      return withPart(withStep(turn, { kind: "tool", name: part.name, count: 1 }), part);
    }
    case "TOOL_CALL_ARGS":
      return changed(turn, "tool", event.toolCallId, (part) => ({ argsText: (part.argsText ?? "") + event.delta }));
    case "TOOL_CALL_END":
      return changed(turn, "tool", event.toolCallId, (part) => ({ args: parsed(part.argsText) ?? part.args }));
    case "TOOL_CALL_RESULT": {
      const { ms, summary } = event.metadata ?? {};
      const result = resultOf(event.content);
      // What a person said no to did not fail.
      const isKept = (part) => part.status === "refused" || part.status === "settled";
      return changed(turn, "tool", event.toolCallId, (part) => (isKept(part) ? { result } : { ...ended(result, ms), ms, summary }));
    }
    case "CUSTOM":
      if (event.name === "decision") return { ...turn, id: event.value.decision_id, decision: event.value };
      if (event.name === "memory") return { ...turn, memory: event.value.told };
      if (event.name === "retrying") return withStep(turn, { kind: "retrying", attempt: event.value.attempt, until: now + event.value.wait_ms });
      // Said while a call runs, and gone with its end.
      if (event.name === "progress") return changed(turn, "tool", event.value.tool_call_id, (part) => (part.status === "running" ? { at: event.value.text } : {}));
      if (event.name === "reading") return withStep(turn, { kind: "reading", share: event.value.total ? event.value.done / event.value.total : 0 });
      return turn;
    case "RUN_FINISHED": {
      const kind = event.outcome?.type ?? "success";
      if (kind === "interrupt") {
        const pending = event.outcome.interrupts.map(pendingOf);
        return { ...rested(turn, now), status: "waiting", parts: waiting(turn.parts, pending) };
      }
      const isStopped = kind === "cancelled";
      return over(isStopped ? { ...turn, parts: withoutEnd(turn.parts, turn.decision?.content) } : turn, isStopped ? "stopped" : "done", now);
    }
    case "RUN_ERROR": {
      // The last text of the turn repeats the problem.
      const last = turn.parts.at(-1);
      const parts = last?.kind === "text" && last.text === event.message ? turn.parts.slice(0, -1) : turn.parts;
      return {
        ...over({ ...turn, parts }, "failed", now),
        problem: { code: event.code, detail: event.message, retry_after: event.metadata?.retry_after, budget: event.metadata?.budget, run_id: turn.decision?.decision_id },
      };
    }
    default:
      return turn;
  }
}

/** The turn, at work no longer. */
function rested(turn, now) {
  const { from, ms } = turn.work;
  return { ...turn, work: { from: null, ms: from === null ? ms : ms + now - from } };
}

/** The turn with one more step. What only goes on is the same step: more of the prompt was read, another call of the same tool. */
function withStep(turn, step) {
  const last = turn.steps.at(-1);
  const isSame = last?.kind === step.kind && (step.kind === "reading" || (step.kind === "tool" && last.name === step.name) || (step.kind === "model" && last.number === step.number));
  const next = isSame && step.kind === "tool" ? { ...step, count: last.count + 1 } : step;
  return { ...turn, steps: [...(isSame ? turn.steps.slice(0, -1) : turn.steps), next] };
}

/** Nothing more comes for this turn. */
export function over(turn, status, now = Date.now()) {
  const parts = turn.parts.map((part) => {
    if (part.kind !== "tool") return part.done ? part : { ...part, done: true };
    return part.status === "running" || part.status === "waiting" ? { ...part, status: "open", interrupt: undefined } : part;
  });
  return { ...rested(turn, now), status, parts };
}

/** The answers were given (`choices` by interrupt id), and the turn goes on. */
export function resumed(turn, pending, choices, now = Date.now()) {
  const parts = turn.parts.map((part) => {
    if (part.status !== "waiting") return part;
    const { approved, editedArgs, verdict } = choices[part.interrupt] ?? {};
    const after = { ...part, args: editedArgs ?? part.args, interrupt: undefined };
    if (approved || verdict === "retry") return { ...after, status: "running" };
    const summary = pending.find((call) => call.interrupt_id === part.interrupt)?.preview;
    return { ...after, status: { done: "settled", leave: "open" }[verdict] ?? "refused", summary };
  });
  return { ...turn, status: "running", problem: null, parts, steps: [], work: { from: now, ms: worked(turn, now) ?? turn.work.ms } };
}

/** A call that ended, after `ms` if it ran. One that did not run was refused: by a person, or because it was not clear or not allowed. Of
 * one that broke off it may not be known whether it was done. */
function ended(result, ms) {
  const isUnknown = !result.success && result.data?.status === "unknown";
  const status = result.success ? "ok" : isUnknown ? "open" : ms == null ? "refused" : "failed";
  return { status, result, interrupt: undefined, at: undefined };
}

function resultOf(content) {
  const result = parsed(content);
  return result && typeof result.success === "boolean" ? result : { success: true, data: result ?? content };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function withPart(turn, part) {
  const known = turn.parts.some((other) => other.kind === part.kind && other.id === part.id);
  const parts = known
    ? turn.parts.map((other) => (other.kind === part.kind && other.id === part.id ? { ...other, ...part } : other))
    : [...turn.parts, part];
  return { ...turn, parts };
}

function changed(turn, kind, id, change) {
  return { ...turn, parts: turn.parts.map((part) => (part.kind === kind && part.id === id ? { ...part, ...change(part) } : part)) };
}

const CHANGES = { add_task: "added", update_task: "renamed", complete_task: "completed", delete_task: "deleted" };

/** Which turn changed which task, newest first: `{ what, task, turn }`, out of the results of the task tools. */
export function taskChanges(turns) {
  const changes = [];
  for (const turn of turns) {
    for (const part of turn.parts) {
      const what = part.kind === "tool" && part.status === "ok" ? CHANGES[part.name] : undefined;
      const task = part.result?.data;
      if (what && task && typeof task.id === "string") changes.push({ what, task, turn });
    }
  }
  return changes.reverse();
}
