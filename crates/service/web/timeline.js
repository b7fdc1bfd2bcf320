// Where the steps of a turn stand in a waterfall. Pure.

/** What a wait for a person takes of the width: its real time would leave nothing of the rest. */
const WAIT_SHARE = 0.12;

/**
 * For each step `{ offset_ms, ms, kind }` its `{ left, width }` in percent. `elapsed`: how long the turn is going on, for
 * steps that have no end yet.
 */
export function timeline(steps, elapsed) {
  const end = (step) => step.offset_ms + (step.ms ?? Math.max(0, elapsed - step.offset_ms));
  const waits = steps.filter((step) => step.kind === "wait").map((step) => [step.offset_ms, end(step)]);
  const total = steps.reduce((latest, step) => Math.max(latest, end(step)), 0);
  const waited = waits.reduce((sum, [from, to]) => sum + to - from, 0);
  const worked = Math.max(1, total - waited);
  const each = waits.length ? Math.min(WAIT_SHARE, 0.5 / waits.length) / (1 - Math.min(WAIT_SHARE * waits.length, 0.5)) * worked : 0;
  // Time with every wait made as long as `each`.
  const at = (ms) => {
    let moved = ms;
    for (const [from, to] of waits) {
      if (ms <= from || to <= from) continue;
      const inside = Math.min(ms, to) - from;
      moved += (inside / (to - from)) * each - inside;
    }
    return moved;
  };
  const whole = Math.max(1, at(total));
  return steps.map((step) => {
    const left = (at(step.offset_ms) / whole) * 100;
    const width = (at(end(step)) / whole) * 100 - left;
    return { left: Math.min(left, 99.4), width: Math.max(width, 0.6) };
  });
}
