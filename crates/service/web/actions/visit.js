// The time for which a conversation is open.

let stay = new AbortController();

/** Returns the signal that is aborted when the conversation that is open now is left. */
export const untilLeft = () => stay.signal;

/** Leaves the open conversation: nothing listens to its run any more, and nothing that was still loaded for it counts. The run goes on. */
export function leave() {
  stay.abort();
  stay = new AbortController();
}
