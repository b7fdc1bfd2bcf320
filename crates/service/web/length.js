// Lengths of a text: in characters, and in the tokens that a model reads. Pure.

/** Bytes of UTF-8 that count as one token, as the service estimates it. */
const BYTES_OF_TOKEN = 4;

/** Returns the characters (Unicode scalar values) of a text, and an estimate of its tokens; of at most the first `max` characters. */
export function measured(text, max = Infinity) {
  let [characters, bytes] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const isPair = code >= 0xd800 && code < 0xdc00 && at + 1 < text.length;
    characters += 1;
    if (characters <= max) bytes += isPair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    if (isPair) at += 1;
  }
  return { characters, tokens: Math.ceil(bytes / BYTES_OF_TOKEN) };
}
