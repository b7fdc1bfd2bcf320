// A link to a note: one that opens Obsidian if the vault has the note, else its text as written.

import { addressOf } from "../notes.js";
import { h, useEffect, useState } from "../parts/base.js";

export function NoteLink({ link, shown, source }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let isWanted = true;
    addressOf(link).then((address) => isWanted && setFound({ link, address }));
    return () => (isWanted = false);
  }, [link]);
  if (found?.link !== link || found.address === null) return source;
  // No other window: a program is opened, and the page stays.
  return h("a", { class: "md-note", href: found.address, rel: "noopener noreferrer nofollow", title: link }, shown);
}
