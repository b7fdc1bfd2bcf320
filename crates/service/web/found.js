// The words of a search, marked where they stand in the conversation that was opened from its results. Nothing of the page
// is changed for it: the browser paints them (CSS Custom Highlight API), or, where it cannot, they are not marked.

const NAME = "found";
/** Of a word, this much is looked for at the beginning of others: the search finds its other forms too. */
const stemOf = (word) => word.slice(0, Math.max(3, word.length - 2));

/** Marks the words of a search in an element, instead of those that were marked before. */
export function markWords(element, search) {
  unmark();
  const stems = (search.match(/[\p{L}\p{N}]{2,}/gu) ?? []).map(stemOf);
  if (!globalThis.Highlight || stems.length === 0) return;
  const word = new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join("|")})[\\p{L}\\p{N}]*`, "giu");
  const ranges = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const { index, 0: text } of texts.currentNode.data.matchAll(word)) {
      const range = new Range();
      range.setStart(texts.currentNode, index);
      range.setEnd(texts.currentNode, index + text.length);
      ranges.push(range);
    }
  }
  if (ranges.length > 0) CSS.highlights.set(NAME, new Highlight(...ranges));
}

/** Marks nothing any more. */
export const unmark = () => globalThis.CSS?.highlights?.delete(NAME);
