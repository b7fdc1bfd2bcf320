// Numbers and times as people read them. No state, no DOM.

/** Milliseconds: `340 ms`, `1.3 s`, `2 min 5 s`. */
export function duration(ms) {
  if (ms == null) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Tokens: `812`, `12.4k`. */
export function count(n) {
  if (n == null) return "?";
  if (n < 10_000) return String(n);
  return n < 1_000_000 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1_000_000).toFixed(1)}M`;
}

/** Tokens of a turn, in and out: `812/41 tok`; empty where the model told none. */
export function tokens({ input_tokens: input, output_tokens: output } = {}) {
  return input == null && output == null ? "" : `${count(input)}/${count(output)} tok`;
}

/** US dollars. What is not known is never zero. */
export function cost(usd) {
  if (usd == null) return "$?";
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

/** `INVOKE_TOOL` as words. */
export function words(name) {
  return (name ?? "").toLowerCase().replaceAll("_", " ").replaceAll(":", ": ");
}

/** How long until `then`, in milliseconds from now on: `6 days`, `4:09`. */
export function remaining(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s >= 2 * 86_400) return `${Math.floor(s / 86_400)} days`;
  if (s >= 2 * 3600) return `${Math.floor(s / 3600)} hours`;
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** `14:05` today, `3 Nov` before. */
export function when(timestamp, now = new Date()) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  return date.toDateString() === now.toDateString() ? clock.format(date) : day.format(date);
}

/** Day, month, year and time. */
export function moment(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? "" : full.format(date);
}

/** The heading a conversation stands under. */
export function period(timestamp, now = new Date()) {
  const date = new Date(timestamp);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const days = Math.ceil((midnight - date) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return days <= 7 ? "Last 7 days" : "Earlier";
}

/** JSON for people. */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "";
}
