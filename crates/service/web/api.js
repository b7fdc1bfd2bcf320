// The service's routes, and its errors (RFC 9457). The browser sends the cookie by itself.

import { t } from "./words.js";

/** What did not work, as the service says it. `code` is the stable word; `offline` is ours. */
export class Problem extends Error {
  constructor(fields) {
    super(fields.detail || fields.title || t("problem.unknown"));
    Object.assign(this, { status: 0, code: "internal", title: t("problem.unknown") }, fields);
  }
}

/** Milliseconds after which what was only asked for is given up: a connection that the network forgot never ends by itself. */
const READ_MS = 60_000;

/** Number of times that somebody signed in on this page. */
let signIns = 0;

/** Notes that somebody has signed in: a refusal of what was asked before says nothing about them. */
export function noteSignIn() {
  signIns += 1;
}

/** Sends a request and gives the response, whatever its body; a status beyond 299 is a `Problem`. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const request = { method, headers, signal, cache: "no-store", credentials: "same-origin", redirect: "error" };
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { "content-type": "application/json", ...headers };
  }
  const signedIn = signIns;
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw noAnswer();
  }
  if (!response.ok) throw Object.assign(await problemOf(response), { isOutdated: signedIn !== signIns });
  return response;
}

/** The same, and reads the JSON of the answer; `null` if there is none. */
export async function call(method, path, options) {
  const signal = method === "GET" ? AbortSignal.timeout(READ_MS) : undefined;
  const response = await send(method, path, { signal, ...options, headers: { accept: "application/json", ...options?.headers } });
  if (response.status === 204) return null;
  return response.json().catch((error) => {
    throw signal?.aborted ? noAnswer() : error;
  });
}

const noAnswer = () => new Problem({ code: "offline", title: t("problem.title.offline"), detail: t("problem.no_answer") });

async function problemOf(response) {
  const fields = { status: response.status, request_id: response.headers.get("x-request-id") ?? undefined };
  const retry = Number(response.headers.get("retry-after"));
  if (retry > 0) fields.retry_after = retry;
  try {
    const type = response.headers.get("content-type") ?? "";
    if (type.includes("json")) Object.assign(fields, await response.json());
  } catch {
    // A proxy's page instead of a problem: the status has to do.
  }
  fields.title ??= `HTTP ${response.status}`;
  return new Problem(fields);
}

/** A path from parts, each encoded. */
export function path(...parts) {
  return "/" + parts.map(encodeURIComponent).join("/");
}

/** A query from what is set. */
export function query(fields) {
  const set = Object.entries(fields).filter(([, value]) => value != null && value !== "");
  return set.length ? "?" + new URLSearchParams(set) : "";
}

/** A random UUID; also where the page is not served securely and `crypto.randomUUID` is missing. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Returns the address of a conversation's file, as `markdown` or `json`. */
export function exportAddress(threadId, format) {
  return path("v1", "threads", threadId, "export") + query({ format });
}
