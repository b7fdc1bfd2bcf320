// Markdown extensions that CommonMark does not specify, with the expected results.

/** GitHub's tables and strikethrough; the expected HTML comes from GitHub's own parser. */
export const GITHUB = [
  "| a | b |\n|---|---|\n| 1 | 2 |\n",
  "| l | c | r | n |\n|:--|:-:|--:|---|\n| 1 | 2 | 3 | 4 |\n",
  "a | b\n-|-\n1 | 2\n",
  "| a |\n|---|\n",
  "| a | b |\n|---|---|\n| only one |\n| one | two | three |\n",
  "| a | b |\n|---|---|\n| x \\| y | `p \\| q` |\n",
  "| **a** | [b](https://example.com/) |\n|---|---|\n| ~~c~~ | `d` |\n> quoted\n",
  "| a | b |\n|---|\n| 1 | 2 |\n",
  "| a | b |\n|---|---|\n| 1 | 2 |\nbehind it\n\nbeyond\n",
  "- item\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |\n",
  "> | a | b |\n> |---|---|\n> | 1 | 2 |\n",
  "~~gone~~ and `~~not~~`",
  "~~gone **strong** gone~~",
  "~~over\n\nthe end~~",
  "file_name and ~~other_name~~, 5*3 and 4*2",
];

/** Task lists: the text, and for each item whether it is a task that is done. */
export const TASKS = [
  ["- [ ] open\n- [x] done\n- [X] done too\n", [false, true, true]],
  ["1. [ ] one\n2. two\n", [false, null]],
  ["- [ ] loose\n\n- [x] done\n", [false, true]],
  ["- [ ] a\n  - [x] b\n", [false, true]],
  ["- [ ]\n- [x]no\n- \\[ ] no\n- [y] no\n- text [ ] no\n", [null, null, null, null, null]],
];

/** Bare addresses: the text, and the targets of its links. */
export const ADDRESSES = [
  ["see https://example.com/x now", ["https://example.com/x"]],
  ["https://example.com/auto[^1]. And https://example.com/b[^2]", ["https://example.com/auto", "https://example.com/b"]],
  ["https://example.com/a_(b)_c, and (https://example.com/d).", ["https://example.com/a_(b)_c", "https://example.com/d"]],
  ["**https://example.com/a** and ~~https://example.com/b~~", ["https://example.com/a", "https://example.com/b"]],
  ["www.example.com/path?x=1&y=2!", ["http://www.example.com/path?x=1&y=2"]],
  ["\"https://example.com/quoted\" 'https://example.com/once'", ["https://example.com/quoted", "https://example.com/once"]],
  ["ana@example.com and mailto:bo@example.com", ["mailto:ana@example.com", "mailto:bo@example.com"]],
  ["http://localhost:8080/v1 http://[::1]:80/ http://127.0.0.1/", ["http://localhost:8080/v1", "http://[::1]/", "http://127.0.0.1/"]],
  ["| a |\n|---|\n| https://example.com/cell |\n", ["https://example.com/cell"]],
  ["https://example.com/ends…", ["https://example.com/ends"]],
  ["README.md, main.rs, a.py, example.com, e.g. this, //example.com/x, ftp://example.com/", []],
  ["`https://example.com/` [https://example.com/a](https://example.com/b)", ["https://example.com/b"]],
  ["javascript://example.com/%0aalert(1) data://x file:///etc/passwd www. www.a http:// https://", []],
  ["obsidian://open?vault=Notes <obsidian://open?vault=Notes> [a](obsidian://advanced-uri?commandid=x)", []],
];

