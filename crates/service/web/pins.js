// The conversations that a person keeps at the top of the list, in this browser.

import { call, path } from "./api.js";
import { remember, setting } from "./settings.js";
import { set, state } from "./state.js";

/** The ids of what all versions branch off, the last one pinned first, by user: several may share a browser. */
const all = () => setting("pins", {});
const ids = () => all()[state.me.user] ?? [];

/** Pinned conversations that the loaded part of the list leaves out, by id. */
const others = new Map();
/** Milliseconds after which one of them is asked for anew, with the next list that is loaded: it may have been renamed elsewhere. */
const RENEW_MS = 60_000;
/** When each was asked for. */
const asked = new Map();
let list = null;

const rootOf = (thread) => thread.root_id ?? thread.thread_id;

export const isPinned = (thread) => ids().includes(rootOf(thread));

/** Pins a conversation, or lets it go. */
export function pin(thread, isOn) {
  const id = rootOf(thread);
  const rest = ids().filter((other) => other !== id);
  remember("pins", { ...all(), [state.me.user]: isOn ? [id, ...rest] : rest });
  set({});
}

/** Has a pinned conversation asked for anew with the next list. */
export const renewPin = (thread) => asked.set(rootOf(thread), 0);

/** The pinned conversations that are known; those that the list leaves out are asked for. */
export function pins() {
  if (list !== state.threads.list) {
    list = state.threads.list;
    for (const [id, at] of asked) if (Date.now() - at >= RENEW_MS) asked.delete(id);
  }
  const listed = new Map(state.threads.list.map((thread) => [rootOf(thread), thread]));
  const known = ids().map((id) => listed.get(id) ?? (state.threads.loaded ? knownOrAsked(id) : undefined));
  return known.filter(Boolean);
}

function knownOrAsked(id) {
  if (!asked.has(id)) {
    asked.set(id, Date.now());
    ask(id);
  }
  return others.get(id);
}

async function ask(id) {
  try {
    const ask = (id) => call("GET", path("v1", "threads", id));
    const root = await ask(id);
    // The version that was used last stands for all.
    const [last] = root.version_ids;
    const { pending, version_ids, ...thread } = last === id ? root : await ask(last);
    others.set(id, { ...thread, versions: version_ids.length, pending: pending.length > 0 });
    set({});
  } catch (problem) {
    // It was deleted, here or elsewhere.
    if (problem.status === 404) pin({ thread_id: id }, false);
    else renewPin({ thread_id: id });
  }
}
