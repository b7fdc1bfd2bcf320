// The texts of the page, in the language that the user has chosen, or else the first of the browser's that is available.

import { setting } from "./settings.js";

/** The available languages: each has a file in `words/`, and its own name here. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

let language;
let locale;
let words;
let plurals;
let numbers;

/** Loads the texts of the current language, and declares the language to the browser. */
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

/** Returns true if there is a text under this key. */
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
