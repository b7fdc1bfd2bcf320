// Which addresses may be followed.

// Not `obsidian:`: such an address may write into notes, or run a command of a plugin. Those of notes are made by the service.
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** The address of a link that may be followed, or `null`. A relative one would be the page's own, and is none. */
export function linkTarget(address) {
  try {
    const url = new URL(address.trim());
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
