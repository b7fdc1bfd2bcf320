// Random answers like those of models, made from a seed. Every word occurs once, so that a lost one is noticed.

const ADDRESSES = ["https://example.com/", "https://example.com/a_(b)_c?d=e&f=1", "https://docs.example.org/guide/#part-2", "http://localhost:8080/v1/threads"];

/** A pseudo-random number generator with a seed. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Returns an answer, and the addresses that its links may have. */
export function answer(seed) {
  const below = random(seed * 7_919 + 13);
  const one = (list) => list[below(list.length)];
  let count = 0;
  const word = () => `${one(["milk", "task", "über", "строка", "file", "step", "value", "note"])}${(count += 1)}`;
  const definitions = [];
  const address = () => one(ADDRESSES);
  const defined = () => {
    const label = word();
    definitions.push(`[${label}]: ${address()}${one(["", ` "${word()}"`, `\n  '${word()}'`])}`);
    return label;
  };
  const marks = [
    () => word(), () => word(), () => word(), () => word(),
    () => `**${word()} ${word()}**`, () => `*${word()}*`, () => `***${word()}***`, () => `_${word()}_`, () => `~~${word()}~~`,
    () => `\`${word()}_${word()}\``, () => `\`\` ${word()} \` ${word()} \`\``, () => `${word()}_${word()}_${word()}`, () => `__${word()}__`,
    () => `[${word()} *${word()}*](${address()})`, () => `[${word()}](${address()} "${word()}")`, () => `<${address()}>`, () => address(),
    () => `(${address()})`, () => `[${word()}][${defined()}]`, () => `[${defined()}]`, () => `[${word()}]`, () => `![${word()}](${address()})`,
    () => `&amp; &copy; ${word()}`, () => `5*${word()} and 4*${word()}`, () => `\\*${word()}\\*`, () => `$${word()}`, () => "$x^2$", () => `${word()}  \n${word()}`,
    () => `${word()}\n${word()}`, () => `<b>${word()}</b>`, () => `"${word()}"`, () => `- ${word()}`, () => `${word()}: "${word()}",`, () => `#${word()}`, () => `1) ${word()}`,
  ];
  const line = (length = 6) => Array.from({ length: 1 + below(length) }, () => one(marks)()).join(" ");
  const indent = (text, by) => text.split("\n").join(`\n${by}`);
  const item = (mark, depth) => {
    const more = depth < 2 && below(4) === 0 ? `\n${list(depth + 1)}` : below(6) === 0 ? `\n\n${line(3)}` : "";
    return `${mark} ${indent(line(3) + more, " ".repeat(mark.length + 1))}`;
  };
  const list = (depth = 0) => {
    const kind = below(4);
    const mark = (at) => [`${at + 1}.`, `${at + 1})`, one(["-"]), `- [${one([" ", "x"])}]`][kind];
    return Array.from({ length: 1 + below(4) }, (_, at) => (kind === 3 ? `${mark(at)} ${word()} ${word()}` : item(mark(at), depth))).join(below(4) === 0 ? "\n\n" : "\n");
  };
  const table = () => {
    const columns = 1 + below(4);
    const row = (cell) => `| ${Array.from({ length: columns }, cell).join(" | ")} |`;
    return [row(word), row(() => one(["---", ":--", "--:", ":-:"])), ...Array.from({ length: below(4) }, () => row(() => one([word, () => `**${word()}**`, () => `\`${word()} \\| ${word()}\``, () => ""])()))].join("\n");
  };
  const fence = () => {
    const mark = one(["```", "~~~~"]);
    return `${mark}${one(["", "rust", "python", "no-such"])}\n${Array.from({ length: below(5) }, () => one([`let ${word()} = ${word()};`, "", `# ${word()}`, `  - ${word()}`, "``", "$$"])).join("\n")}\n${mark}`;
  };
  const blocks = [
    () => line(), () => line(), () => line(12), () => `${"#".repeat(1 + below(6))} ${line(2).replaceAll("\n", " ")}`, () => `${word()}\n${one(["===", "---"])}`, list, list, table, fence, fence,
    () => "---", () => `> ${indent(`${line(3)}\n\n${one([list, fence, line])()}`, "> ")}`, () => `> ${word()}\n${word()}`, () => `    ${word()}\n    ${word()}`,
    () => `<div>\n${word()}\n</div>`, () => `<!-- ${word()} -->`, () => "$$\nx - y\n$$", () => `${line(3)}\n${list()}`, () => `${line(3)}\n${fence()}`,
  ];
  const parts = Array.from({ length: 4 + below(6) }, () => one(blocks)());
  for (const definition of definitions.splice(0)) parts.splice(1 + below(parts.length), 0, definition);
  return { text: parts.join("\n\n") + one(["", "\n"]), addresses: ADDRESSES };
}

const MARKS = ["\n", "\n", "\n\n", " ", "  ", "    ", "\t", ">", "> ", "- ", "-", "*", "* ", "_", "`", "```", "~~~", "[a]", "[b]: /x", "[a]: <y> 't'", "(", "]", "[", "#", "# ", "|", "|-|-", "| a | b |", ":-:", "$", "$$", "\\[", "\\]", "\\", "<a>", "<div>", "</div>", "<!--", "-->", "a", "b1", "1.", "2) ", "1. ", "=", "===", "---", "~~", "!", "&amp;", "\r\n", "\r", "\0", "https://x.y/z", " www.a.b "];

/** Returns Markdown markers in random order, which reach every rule for incomplete lines. */
export function jumble(seed) {
  const below = random(seed * 104_729 + 1);
  return Array.from({ length: 3 + below(25) }, () => MARKS[below(MARKS.length)]).join("");
}
