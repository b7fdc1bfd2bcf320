// Texts of the page: every language has all of them, each one is used, and the sources contain no others.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "acorn";
import { fullAncestor } from "acorn-walk";
import { check, lines, moduleOf, open, serve } from "./harness.mjs";

const WEB = fileURLToPath(new URL("../../crates/service/web/", import.meta.url));
const NAMES = readdirSync(join(WEB, "words")).map((file) => file.replace(/\.js$/, ""));

const sources = readdirSync(WEB, { recursive: true })
  .filter((file) => file.endsWith(".js") && !/^(vendor|words)[/\\]/.test(file))
  .map((file) => ({ file, tree: parse(readFileSync(join(WEB, file), "utf8"), { ecmaVersion: "latest", sourceType: "module" }) }));

/** Loads the texts of a language. Its file contains nothing else, so it can be evaluated anywhere. */
async function wordsOf(name) {
  const text = readFileSync(join(WEB, "words", `${name}.js`), "utf8");
  return (await import(`data:text/javascript,${encodeURIComponent(text)}`)).WORDS;
}

/** Returns the names of the placeholders in a text, including its plural forms. */
function valuesOf(words) {
  const forms = typeof words === "string" ? [words] : Object.values(words);
  const names = forms.map((form) => [...form.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  return [...new Set(names.flat())].sort();
}

/** Returns the text of a string literal, or the static parts of a template. */
const pieces = (node) => (node.type === "Literal" ? [String(node.value)] : node.quasis.map((quasi) => quasi.value.cooked));

/** Returns strings that may be keys of texts: literals, and the static beginnings of templates (`problem.title.${code}`). */
function keysUsed() {
  const whole = new Set();
  const beginnings = new Set();
  for (const { tree } of sources) {
    fullAncestor(tree, (node) => {
      if (node.type === "Literal" && typeof node.value === "string") whole.add(node.value);
      if (node.type === "TemplateLiteral" && node.expressions.length > 0 && /^[a-z]\w*\.(\w+\.)*$/.test(node.quasis[0].value.cooked)) beginnings.add(node.quasis[0].value.cooked);
    });
  }
  return { whole, beginnings };
}

// Attributes whose text users see or hear.
const SEEN = new Set(["aria-label", "title", "placeholder", "alt", "name", "aria-description", "aria-valuetext", "label"]);
const LETTERS = /\p{L}{2,}/u;
/** The product's name is the same in every language. */
const isWord = (text) => LETTERS.test(text.replaceAll("Adjutant", ""));

/** Returns the texts in an `html` template that users see, as text or in an attribute. */
function literalsOf(template) {
  const found = [];
  // A placeholder can be anywhere, even inside a tag; its value is not part of the template's text.
  const text = pieces(template).join("\u0000");
  for (const [piece, tag] of text.matchAll(/(<[^<>]*>)|[^<>]+/g)) {
    if (tag === undefined) {
      if (isWord(piece)) found.push(piece.trim());
      continue;
    }
    for (const [, name, value] of tag.matchAll(/([\w-]+)="([^"]*)"/g)) {
      const isField = name === "name" && /^<(input|textarea|select|meta|\u0000)/.test(tag) && /^[a-z-]+$/.test(value);
      if (SEEN.has(name) && !isField && isWord(value)) found.push(`${name}="${value}"`);
    }
  }
  return found;
}

/** Calls whose strings are for programs: selectors, media queries, and errors that users never see. */
const FOR_PROGRAMS = /^(querySelector|querySelectorAll|closest|matches|matchMedia|classes|Error|RegExp|getElementById|execCommand)$/;

/** Returns true if a string outside of templates looks like text for users: several words, or a capital letter. */
function isForPeople(text) {
  return /\p{L}{2,}[,:;]? \p{L}{2,}/u.test(text) || /^\p{Lu}\p{Ll}+[.!?…:]?$/u.test(text);
}

/** Names of keys, of the languages themselves, and of the product. */
const NAMES_OF_THINGS = new Set(["Enter", "Escape", "Deutsch", "English", "Adjutant"]);

function literalWords({ file, tree }) {
  const found = [];
  fullAncestor(tree, (node, _, ancestors) => {
    if (node.type === "TaggedTemplateExpression" && node.tag.name === "html") {
      for (const words of literalsOf(node.quasi)) found.push(`${file}: ${words}`);
      return;
    }
    const isString = (node.type === "Literal" && typeof node.value === "string") || node.type === "TemplateLiteral";
    if (!isString) return;
    const parent = ancestors.at(-2);
    if (parent?.type === "TaggedTemplateExpression" || parent?.type === "ImportDeclaration") return;
    const call = ancestors.findLast((ancestor) => ["CallExpression", "NewExpression"].includes(ancestor.type));
    const callee = call?.callee.property?.name ?? call?.callee.name ?? "";
    if (FOR_PROGRAMS.test(callee)) return;
    if (callee === "setAttribute") {
      const [name, value] = call.arguments;
      if (value === node && SEEN.has(name.value) && pieces(node).some(isWord)) found.push(`${file}: ${pieces(node)}`);
      return;
    }
    if (parent?.type === "AssignmentExpression" && ["className", "rel"].includes(parent.left.property?.name)) return;
    if (ancestors.some((ancestor) => ancestor.type === "Property" && ["class", "rel"].includes(ancestor.key.name))) return;
    // A list of names, written as `"a b".split(" ")`.
    if (parent?.type === "MemberExpression" && parent.property.name === "split") return;
    for (const piece of pieces(node)) {
      // Commands are the same in every language.
      if (piece.startsWith("adjutant ")) continue;
      if (isForPeople(piece) && !NAMES_OF_THINGS.has(piece)) found.push(`${file}: ${piece}`);
    }
  });
  return found;
}

export async function words(browser) {
  await check("words: each language has a file, and each file is a language", async () => {
    const text = readFileSync(join(WEB, "words.js"), "utf8");
    const [, list] = /LANGUAGES = \{([^}]*)\}/.exec(text);
    assert.deepEqual([...list.matchAll(/(\w+):/g)].map(([, name]) => name).sort(), [...NAMES].sort());
  });

  await check("words: the same keys in the same order in all languages, with the same values, and none is empty", async () => {
    const [first, ...others] = await Promise.all(["en", ...NAMES.filter((name) => name !== "en")].map(wordsOf));
    for (const [at, other] of others.entries()) {
      assert.deepEqual(Object.keys(other), Object.keys(first));
      for (const [key, words] of Object.entries(first)) {
        assert.deepEqual(valuesOf(other[key]), valuesOf(words), `${key} of language ${at + 1}`);
      }
    }
    for (const language of [first, ...others]) {
      for (const [key, words] of Object.entries(language)) {
        const forms = typeof words === "string" ? [words] : Object.values(words);
        assert.ok(forms.every((form) => form.trim() !== "" && (form.match(/`/g) ?? []).length % 2 === 0), key);
        if (typeof words !== "string") assert.ok("other" in words, key);
      }
    }
  });

  await check("words: each language has the plural forms that it needs", async () => {
    for (const name of NAMES) {
      const { pluralCategories } = new Intl.PluralRules(name).resolvedOptions();
      for (const [key, words] of Object.entries(await wordsOf(name))) {
        if (typeof words !== "string") assert.deepEqual(Object.keys(words).sort(), [...pluralCategories].sort(), `${name}: ${key}`);
      }
    }
  });

  await check("words: every key is used, and every key that is used is there", async () => {
    const known = Object.keys(await wordsOf("en"));
    const { whole, beginnings } = keysUsed();
    assert.deepEqual(known.filter((key) => !whole.has(key) && ![...beginnings].some((beginning) => key.startsWith(beginning))), [], "not used");
    const asked = [];
    for (const { file, tree } of sources) {
      fullAncestor(tree, (node) => {
        if (node.type !== "CallExpression" || node.callee.name !== "t") return;
        const branches = (argument) => (argument.type === "ConditionalExpression" ? [...branches(argument.consequent), ...branches(argument.alternate)] : [argument]);
        for (const argument of branches(node.arguments[0])) {
          if (argument.type === "Literal" && !known.includes(argument.value)) asked.push(`${file}: ${argument.value}`);
        }
      });
    }
    assert.deepEqual(asked, [], "not there");
    for (const beginning of beginnings) assert.ok(known.some((key) => key.startsWith(beginning)), `nothing begins with ${beginning}`);
  });

  await check("words: none stand in the sources", () => {
    assert.deepEqual(sources.flatMap(literalWords), []);
  });

  const service = await serve({ script: lines({ text: "Hello.", repeat: true }) });
  try {
    await check("words: the language is the browser's, and the page says which", async () => {
      for (const [locale, language, hello] of [["de-AT", "de", "Was kann ich für dich tun?"], ["en-GB", "en", "What can I do for you?"], ["fr-FR", "en", "What can I do for you?"]]) {
        const page = await open(browser, service, { locale });
        await page.getByRole("heading", { name: hello }).waitFor();
        assert.equal(await page.getAttribute("html", "lang"), language, locale);
        assert.deepEqual(page.broken, []);
        await page.close();
      }
    });

    await check("words: a language that was chosen comes before the browser's, also after a reload", async () => {
      const page = await open(browser, service, { locale: "en-GB" });
      await page.evaluate(async (actions) => (await import(actions)).chooseLanguage("de"), await moduleOf(page, "actions/session.js"));
      await page.getByRole("heading", { name: "Was kann ich für dich tun?" }).waitFor();
      assert.equal(await page.getAttribute("html", "lang"), "de");
      await page.reload();
      await page.getByRole("heading", { name: "Was kann ich für dich tun?" }).waitFor();
      await page.evaluate(async (actions) => (await import(actions)).chooseLanguage(null), await moduleOf(page, "actions/session.js"));
      await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
      await page.close();
    });

    await check("words: numbers, dates and plurals are those of the language", async () => {
      const page = await open(browser, service, { locale: "de-DE" });
      const actual = await page.evaluate(async () => {
        const { cost, count, duration, remaining, when } = await import("/web/format.js");
        const { t } = await import("/web/words.js");
        return [duration(1340), count(12_400), cost(0.5), remaining(7 * 86_400_000), when("2026-11-03T10:00:00Z", new Date("2026-11-26T10:00:00Z")), t("composer.cut", { count: 1, max: 4000 }), t("trace.turns", { count: 1 }), t("trace.turns", { count: 2 })];
      });
      assert.deepEqual(actual.map((text) => text.replaceAll("\u00a0", " ")), ["1,3 s", "12.400", "0,50 $", "in 7 Tagen", "3. Nov.", "1 Zeichen: nur die ersten 4.000 werden gelesen", "Runde", "Runden"]);
      await page.close();
    });
  } finally {
    await service.stop();
  }
}
