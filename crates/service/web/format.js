// Numbers and times as people read them, in the language of the page. No DOM.

import { localeNow, t } from "./words.js";

const made = new Map();

/** One of `Intl`'s formats for the language of now; made once. */
function format(kind, options) {
  const key = `${localeNow()} ${kind} ${JSON.stringify(options)}`;
  if (!made.has(key)) made.set(key, new Intl[kind](localeNow(), options));
  return made.get(key);
}

const number = (value, digits = 0) => format("NumberFormat", { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }).format(value);

/** Milliseconds: `340 ms`, `1.3 s`, `2 min 5 s`. */
export function duration(ms) {
  if (ms == null) return "–";
  if (ms < 1000) return t("time.ms", { n: number(Math.round(ms)) });
  if (ms < 60_000) return t("time.s", { n: number(ms / 1000, 1) });
  const seconds = Math.round(ms / 1000);
  return t("time.min", { min: number(Math.floor(seconds / 60)), s: number(seconds % 60) });
}

/** Whole seconds: `0 s`, `12 s`, `2 min 5 s`. */
export function seconds(ms) {
  const s = Math.floor(Math.max(0, ms ?? 0) / 1000);
  return s < 60 ? t("time.s", { n: number(s) }) : t("time.min", { min: number(Math.floor(s / 60)), s: number(s % 60) });
}

/** A part of a whole, from 0 to 1: `45%`. */
export function share(part) {
  return format("NumberFormat", { style: "percent" }).format(Math.min(1, Math.max(0, part)));
}

/** Tokens: `812`, `12.4K`. */
export function count(n) {
  if (n == null) return "?";
  if (n < 10_000) return number(n);
  return format("NumberFormat", { notation: "compact", maximumFractionDigits: 1 }).format(n);
}

/** Tokens of a turn, in and out: `812/41 tok`; empty if the model did not report them. */
export function tokens({ input_tokens: input, output_tokens: output } = {}) {
  return input == null && output == null ? "" : t("tokens.both", { in: count(input), out: count(output) });
}

/** US dollars; in words, if the price is not known: that is never zero. */
export function cost(usd) {
  const dollars = (digits) => format("NumberFormat", { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (usd == null) return t("cost.unknown");
  if (usd === 0) return dollars(0).format(0);
  return dollars(usd < 0.01 ? 4 : 2).format(usd);
}

/** Converts a code such as `INVOKE_TOOL` to text. */
export function words(name) {
  return (name ?? "").toLowerCase().replaceAll("_", " ").replaceAll(":", ": ");
}

/** Writes a time that is `ms` milliseconds from now: `in 6 days`, `in 4:09`. */
export function remaining(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const relative = (value, unit) => format("RelativeTimeFormat", {}).format(value, unit);
  if (s >= 2 * 86_400) return relative(Math.round(s / 86_400), "day");
  if (s >= 2 * 3600) return relative(Math.round(s / 3600), "hour");
  return t("time.left", { clock: `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}` });
}

/** `14:05` today, `3 Nov` before. */
export function when(timestamp, now = new Date()) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === now.toDateString();
  return format("DateTimeFormat", isToday ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" }).format(date);
}

/** The time of day: `14:05`. */
export function timeOfDay(timestamp) {
  return format("DateTimeFormat", { hour: "2-digit", minute: "2-digit" }).format(new Date(timestamp));
}

/** Day, month, year and time. */
export function moment(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? "" : format("DateTimeFormat", { dateStyle: "medium", timeStyle: "medium" }).format(date);
}

/** The heading a conversation stands under. */
export function period(timestamp, now = new Date()) {
  const date = new Date(timestamp);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const days = Math.ceil((midnight - date) / 86_400_000);
  if (days <= 0) return t("side.today");
  if (days === 1) return t("side.yesterday");
  return t(days <= 7 ? "side.week" : "side.earlier");
}

/** JSON for people. */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

/** Returns the end of the budgets' day, midnight UTC, in milliseconds since 1970. */
export function nextDay(now = new Date()) {
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
}
