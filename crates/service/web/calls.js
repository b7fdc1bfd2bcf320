// Text for tool calls: what a call is about, and its result. Pure.

import { beginning, shortened } from "./text.js";
import { hasWords, t } from "./words.js";

/** So many characters of an argument or a result are shown in a line. */
const BRIEF = 80;

/** Returns a tool's display name: the page's for built-in ones, its own title, or its name without underscores. */
export function toolTitle(name, tools = []) {
  if (hasWords(`title.${name}`)) return t(`title.${name}`);
  const tool = tools.find((tool) => tool.name === name);
  if (tool?.title) return tool.title;
  const [server, ...rest] = name.split("__");
  // `git__git_log` is `git`'s “log”.
  const own = rest.length ? rest.join("__").replace(new RegExp(`^${server.replace(/\W/g, "\\$&")}_`), "") : name;
  const words = own.replace(/[_-]+/g, " ").trim();
  const first = beginning(words, 1);
  return words ? first.toUpperCase() + words.slice(first.length) : name;
}

/** The server that a tool is of; `null`: it is the agent's own. */
export const serverOf = (name) => (name.includes("__") ? name.split("__")[0] : null);

/** Text in one line that is not too long. */
function oneLine(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return shortened(line, BRIEF);
}

/** A value in one line, or nothing where it is more than that. */
function brief(value) {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && !value.trim().includes("\n") ? oneLine(value) : "";
}

/** The arguments in one line: their values, as far as each is short. */
export const argsBrief = (args) => oneLine(Object.values(args ?? {}).map(brief).filter(Boolean).join(", "));

/** A short form of a result, or nothing if it is long. */
function resultBrief(data) {
  if (Array.isArray(data) && data.length === 1) return resultBrief(data[0]);
  if (data && typeof data === "object") {
    const values = data.type === "text" ? [data.text] : Object.values(data);
    return values.length === 1 ? resultBrief(values[0]) : "";
  }
  return brief(data);
}

const isText = (...values) => values.every((value) => typeof value === "string");

// Results of built-in tools. Each returns the key of its text and the values, or nothing if the result is not as expected.
const DID = {
  add_task: ({ data }) => isText(data.description) && ["did.add_task", { what: data.description }],
  complete_task: ({ data }) => isText(data.description) && [data.already_completed ? "did.complete_task_before" : "did.complete_task", { what: data.description }],
  update_task: ({ data }) => isText(data.description, data.previous_description) && ["did.update_task", { before: data.previous_description, what: data.description }],
  delete_task: ({ data }) => isText(data.description) && ["did.delete_task", { what: data.description }],
  list_tasks: ({ data }) => Array.isArray(data.tasks) && (data.tasks.length ? ["did.list_tasks", { count: data.tasks.length }] : ["did.list_no_tasks"]),
  list_notes: ({ data }) => Array.isArray(data.notes) && ["did.list_notes", { count: data.notes.length }],
  search_notes: ({ data, args }) => Array.isArray(data.notes) && isText(args.query) && ["did.search_notes", { count: data.notes.length, query: args.query }],
  read_note: ({ data }) => isText(data.path) && ["did.read_note", { what: data.path }],
};

/** The data of a result: where a person changed the arguments, it stands in a note about that. */
const asRun = (data) => (data && typeof data === "object" && "note" in data && "arguments" in data && "result" in data ? data.result : data);

/** Returns a line that says what a successful call did. */
function done(part, tools) {
  const data = asRun(part.result?.data);
  const did = data && typeof data === "object" && Object.hasOwn(DID, part.name) && DID[part.name]({ data, args: part.args ?? {} });
  if (did) {
    const [key, values = {}] = did;
    const lines = Object.entries(values).map(([name, value]) => [name, typeof value === "string" ? oneLine(value) : value]);
    return t(key, Object.fromEntries(lines));
  }
  const summary = part.summary?.trim();
  if (summary && !summary.includes("\n")) return summary.replace(/\.$/, "");
  const what = [toolTitle(part.name, tools), argsBrief(part.args)].filter(Boolean).join(": ");
  const result = resultBrief(data);
  return result ? `${what} → ${result}` : what;
}

/**
 * A call in words: `text`, and below it `why`, what went wrong and what can be done, or `at`, how far it is while it runs. `tools`: those of `/v1/me`.
 */
export function callWords(part, tools) {
  const title = toolTitle(part.name, tools);
  const what = [title, argsBrief(part.args)].filter(Boolean).join(": ");
  switch (part.status) {
    case "ok":
      return { text: done(part, tools) };
    case "failed":
      return { text: t("call.failed", { what }), why: [part.summary ?? part.result?.error, t("call.failed_hint")].filter(Boolean).join(" ") };
    case "refused":
      return { text: part.summary ? t("call.refused", { what: part.summary.replace(/[?.]$/, "") }) : t("call.refused", { what }) };
    case "settled":
      return { text: t("call.settled", { what: part.summary ?? what }) };
    case "open":
      return { text: part.result ? t("call.unknown", { what: part.summary ?? what }) : t("call.open", { what }) };
    default:
      return { text: what, at: part.at };
  }
}

/**
 * The parts of a turn with the calls that follow each other in groups: `{ kind: "calls", id, parts }`. A round's calls are one
 * group, also where nothing is said between two rounds.
 */
export function grouped(parts) {
  const groups = [];
  for (const part of parts) {
    const last = groups.at(-1);
    if (part.kind !== "tool") {
      if (part.kind === "text") groups.push(part);
    } else if (last?.kind === "calls") last.parts.push(part);
    else groups.push({ kind: "calls", id: part.id, parts: [part] });
  }
  return groups;
}
