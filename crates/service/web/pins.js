// The conversations that a person keeps at the top of the list, in this browser.

import { call, path } from "./api.js";
import { remember, setting } from "./settings.js";
import { set, state } from "./state.js";

/** The ids, the last one pinned first, by user: several may share a browser. */
const all = () => setting("pins", {});
const ids = () => all()[state.me.user] ?? [];

/** Pinned conversations that the loaded part of the list leaves out, by id. */
const others = new Map();
const asked = new Set();

export const isPinned = (id) => ids().includes(id);

/** Pins a conversation, or lets it go. */
export function pin({ thread_id: id }, isOn) {
  const rest = ids().filter((other) => other !== id);
  remember("pins", { ...all(), [state.me.user]: isOn ? [id, ...rest] : rest });
  set({});
}

/** The pinned conversations that are known; the others are asked for, once. */
export function pins() {
  const listed = new Map(state.threads.list.map((thread) => [thread.thread_id, thread]));
  const known = ids().map((id) => listed.get(id) ?? (state.threads.loaded ? knownOrAsked(id) : undefined));
  return known.filter(Boolean);
}

function knownOrAsked(id) {
  if (!asked.has(id)) {
    asked.add(id);
    ask(id);
  }
  return others.get(id);
}

async function ask(id) {
  try {
    const { pending, ...thread } = await call("GET", path("v1", "threads", id));
    others.set(id, { ...thread, pending: pending.length > 0 });
    set({});
  } catch (problem) {
    // It was deleted, here or elsewhere.
    if (problem.status === 404) pin({ thread_id: id }, false);
    else asked.delete(id);
  }
}
