// State of the service, for operators.

import { call, path, query } from "./api.js";
import { setIn, state } from "./state.js";

const LISTS = {
  turns: (operation) => ["/v1/admin/turns", { failed: operation.filter.which === "failed" || undefined, days: operation.filter.days, request_id: operation.filter.request || undefined }],
  questions: () => ["/v1/admin/questions", {}],
  people: (operation) => ["/v1/admin/users", { days: operation.filter.days }],
};
/** The fields of each list: its name in the answer, the parameter that asks for the next page, and the field that has its value. */
const PAGES = { turns: ["turns", "cursor", "next_cursor"], questions: ["questions", "cursor", "next_cursor"], people: ["users", "after", "next_after"] };

/** Asks, and takes the answer unless something else was asked for meanwhile. */
let asked = 0;
async function read(work) {
  const mine = ++asked;
  try {
    const fields = await work();
    if (mine === asked) setIn("operation", { ...fields, loaded: true, problem: null });
  } catch (problem) {
    if (mine === asked) setIn("operation", { loaded: true, problem });
  }
}

/** Reads what is shown. */
export function loadOperation() {
  const { view } = state.operation;
  if (view === "overview") return read(async () => ({ overview: await call("GET", "/v1/admin/overview") }));
  return loadList();
}

/** Reads a list, or the next page of it. */
export function loadList({ more = false } = {}) {
  const { operation } = state;
  const [place, fields] = LISTS[operation.view](operation);
  const [name, parameter, following] = PAGES[operation.view];
  // With a request's id nothing else is asked for.
  const asked = fields.request_id ? { request_id: fields.request_id } : fields;
  const before = more ? operation.list : [];
  return read(async () => {
    const page = await call("GET", place + query({ ...asked, [parameter]: more ? operation.next : undefined }));
    return { list: [...before, ...page[name]], next: page[following] };
  });
}

export function showOperation(view) {
  setIn("operation", { view, turn: null, list: [], next: null, loaded: view === "overview" && state.operation.overview !== null });
  return loadOperation();
}

export function filterOperation(fields) {
  setIn("operation", { filter: { ...state.operation.filter, ...fields }, list: [], next: null, loaded: false });
  return loadList();
}

export function lookAtTurn(id, user) {
  setIn("operation", { turn: { id, user, detail: null } });
  return read(async () => ({ turn: { id, user, detail: await call("GET", path("v1", "admin", "turns", id) + query({ user })) } }));
}

export function leaveTurn() {
  setIn("operation", { turn: null, problem: null });
}
