// What is remembered of the person. Each of these gives what the service says became of it, or throws a `Problem`.

import { call, path } from "./api.js";
import { setIn } from "./state.js";

/** Reads all of it. What was changed in the vault by hand counts, so this is done again whenever it is looked at. */
export async function loadMemory() {
  try {
    const { facts } = await call("GET", "/v1/memory");
    setIn("memory", { list: facts, loaded: true, problem: null });
  } catch (problem) {
    setIn("memory", { loaded: true, problem });
  }
}

async function changed(method, where, body) {
  const change = await call(method, where, body && { body });
  await loadMemory();
  return change;
}

export const remember = (content) => changed("POST", "/v1/memory", { content });
export const reword = (id, fields) => changed("PATCH", path("v1", "memory", id), fields);
export const forget = (id) => changed("DELETE", path("v1", "memory", id));
export const undoMemory = () => changed("POST", "/v1/memory/undo");
