// Draws /openapi.json. Everything is put in as text: nothing of the description can become markup.

/** An element with attributes and children; strings become text. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) made.setAttribute(key, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

/** Text in which `…` is code. */
function words(text) {
  return (text ?? "").split("`").map((part, at) => (at % 2 ? element("code", null, part) : part));
}

/** The first sentence. */
function beginning(text) {
  return (text ?? "").split("\n\n")[0].replaceAll("\n", " ").split(/(?<=\.) /)[0];
}

/** What a reference leads to. */
function resolve(root, value) {
  if (!value?.$ref) return value ?? {};
  return value.$ref.replace("#/", "").split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/")], root) ?? {};
}

/** A schema in one line: what kind of value it is. */
function kind(root, schema, depth = 0) {
  if (schema === true || !schema) return "any";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices.map((one) => kind(root, one, depth)).join(" | ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const types = [schema.type ?? "any"].flat().map((type) => {
    if (type === "array") return `${kind(root, schema.items, depth + 1)}[]`;
    return schema.format && type !== "null" ? `${type} (${schema.format})` : type;
  });
  return types.join(" | ");
}

/** The fields of a schema as a table; follows references, each once. */
function fields(root, schema, seen = new Set()) {
  const name = schema?.$ref;
  if (name && seen.has(name)) return null;
  if (name) seen.add(name);
  const whole = resolve(root, schema);
  if (whole.type === "array") return fields(root, whole.items, seen);
  for (const part of whole.allOf ?? []) Object.assign(whole, { properties: { ...whole.properties, ...resolve(root, part).properties } });
  const choices = whole.oneOf ?? whole.anyOf;
  if (!whole.properties && choices) return element("div", null, ...choices.map((one) => fields(root, one, seen)));
  if (!whole.properties) return null;
  const rows = Object.entries(whole.properties).map(([key, value]) =>
    element("tr", null,
      element("td", null, element("code", null, key), whole.required?.includes(key) ? " *" : ""),
      element("td", null, element("code", null, kind(root, value))),
      element("td", null, ...words(value.description))));
  const inner = Object.values(whole.properties).map((value) => {
    const target = value.$ref ? value : value.items?.$ref ? value.items : (value.oneOf ?? []).find((one) => one.$ref);
    const table = target && fields(root, target, seen);
    return table && element("div", null, element("h4", null, target.$ref.split("/").pop()), table);
  });
  return element("div", null, element("table", null, element("tbody", null, ...rows)), ...inner);
}

function body(root, title, content) {
  return Object.entries(content ?? {}).map(([type, { schema, example }]) => {
    const shown = example ?? resolve(root, schema).example ?? resolve(root, schema).examples?.[0];
    return element("div", null,
      element("h3", null, `${title}: `, element("code", null, type)),
      fields(root, schema),
      shown === undefined ? null : element("pre", null, JSON.stringify(shown, null, 2)));
  });
}

function operation(root, path, method, told) {
  const open = told.security && told.security.every((one) => Object.keys(one).length === 0);
  const parameters = (told.parameters ?? []).map((parameter) => resolve(root, parameter)).map((parameter) =>
    element("tr", null,
      element("td", null, element("code", null, parameter.name), parameter.required ? " *" : ""),
      element("td", null, `${parameter.in}, ${kind(root, parameter.schema)}`),
      element("td", null, ...words(parameter.description))));
  const responses = Object.entries(told.responses ?? {}).map(([status, response]) => {
    const whole = resolve(root, response);
    return element("tr", null,
      element("td", null, element("code", null, status)),
      element("td", null, Object.keys(whole.content ?? {}).join(", ")),
      element("td", null, ...words(whole.description)));
  });
  const good = Object.entries(told.responses ?? {}).filter(([status]) => status.startsWith("2"));
  return element("details", { id: told.operationId ?? `${method}-${path}` },
    element("summary", null,
      element("code", { class: "method" }, method.toUpperCase()), element("code", null, path), " ",
      element("span", { class: "what" }, ...words(beginning(told.summary ?? told.description)))),
    element("p", null, ...words([told.summary, told.description].filter(Boolean).join(" "))),
    open ? element("p", null, "Open to everybody who reaches the service.") : null,
    parameters.length ? element("table", null, element("tbody", null, ...parameters)) : null,
    ...body(root, "Body", resolve(root, told.requestBody).content),
    element("h3", null, "Answers"),
    element("table", null, element("tbody", null, ...responses)),
    ...good.flatMap(([status, response]) => body(root, status, resolve(root, response).content)));
}

async function draw() {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error(`/openapi.json answered with ${answer.status}`);
  const root = await answer.json();
  const groups = new Map((root.tags ?? []).map((tag) => [tag.name, { told: tag.description, all: [] }]));
  for (const [path, item] of Object.entries(root.paths ?? {})) {
    for (const [method, told] of Object.entries(item)) {
      if (!told?.responses) continue;
      const name = told.tags?.[0] ?? "more";
      if (!groups.has(name)) groups.set(name, { all: [] });
      groups.get(name).all.push(operation(root, path, method, told));
    }
  }
  const main = document.querySelector("main");
  main.replaceChildren(
    element("h1", null, root.info.title),
    element("p", null, ...words(root.info.description)),
    element("p", null, "A field with * is needed. The machine's version: ", element("a", { href: "/openapi.json" }, "/openapi.json"), "."),
    ...[...groups].filter(([, group]) => group.all.length).flatMap(([name, group]) => [
      element("h2", null, name),
      group.told ? element("p", null, group.told) : null,
      ...group.all,
    ]).filter(Boolean));
}

draw().catch((error) => {
  document.querySelector("#state").textContent = `The description cannot be shown: ${error.message}`;
});
