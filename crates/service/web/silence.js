// A connection that is silent for too long is lost: the service sends a comment every 15 seconds, and a connection that a
// network forgot ends in nothing else than silence.
//
// Silence is measured by the time of day, so that a computer that slept counts its sleep.

/** Milliseconds without a byte after which a connection is lost. */
const SILENCE_MS = 45_000;
/** The same when the person comes back to the page, or the browser to its network: the reason to doubt it is there already. */
const SILENCE_ON_RETURN_MS = 20_000;
const LOOK_EVERY_MS = 5_000;

/**
 * Watches one connection, which ends with `signal`. Returns `{ signal, heard, stop, isSilent }`: the signal for the request, which
 * also aborts at silence; `heard` is called for each byte; `stop` ends the watch; `isSilent()` is true if silence ended it.
 */
export function watchSilence(signal) {
  const own = new AbortController();
  let heardAt = Date.now();
  let isSilent = false;
  const look = (limit) => {
    if (Date.now() - heardAt < limit) return;
    isSilent = true;
    own.abort();
  };
  const returned = () => document.hidden || look(SILENCE_ON_RETURN_MS);
  const timer = setInterval(() => look(SILENCE_MS), LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", returned);
  addEventListener("online", returned);
  return {
    signal: AbortSignal.any([signal, own.signal]),
    heard: () => (heardAt = Date.now()),
    stop() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", returned);
      removeEventListener("online", returned);
    },
    isSilent: () => isSilent,
  };
}
