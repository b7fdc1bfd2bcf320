// The words of the page, in the language that the person chose or else the first of the browser's that there is.

import { setting } from "./settings.js";

/** The languages there are: each has a file in `words/`, and here its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

let language;
let locale;
let words;
let plurals;
let numbers;

/** Reads the words of the language that is wanted now, and tells the browser which it is. */
export async function loadWords() {
  const tags = navigator.languages?.length ? navigator.languages : [navigator.language ?? "en"];
  const isOf = (name) => (tag) => tag.toLowerCase().split("-")[0] === name;
  const chosen = setting("language", null);
  const name = [chosen, ...tags.map((tag) => tag.toLowerCase().split("-")[0])].find((name) => Object.hasOwn(LANGUAGES, name ?? "")) ?? "en";
  ({ WORDS: words } = await import(`./words/${name}.js`));
  language = name;
  // Dates and numbers as they are written where the person lives, if that is known.
  locale = tags.find(isOf(name)) ?? name;
  plurals = new Intl.PluralRules(locale);
  numbers = new Intl.NumberFormat(locale);
  document.documentElement.lang = language;
}

await loadWords();

/** The language of the page: one of `LANGUAGES`. */
export const languageNow = () => language;

/** Returns the locale for `Intl`: the language, with its region if the browser names one. */
export const localeNow = () => locale;

/** Returns whether there are words under this key. */
export const hasWords = (key) => Object.hasOwn(words, key);

/**
 * The words under a key, with `values` in place of their `{names}`; numbers are written as the language does. Where the words
 * depend on a number, `values.count` is it.
 */
export function t(key, values = {}) {
  const found = hasWords(key) ? words[key] : key;
  const text = typeof found === "string" ? found : (found[plurals.select(values.count)] ?? found.other);
  return text.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? numbers.format(values[name]) : String(values[name] ?? "")));
}
