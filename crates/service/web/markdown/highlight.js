// The colours of code: which words are keywords, strings, comments. The only module that knows the library, which is loaded
// with the first complete block that names its language.

// Longer code, or code with a longer line, keeps its one colour: the patterns of some languages take too long for it.
const LENGTH_MAX = 50_000;
const LINE_MAX = 5_000;

let library = null;

/** The scopes of `code`: strings, and `{ name, children }`. `null` where the language is not known, or the library not there. */
export async function highlighted(code, language) {
  if (code.length > LENGTH_MAX || code.split("\n").some((line) => line.length > LINE_MAX)) return null;
  library ??= load();
  try {
    const highlighter = await library;
    if (!highlighter.getLanguage(language)) return null;
    // Its one way to a tree, which other libraries that are built on it use as well.
    return highlighter.highlight(code, { language, ignoreIllegals: true })._emitter.root.children;
  } catch {
    library = null;
    return null;
  }
}

async function load() {
  const { default: highlighter } = await import("../vendor/highlight.min.js");
  highlighter.configure({ __emitter: Scopes });
  return highlighter;
}

/** An emitter for the library that keeps the scopes as a tree, in place of the HTML that it would make. */
class Scopes {
  root = { children: [] };
  #open = [this.root];

  addText(text) {
    if (text !== "") this.#open.at(-1).children.push(text);
  }

  openNode(scope) {
    const node = { name: scope.split(".", 1)[0].replace(":", "-"), children: [] };
    this.#open.at(-1).children.push(node);
    this.#open.push(node);
  }

  closeNode() {
    if (this.#open.length > 1) this.#open.pop();
  }

  startScope(scope) {
    this.openNode(scope);
  }

  endScope() {
    this.closeNode();
  }

  __addSublanguage(emitter, name) {
    this.#open.at(-1).children.push({ name: `language-${name}`, children: emitter.root.children });
  }

  finalize() {
    this.#open = [this.root];
  }

  toHTML() {
    return "";
  }
}
