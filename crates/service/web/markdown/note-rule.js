// Links to notes, `[[Note]]`, `[[Note#Heading]]`, `[[Note|shown]]` and `![[Note]]`, as a rule of the Markdown parser.

// As the service takes them.
const LENGTH_MAX = 1_000;
// What stands in brackets with an address behind it, `[[1]](https://…)`, is a link of Markdown's.
const LINK = /!?\[\[([^[\]|\n]+)(?:\|([^[\]\n]*))?\]\](?!\(|\[(?!\[))/y;

/** Has the parser know links to notes, where `env.notes` says so. */
export function addNotes(parser) {
  parser.inline.ruler.before("link", "note", note);
}

function note(state, silent) {
  // A link holds no other one: where its end is looked for, brackets are brackets, and so they are within it.
  if (!state.env.notes || silent || state.linkLevel > 0) return false;
  LINK.lastIndex = state.pos;
  const found = LINK.exec(state.src);
  if (found === null || LINK.lastIndex > state.posMax) return false;
  // In a table, and out of habit elsewhere, the bar is written behind a backslash.
  const link = found[1].replace(/\\$/, "").trim();
  if (link === "" || link.length > LENGTH_MAX) return false;
  // What the answer itself defines is meant by the brackets within.
  if (found[2] === undefined && state.env.references[state.md.utils.normalizeReference(found[1])] !== undefined) return false;
  const token = state.push("note", "", 0);
  token.content = found[2]?.trim() || link;
  token.meta = { link, source: found[0] };
  state.pos += found[0].length;
  return true;
}
