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
    trial(root, path, method, told),
    ...body(root, "Body", resolve(root, told.requestBody).content),
    element("h3", null, "Answers"),
    element("table", null, element("tbody", null, ...responses)),
    ...good.flatMap(([status, response]) => body(root, status, resolve(root, response).content)));
}

/** The parts of an address that are named in it or behind it, as fields. */
function field(root, operation, parameter) {
  const schema = resolve(root, parameter.schema);
  const id = `${operation}-${parameter.in}-${parameter.name}`;
  const control = schema.enum
    ? element("select", { id }, ...(parameter.required ? [] : [element("option", { value: "" }, "")]), ...schema.enum.map((value) => element("option", { value }, value)))
    : element("input", { id, autocomplete: "off", ...(parameter.required ? { required: "" } : {}) });
  return { ...parameter, control, shown: element("p", { class: "field" }, element("label", { for: id }, parameter.name), control) };
}

/** Sends an operation to this service, as whoever is signed in here, and shows what came back. */
function trial(root, path, method, told) {
  const name = told.operationId ?? `${method}-${path}`;
  const fields = (told.parameters ?? []).map((parameter) => resolve(root, parameter)).filter(({ in: place }) => place !== "cookie").map((parameter) => field(root, name, parameter));
  const content = resolve(root, told.requestBody).content?.["application/json"];
  const example = content && (content.example ?? resolve(root, content.schema).example ?? {});
  const body = content && element("textarea", { id: `${name}-body`, rows: "6", spellcheck: "false" });
  if (body) body.value = JSON.stringify(example, null, 2);
  const answer = element("div", { class: "answer", role: "status" });
  const send = element("button", { type: "submit" }, "Send");
  const form = element("form", null,
    ...fields.map(({ shown }) => shown),
    body && element("p", { class: "field" }, element("label", { for: body.id }, "Body"), body),
    method === "get" ? null : element("p", null, "This is done for real, as whoever is signed in here."),
    send, answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = (place) => fields.filter((field) => field.in === place && field.control.value !== "").map((field) => [field.name, field.control.value]);
    const at = given("path").reduce((path, [key, value]) => path.replace(`{${key}}`, encodeURIComponent(value)), path);
    const query = new URLSearchParams(given("query")).toString();
    const request = { method: method.toUpperCase(), headers: Object.fromEntries(given("header")), credentials: "same-origin", redirect: "manual" };
    if (body) Object.assign(request, { body: body.value, headers: { ...request.headers, "content-type": "application/json" } });
    send.disabled = true;
    answer.replaceChildren("Waiting …");
    try {
      await show(answer, await fetch(query ? `${at}?${query}` : at, request));
    } catch (error) {
      answer.replaceChildren(`It did not work: ${error.message}`);
    }
    send.disabled = false;
  });
  return element("details", { class: "try" }, element("summary", null, "Try it"), form);
}

/** So much of an answer is shown: who wants more has other tools. */
const SHOWN_MAX = 100_000;

/** Shows the status, the kind and the body of a response; a stream as it comes. */
async function show(answer, response) {
  const kind = response.headers.get("content-type") ?? "";
  const text = element("pre", { tabindex: "0", role: "group", "aria-label": "The answer" });
  const id = response.headers.get("x-request-id");
  answer.replaceChildren(element("p", null, element("code", null, String(response.status)), ` ${kind}${id ? ` · request ${id}` : ""}`), text);
  if (!response.body) return;
  let whole = "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    whole += decoder.decode(part.value, { stream: true });
    text.textContent = whole;
    if (whole.length < SHOWN_MAX) continue;
    await reader.cancel();
    text.textContent = `${whole.slice(0, SHOWN_MAX)}\n… there is more`;
    return;
  }
  if (!kind.includes("json") || kind.includes("ndjson")) return;
  try {
    text.textContent = JSON.stringify(JSON.parse(whole), null, 2);
  } catch {
    // It is shown as it came.
  }
}

/** Returns paragraphs about the other protocols of the service, which have descriptions of their own. */
function beside(root) {
  const code = (text) => element("code", null, text);
  const link = (href, text) => element("a", { href }, text);
  const runs = root.paths?.["/v1/runs"]?.post;
  return [
    element("p", null, code("/mcp"), ": the agent's tools for clients of the ", link("https://modelcontextprotocol.io/specification", "Model Context Protocol"),
      ", over Streamable HTTP; with a token as its bearer token."),
    runs && element("p", null, link(`#${runs.operationId ?? "post-/v1/runs"}`, "/v1/runs"), ": runs of the agent as events in the words of ",
      link("https://docs.ag-ui.com", "AG-UI"), "."),
  ].filter(Boolean);
}

/** The theme that was chosen on the web page, if one was. */
function showTheme() {
  try {
    const theme = JSON.parse(localStorage.getItem("adjutant.theme"));
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Nothing may be stored here: the theme is the system's.
  }
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
    element("p", null, "A field with * is required. The same description for programs (OpenAPI 3.1): ", element("a", { href: "/openapi.json" }, "/openapi.json"), "."),
    ...beside(root),
    ...[...groups].filter(([, group]) => group.all.length).flatMap(([name, group]) => [
      element("h2", null, name),
      group.told ? element("p", null, group.told) : null,
      ...group.all,
    ]).filter(Boolean));
}

showTheme();
draw().catch((error) => {
  document.querySelector("#state").textContent = `The description cannot be shown: ${error.message}`;
});
