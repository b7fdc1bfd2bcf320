// State of the service, for operators: turns, errors, cost, users, pending confirmations, servers.

import { cost, count, moment, when } from "../format.js";
import { filterOperation, loadList, loadOperation, lookAtTurn, showOperation } from "../operation.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect } from "./base.js";
import { OperationTurn } from "./operation-turn.js";
import { ProblemCard } from "./problem.js";
import { modelName, mood, outcomeName } from "../outcomes.js";

const VIEWS = ["overview", "turns", "questions", "people"];

export function Operation() {
  const { operation } = state;
  useEffect(() => {
    loadOperation();
  }, []);
  if (operation.turn) return html`<${OperationTurn} turn=${operation.turn} problem=${operation.problem} />`;
  const { view, problem, loaded } = operation;
  return html`<div class="operation">
    <div class="views" role="group" aria-label=${t("operation.views")}>
      ${VIEWS.map((id) => html`<button type="button" class="text-button" aria-pressed=${view === id} onClick=${() => showOperation(id)}>${t(`operation.${id}`)}</button>`)}
      <button type="button" class="text-button" onClick=${loadOperation}>${t("operation.reload")}</button>
    </div>
    ${problem ? html`<${ProblemCard} problem=${problem} onRetry=${loadOperation} />` : null}
    ${!loaded && !problem ? html`<p class="muted pad" role="status">${t("page.loading")}</p>` : null}
    ${view === "overview" ? html`<${Overview} overview=${operation.overview} />` : html`<${List} operation=${operation} />`}
  </div>`;
}

/** Money of which a part may be unknown. */
function money({ cost_usd: known, cost_unknown: unknown }) {
  if (!unknown) return cost(known);
  return known > 0 ? t("cost.at_least", { cost: cost(known) }) : cost(null);
}

function Overview({ overview }) {
  if (!overview) return null;
  const { day } = overview;
  const facts = [
    [count(day.turns), t("trace.turns", { count: day.turns })],
    [count(day.failed), t("operation.failed")],
    [`${count(day.input_tokens)} / ${count(day.output_tokens)}`, t("operation.tokens")],
    [money(day), t("trace.cost")],
    [count(overview.waiting_long), t("operation.waiting_long")],
  ];
  return html`<div>
    <h2 class="group">${t("trace.last_hours", { hours: 24 })}</h2>
    <dl class="totals" aria-label=${t("operation.day")}>${facts.map(([value, name]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${overview.is_cut ? html`<p class="muted pad">${t("operation.cut")}</p>` : null}
    <${Groups} name=${t("operation.errors")} head=${t("operation.error")} groups=${overview.errors} nothing=${t("operation.no_errors")} />
    <${Groups} name=${t("operation.models")} head=${t("trace.fact.model")} groups=${overview.models} />
    <${Groups} name=${t("operation.days")} head=${t("operation.date")} groups=${overview.days} />
    <${Budgets} budgets=${overview.budgets} />
    <${Servers} servers=${overview.servers} />
    <section>
      <h2 class="group">${t("operation.processes")}</h2>
      <dl class="facts-list is-padded">
        <div><dt>${t("operation.program")}</dt><dd>${overview.version}, ${t("operation.schema", { version: overview.schema_version })}</dd></div>
        <div><dt>${t("trace.fact.model")}</dt><dd dir="auto">${overview.model}</dd></div>
        <div><dt>${t("operation.work")}</dt><dd>${t("operation.work_of", { unsettled: overview.unsettled, waiting: overview.waiting })}</dd></div>
        ${overview.workers.map((worker) => html`<div><dt>${t("operation.process")}</dt><dd title=${worker.id}>${processName(worker.id)}</dd></div>`)}
      </dl>
    </section>
  </div>`;
}

/** Returns a process as the operator's own tools name it: by its number. */
function processName(id) {
  const pid = /^pid-(\d+)-/.exec(id)?.[1];
  return pid === undefined ? id : t("operation.pid", { pid });
}

function Groups({ name, head, groups, nothing }) {
  if (groups.length === 0) return nothing ? html`<section><h2 class="group">${name}</h2><p class="muted is-padded">${nothing}</p></section>` : null;
  return html`<section>
    <h2 class="group">${name}</h2>
    <div class="wide-table" tabindex="0" role="region" aria-label=${name}><table>
      <thead><tr><th scope="col">${head}</th><th scope="col">${t("operation.turns")}</th><th scope="col">${t("operation.failed")}</th><th scope="col">${t("operation.tokens")}</th><th scope="col">${t("trace.cost")}</th></tr></thead>
      <tbody>${groups.map((group) => html`<tr>
        <th scope="row" dir="auto">${modelName(group.group) || t("trace.running")}</th><td>${count(group.turns)}</td><td>${count(group.failed)}</td>
        <td>${count(group.input_tokens)} / ${count(group.output_tokens)}</td><td>${money(group)}</td>
      </tr>`)}</tbody>
    </table></div>
  </section>`;
}

function Budgets({ budgets }) {
  if (budgets.length === 0) return null;
  const shown = (quantity, amount) => (quantity === "usd" ? cost(amount) : count(Math.round(amount)));
  return html`<section>
    <h2 class="group">${t("operation.budgets")}</h2>
    <ul class="meters">${budgets.map(({ quantity, spent, limit }) => {
      const words = t("operation.spent", { spent: shown(quantity, spent), limit: shown(quantity, limit) });
      return html`<li><span>${t(`operation.quantity.${quantity}`)}</span>
        <meter min="0" max=${limit} high=${limit * 0.8} value=${Math.min(spent, limit)} aria-label=${t(`operation.quantity.${quantity}`)}>${words}</meter>
        <span class="muted">${words}</span></li>`;
    })}</ul>
  </section>`;
}

