// The tools that the person always allows. They are stored by the service, and only an answer to a question adds one.

import { call } from "../api.js";
import { words } from "../format.js";
import { t } from "../words.js";
import { html, say, useEffect, useState } from "./base.js";
import { ProblemCard } from "./problem.js";

export function AllowedTools() {
  const [tools, setTools] = useState([]);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    // Without storage of settings in the service, there are none.
    call("GET", "/v1/settings").then((settings) => setTools(settings.allowed_tools), () => {});
  }, []);
  const askAgain = async (tool) => {
    setProblem(null);
    try {
      // As they are now: another page may have changed them.
      const { allowed_tools: now } = await call("GET", "/v1/settings");
      const settings = await call("PATCH", "/v1/settings", { body: { allowed_tools: now.filter((name) => name !== tool) } });
      setTools(settings.allowed_tools);
      say(t("settings.asks_again", { tool: words(tool) }));
    } catch (error) {
      setProblem(error);
    }
  };
  if (tools.length === 0 && problem === null) return null;
  return html`<section aria-labelledby="settings-allowed">
    <h3 id="settings-allowed">${t("settings.allowed")}</h3>
    <p class="muted">${t("settings.allowed_why")}</p>
    ${problem ? html`<${ProblemCard} problem=${problem} onClose=${() => setProblem(null)} />` : null}
    <ul class="access-list">${tools.map((tool) => html`<li key=${tool} class="access-row">
      <span class="access-words"><span dir="auto" class="access-name">${words(tool)}</span></span>
      <button type="button" class="button" aria-label=${t("settings.ask_again_name", { tool: words(tool) })} onClick=${() => askAgain(tool)}>${t("settings.ask_again")}</button>
    </li>`)}</ul>
  </section>`;
}
