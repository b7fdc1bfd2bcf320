// JSON Patch (RFC 6902), as far as the state of a run uses it: add, replace and remove.

/** The document with the operations carried out; the given one stays as it is. Throws for what it cannot do. */
export function patched(document, operations) {
  let result = structuredClone(document);
  for (const { op, path, value } of operations) {
    const keys = path.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    if (keys.length === 0) {
      if (op === "remove") throw new Error("the whole document cannot be removed");
      result = structuredClone(value);
      continue;
    }
    const key = keys.pop();
    const place = keys.reduce((at, part) => at?.[part], result);
    if (place === null || typeof place !== "object") throw new Error(`there is no ${path}`);
    const isList = Array.isArray(place);
    if (op === "add" && isList) place.splice(key === "-" ? place.length : Number(key), 0, structuredClone(value));
    else if (op === "add" || op === "replace") place[isList ? Number(key) : key] = structuredClone(value);
    else if (op === "remove" && isList) place.splice(Number(key), 1);
    else if (op === "remove") delete place[key];
    else throw new Error(`unknown operation ${op}`);
  }
  return result;
}
