// Writes `moment.json`, the names and rules of moment.js's locales, and the fixture of the tests that compare them.
//
//   npm install --no-save moment@2.29.4
//   TZ=UTC node generate.mjs
//
// Obsidian 1.x bundles moment 2.29.4. Everything is asked of moment itself, not read out of its sources: what a locale
// computes in a function comes out as a table. A locale with a rule that is not known here stops the script.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const moment = require("moment");

// English first: whatever a locale has like English is left out. The order decides between equal guesses.
const LOCALES = {
  "en": "English", "en-gb": "English (United Kingdom)", "de": "German", "de-at": "German (Austria)", "fr": "French", "es": "Spanish",
  "it": "Italian", "pt-br": "Portuguese (Brazil)", "pt": "Portuguese", "nl": "Dutch", "nb": "Norwegian (Bokmål)",
  "da": "Danish", "sv": "Swedish", "nn": "Norwegian (Nynorsk)", "fi": "Finnish", "pl": "Polish", "cs": "Czech",
  "sk": "Slovak", "ru": "Russian", "uk": "Ukrainian", "bg": "Bulgarian", "tr": "Turkish", "ja": "Japanese",
  "zh-cn": "Chinese (simplified)", "zh-tw": "Chinese (traditional)", "ko": "Korean", "hu": "Hungarian",
  "ro": "Romanian", "el": "Greek", "hr": "Croatian", "sl": "Slovenian", "sr": "Serbian",
  "eu": "Basque", "gl": "Galician", "et": "Estonian", "lv": "Latvian", "is": "Icelandic", "id": "Indonesian",
  "ms": "Malay", "vi": "Vietnamese", "th": "Thai", "he": "Hebrew", "sq": "Albanian", "af": "Afrikaans",
};

// Names that depend on the rest of the format: which rule, and a format that asks for the other names.
const IN_DATE = /D[oD]?(\[[^\[\]]*\]|\s)+MMMM?/.source;
const RULES = {
  months: { pl: ["day_before_blank", "D MMMM"], el: ["day_before", "D MMMM"] },
  monthsShort: { nl: ["between_dashes", "-MMM-"], es: ["between_dashes", "-MMM-"] },
  weekdays: { ru: ["russian", "[в] dddd"], uk: ["ukrainian", "[в] dddd", "[x] dddd"] },
};

const LONG = ["LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l"];
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function names(data, code, field, count, at, token) {
  const set = data[`_${field}`];
  const usual = Array.from({ length: count }, (_, number) => at(number).format(token));
  if (Array.isArray(set)) return { usual };
  let [rule, other, third] = RULES[field][code] ?? [];
  if (!rule && typeof set === "object" && (set.isFormat ?? new RegExp(IN_DATE)).source === IN_DATE) {
    [rule, other] = ["in_date", `D ${token}`];
  }
  if (!rule) throw new Error(`${code}: ${field} follows a rule that is not known`);
  // What the format adds before and behind the name is cut off again.
  const bare = (text) => text.replace(/^(\d+ |в |x |-)/, "").replace(/-$/, "");
  const list = (format) => Array.from({ length: count }, (_, number) => bare(at(number).format(format)));
  return { usual, rule, other: list(other), ...(third && { third: list(third) }) };
}

// An ordinal is its number with a suffix that the last two digits decide; what is otherwise is listed.
function ordinals(data, code) {
  const found = {};
  for (const [period, last] of [["M", 12], ["Q", 4], ["D", 31], ["DDD", 366], ["d", 6], ["w", 53], ["W", 53], ["y", 2200]]) {
    const text = (number) => String(data.ordinal(number, period));
    const suffix = (number) => {
      const whole = text(number);
      return whole.startsWith(String(number)) ? whole.slice(String(number).length) : null;
    };
    const suffixes = [];
    const by = [];
    for (let rest = 0; rest < 100; rest += 1) {
      const end = suffix(100 + rest);
      if (end === null) throw new Error(`${code}: ordinals of ${period} do not begin with their number`);
      if (!suffixes.includes(end)) suffixes.push(end);
      by.push(suffixes.indexOf(end));
    }
    const exceptions = {};
    for (let number = period === "d" ? 0 : 1; number <= last; number += 1) {
      const expected = `${number}${suffixes[by[number % 100]]}`;
      if (text(number) !== expected) exceptions[number] = text(number);
    }
    if (Object.keys(exceptions).length > 31) throw new Error(`${code}: ordinals of ${period} are too irregular`);
    const rule = { suffixes };
    if (suffixes.length > 1) rule.by = by.join("");
    if (Object.keys(exceptions).length > 0) rule.exceptions = exceptions;
    found[period] = rule;
  }
  // Most locales have one rule for everything.
  const usual = found.D;
  const others = Object.entries(found).filter(([, rule]) => !same(rule, usual));
  return { "": usual, ...Object.fromEntries(others) };
}