const SERVER_MOODS = { connected: "good", starting: "wait", restarting: "wait", failed: "bad" };

function Servers({ servers }) {
  if (servers.length === 0) return null;
  return html`<section>
    <h2 class="group">${t("operation.servers")}</h2>
    <ul class="decisions">${servers.map((server) => html`<li class="is-padded">
      <span class="decision-head"><span class="decision-words" dir="auto">${server.name}</span><span class=${classes("outcome", `is-${SERVER_MOODS[server.state] ?? "plain"}`)}>${t(`operation.server.${server.state}`)}</span></span>
      <span class="decision-facts"><span>${t("operation.tools", { count: server.tools })}</span>${server.changed ? html`<span>${t("operation.changed", { count: server.changed })}</span>` : null}${server.software ? html`<span dir="auto">${server.software}</span>` : null}</span>
      ${server.reason ? html`<p class="wrong" dir="auto">${server.reason}</p>` : null}
    </li>`)}</ul>
  </section>`;
}

function List({ operation }) {
  const { view, list, next, loaded, problem } = operation;
  const Row = { turns: Turn, questions: Question, people: Person }[view];
  return html`<div>
    ${view === "questions" ? html`<p class="muted is-padded">${t("operation.questions_why")}</p>` : html`<${Filters} operation=${operation} />`}
    ${loaded && list.length === 0 && !problem ? html`<div class="nothing"><p>${t(`operation.nothing.${view}`)}</p></div>` : null}
    <ul class="decisions">${list.map((row) => html`<${Row} key=${row.id ?? row.thread_id ?? row.user} row=${row} />`)}</ul>
    ${next ? html`<button type="button" class="text-button pad" onClick=${() => loadList({ more: true })}>${t("common.more")}</button>` : null}
  </div>`;
}

function Filters({ operation: { view, filter } }) {
  const choose = (name) => (event) => filterOperation({ [name]: event.target.value });
  const find = (event) => {
    event.preventDefault();
    filterOperation({ request: new FormData(event.target).get("request").trim() });
  };
  return html`<div class="filters">
      ${view === "turns"
        ? html`<select aria-label=${t("operation.which")} value=${filter.which} onChange=${choose("which")}>
            <option value="failed">${t("operation.only_failed")}</option><option value="all">${t("operation.all_turns")}</option>
          </select>`
        : null}
      <select aria-label=${t("trace.since")} value=${filter.days} onChange=${choose("days")}>
        <option value="1">${t("trace.last_hours", { hours: 24 })}</option><option value="7">${t("trace.last_days", { days: 7 })}</option><option value="30">${t("trace.last_days", { days: 30 })}</option>
      </select>
    </div>
    ${view === "turns"
      ? html`<form class="find" onSubmit=${find}>
          <label class="only-heard" for="request">${t("operation.request")}</label>
          <input id="request" name="request" maxlength="200" autocomplete="off" spellcheck="false" placeholder=${t("operation.request")} value=${filter.request} />
          <button type="submit" class="button is-plain">${t("operation.find")}</button>
        </form>`
      : null}`;
}

function Turn({ row }) {
  return html`<li><button type="button" onClick=${() => lookAtTurn(row.id, row.user)}>
    <span class="decision-head"><span class="decision-words" dir="auto">${row.user}</span><time datetime=${row.started_at} title=${moment(row.started_at)}>${when(row.started_at)}</time></span>
    <span class="decision-facts">
      <span class=${classes("outcome", `is-${mood(row.outcome)}`)}>${outcomeName(row.outcome)}</span>
      ${row.error_code ? html`<code>${row.error_code}</code>` : null}<span dir="auto">${modelName(row.usage.model)}</span>
    </span>
  </button></li>`;
}

function Question({ row }) {
  const facts = html`<span class="decision-head"><span class="decision-words" dir="auto">${row.user}</span><time datetime=${row.since} title=${moment(row.since)}>${when(row.since)}</time></span>
    <span class="decision-facts"><span>${t("operation.calls", { count: row.calls })}</span>${row.expires_at ? html`<span>${t("operation.expires", { when: moment(row.expires_at) })}</span>` : null}</span>`;
  return html`<li>${row.run_id ? html`<button type="button" onClick=${() => lookAtTurn(row.run_id, row.user)}>${facts}</button>` : html`<div class="is-padded">${facts}</div>`}</li>`;
}

function Person({ row }) {
  return html`<li class="is-padded">
    <span class="decision-head"><span class="decision-words" dir="auto">${row.user}</span>${row.last_seen ? html`<time datetime=${row.last_seen} title=${moment(row.last_seen)}>${when(row.last_seen)}</time>` : null}</span>
    <span class="decision-facts">
      <span>${count(row.turns)} ${t("trace.turns", { count: row.turns })}</span>
      ${row.failed ? html`<span class="outcome is-bad">${count(row.failed)} ${t("operation.failed")}</span>` : null}
      <span>${money(row)}</span>
      <span>${t("operation.has", { conversations: row.conversations, tasks: row.tasks, tokens: row.access_tokens })}</span>
    </span>
  </li>`;
}
