// What the page says in an answer by itself.

export const WORDS = {
  code: "Code",
  copy: "Copy",
  copyCode: "Copy code",
  copied: "Copied",
  notCopied: "Not copied",
  table: "Table",
  equation: "Equation",
  taskDone: "done:",
  taskOpen: "not done:",
};