/** Equations: the text, and the source of each equation. */
export const EQUATIONS = [
  ["$x$ and $e^{i\\pi}$", ["x", "e^{i\\pi}"]],
  ["\\(a + b\\) and \\[c = d\\] and \\(x\\)", ["a + b", "c = d", "x"]],
  ["\\[1\\] and \\[x\\] and \\[not a link\\](y) and \\(optional\\)", []],
  ["$$x = 1$$", ["x = 1"]],
  ["$$\na - b\n- c\n= d\n$$\n", ["a - b\n- c\n= d"]],
  ["\\[\n\\frac{1}{2}\n\\]\n", ["\\frac{1}{2}"]],
  ["- item\n\n  $$\n  x\n  $$\n", ["x"]],
  ["($x$), **$y$**, $z$.", ["x", "y", "z"]],
  ["$PATH and $HOME", []],
  ["$PATH:$HOME:$USER and \"$HOME/$FILE\"", []],
  ["$PATH:$HOME/bin:$ and ${A} + ${B}$", []],
  ["$i++ and $j++, $_GET['a'] and $_POST['b'], $(pwd) and $(ls)", []],
  ["$5 and $10, or 5$ and 10$", []],
  ["It costs $5, not 5$.", []],
  ["US$5 is 4$", []],
  ["`$x$` and \\$x\\$", []],
  ["$ x $ and $$ and $$$$ and $$$", []],
  ["$x", []],
  ["$$\nnever closed\n\nmore", []],
  ["```sh\necho $A$B\n```\n", []],
  ["\\(never closed", []],
];

/** Texts, each with a part of the HTML that the page must draw. */
export const NODES = [
  ["plain words", "<p dir=\"auto\">plain words</p>"],
  ["### Third\n", "<h3 class=\"md-h3\" dir=\"auto\">Third</h3>"],
  ["```js\nnever closed", "never closed"],
  ["```c&#43;&#43; x\nint a;\n```\n", "<span>c++</span>"],
  ["[link](https://example.com/ \"T\")", "title=\"T\nhttps://example.com/\""],
  ["[link](https://example.com/)", "rel=\"noopener noreferrer nofollow\""],
  ["[bad](javascript:alert(1))", "<span class=\"md-no-link\" title=\"javascript:alert(1)\">bad</span>"],
  ["![cat](https://example.com/cat.png)", "<a class=\"md-image\" href=\"https://example.com/cat.png\""],
  ["[![cat](https://example.com/cat.png)](https://example.com/)", "<span class=\"md-image\">🖼 cat</span></a>"],
  ["a <b>raw</b> tag", "a &lt;b&gt;raw&lt;/b&gt; tag"],
  ["שלום עולם", "<p dir=\"auto\">שלום עולם</p>"],
  ["2 * 3 * 4 < 5 & 6 &amp; 7", "2 * 3 * 4 &lt; 5 &amp; 6 &amp; 7"],
];

/** An answer with all elements, including some that are wider than a phone. */
export const EVERYTHING = [
  "# First\n\n## Second\n\n### Third\n\n#### Fourth\n\nText with `created_at`, **strong**, *soft*, ~~gone~~, [a link](https://example.com/ \"T\"), [a file](src/main.rs), https://example.com/bare and ![a cat](https://example.com/cat.png).",
  `A ${"long".repeat(80)} word, https://example.com/${"path/".repeat(60)} and \`${"code".repeat(60)}\`.`,
  "1. one\n   - nested\n     - deeper\n\n       with a paragraph\n2. two\n\n- [ ] open\n- [x] done\n\n> quoted\n> > twice\n\n---",
  `| ${"head | ".repeat(12)}\n|${":--|--:|:-:|---|".repeat(3)}\n| ${"a cell of several words | ".repeat(12)}`,
  `${"> ".repeat(20)}deep\n\n${"- ".repeat(20)}deep`,
  `\`\`\`rust\n#[derive(Debug)]\n/// ${"A comment. ".repeat(20)}\nfn main() -> Result<(), Error> { let n: u64 = 0x1f; println!("{n}"); loop { break 'a'; } }\n\`\`\``,
  "```diff\n- old\n+ new\n@@ -1 +1 @@\n```\n\n```html\n<a href=\"x\" class='y'>&amp; text</a><!-- no --><script>let a = /x+/g;</script>\n```\n\n```yaml\nkey: [1, true, \"two\"] # said\n```\n\n```markdown\n# Title\n- *soft* **strong** [a](b)\n> quote\n```\n\n```css\n#id .class:hover[a=b] { color: red !important; }\n```\n\n```python\n@property\ndef f(self, x=None): return f\"{x!r}\" % 3.14\n```\n\n```\nno language\n```",
  "Inline $x^2$ and:\n\n$$\n\\sum_{i=0}^{n} \\begin{pmatrix} a_{11} & a_{12} & a_{13} & a_{14} & a_{15} & a_{16} & a_{17} & a_{18} & a_{19} & a_{20} \\end{pmatrix} = \\frac{\\sqrt{b}}{c}\n$$",
  "<div class=\"raw\">raw</div>",
].join("\n\n");