function meridiem(data) {
  const found = [];
  for (let minute = 0; minute < 1440; minute += 1) {
    const [hour, rest] = [Math.floor(minute / 60), minute % 60];
    const words = [data.meridiem(hour, rest, true), data.meridiem(hour, rest, false)];
    if (found.length === 0 || !same(found.at(-1).slice(1), words)) found.push([minute, ...words]);
  }
  return found;
}

function eras(data) {
  // Those before the year 1 count backwards: no note is that old.
  return data.eras().filter((era) => era.until !== -Infinity && Number.isFinite(era.since)).map((era) => {
    return [moment.utc(era.since).format("YYYY-MM-DD"), era.offset, era.abbr, era.name, era.narrow];
  });
}

function locale(code) {
  if (code !== "en") require(`moment/locale/${code}`);
  const data = moment.localeData(code);
  if (data.postformat("1, 2") !== "1, 2") throw new Error(`${code} has digits of its own`);
  const month = (number) => moment.utc([2026, number, 1]).locale(code);
  const day = (number) => moment.utc([2026, 1, 1 + number]).locale(code);
  return {
    code,
    name: LOCALES[code],
    months: names(data, code, "months", 12, month, "MMMM"),
    months_short: names(data, code, "monthsShort", 12, month, "MMM"),
    days: names(data, code, "weekdays", 7, day, "dddd"),
    days_short: names(data, code, "weekdaysShort", 7, day, "ddd").usual,
    days_min: names(data, code, "weekdaysMin", 7, day, "dd").usual,
    long: LONG.map((token) => data.longDateFormat(token)),
    ordinals: ordinals(data, code),
    meridiem: meridiem(data),
    eras: eras(data),
    week: [data.firstDayOfWeek(), data.firstDayOfYear()],
  };
}

const all = Object.keys(LOCALES).map(locale);
const english = all[0];
const lines = all.map((one) => {
  const own = Object.entries(one).filter(([key, value]) => one === english || !same(value, english[key]));
  return `  ${JSON.stringify(Object.fromEntries(own))}`;
});
writeFileSync(new URL("moment.json", import.meta.url), `[\n${lines.join(",\n")}\n]\n`);

// Every day of three years, one of them a leap year, at a time of day that goes round the clock.
const FORMATS = [
  "YYYY/MM MMMM/DD dddd", "D MMMM YYYY", "D. MMM YYYY", "Do MMMM", "MMMM Do, YYYY", "DD-MMM-YYYY", "D [de] MMMM [de] YYYY",
  "YYYY-MM-DD ddd", "dd DD.MM.", "gggg-[W]ww-e", "GGGG-[W]WW-E", "wo Wo", "Mo Qo do", "DDDo DDDD", "[в] dddd", "[Week] dddd",
  "LT LTS A a", "L LL", "LLL LLLL", "l ll", "lll llll", "y yo N NNNN NNNNN",
];
const days = Array.from({ length: 1096 }, (_, number) =>
  moment.utc([2024, 0, 1]).add(number, "days").add((number * 37) % 1440, "minutes"));
const rows = Object.keys(LOCALES).flatMap((code) => FORMATS.map((format) => {
  const texts = days.map((time) => time.clone().locale(code).format(format));
  const sha256 = createHash("sha256").update(texts.join("\n")).digest("hex").slice(0, 16);
  return `  ${JSON.stringify([code, format, texts[1056], sha256])}`;
}));
const fixture = new URL("../tests/it/fixtures/locales.json", import.meta.url);
writeFileSync(fixture, `[\n${rows.join(",\n")}\n]\n`);
