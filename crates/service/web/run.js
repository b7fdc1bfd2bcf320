// One run from its start to its end, over as many connections as it takes.

import { path, send } from "./api.js";
import { watchSilence } from "./silence.js";
import { eventsOf } from "./sse.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

/**
 * Starts a run (`input`: AG-UI's `RunAgentInput`), or with `input: null` listens to one that goes on.
 *
 * `onEvent(event)` gets each event once. `onConnection(attempt, isSent)` is called with `0` when it is connected and the number of the attempt
 * when it was lost, and whether the service ever had the run. Ends with the run's last event. Throws a `Problem`; code `unknown`: the service knows no such run (any
 * more), and the messages of the conversation say what became of it.
 */
export async function follow({ runId, input, signal, onEvent, onConnection }) {
  let last = null;
  let started = input === null;
  for (let attempt = 0; ; ) {
    const connection = watchSilence(signal);
    try {
      const response = started ? await again(runId, last, connection.signal) : await start(input, connection.signal);
      connection.heard();
      started = true;
      onConnection(0, true);
      for await (const { id, data } of eventsOf(response, connection.heard)) {
        attempt = 0;
        last = id ?? last;
        const event = JSON.parse(data);
        onEvent(event);
        if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") return event;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      // Sent again under the same name it is the same run, so a start may be tried again too. What a start was refused for
      // is said, not waited out.
      const lost = connection.isSilent() || error.code === "offline" || (started && [502, 503, 504].includes(error.status));
      if (!lost) throw error;
    } finally {
      connection.stop();
    }
    attempt += 1;
    onConnection(attempt, started);
    await pause(Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT), signal);
  }
}

function start(input, signal) {
  return send("POST", "/v1/runs", { body: input, headers: { accept: "text/event-stream" }, signal });
}

function again(runId, last, signal) {
  const headers = { accept: "text/event-stream" };
  if (last !== null) headers["last-event-id"] = last;
  return send("GET", path("v1", "runs", runId, "events"), { headers, signal });
}

/** Waits, or until the browser is online again. */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
