// One job: what it is, how it goes, and what can be done about it.
import { Announcement, Badge, Commands, Copy, Duration, FolderLink, html, Moment, useEffect, useRef, useState, Wide } from "./ui.js";
import { Actions } from "./job-actions.js";
import { isEnded, kindName, reason, shellWord, stateName, used } from "./format.js";
import { Log } from "./job-log.js";
import { JobScalars } from "./scalars.js";
import { Study } from "./study-view.js";
import { useLive, useResource } from "./emulator-requests.js";

export function JobPage({ Frame, collection, id }) {
  const [shown, error, refresh] = useResource(`/vertex_emulator/page/jobs/${collection}/${id}`);
  const status = useLive(refresh, id);
  const title = shown ? shown.job.displayName : "Job";
  useEffect(() => {
    document.title = shown ? `${title} (${stateName(shown.job.state)})` : title;
  }, [shown]);
  return html`<${Frame} status=${status}>
    ${!shown && error && html`<h1>${error.code === 404 ? "No such job" : "The job cannot be loaded"}</h1>
      <p>${error.code === 404 ? "It may have been deleted." : error.message}</p><p><a href="/">All jobs</a></p>`}
    ${shown && error && html`<p class="notice failed" role="alert">Not current: ${error.message}</p>`}
    ${shown && html`<${Job} shown=${shown} title=${title} scalars=${`/vertex_emulator/page/scalars/${collection}/${id}`} />`}
  <//>`;
}

function Job({ shown, title, scalars }) {
  const { job, kind, outputs, parent, replicas, runs, log, study } = shown;
  return html`
    <nav class="crumbs" aria-label="Breadcrumb"><ol>
      <li><a href="/">Jobs</a></li>
      ${parent && html`<li><a href=${`/jobs/${parent.collection}/${parent.id}`}>Tuning job ${parent.id}</a></li>`}
      <li aria-current="page">${parent ? `Trial ${parent.trial}` : title}</li>
    </ol></nav>
    <div class="headline"><div class="what"><h1>${title}</h1><${Badge} state=${job.state} /></div>
      ${!parent && html`<${Actions} job=${job} />`}</div>
    <${StateAnnouncement} state=${job.state} />
    ${job.error && html`<div class="notice failed"><h2>${job.error.code === 1 ? "Cancelled" : "Error"}</h2>
      <p class="text">${reason(job.error.message)}</p><p class="muted">google.rpc code ${job.error.code}</p></div>`}
    <${Facts} job=${job} kind=${kind} place=${shown.place} task=${shown.task} metrics=${shown.metrics} permissions=${shown.permissions} declared=${shown.declared} commands=${shown.commands} />
    ${study ? html`<${Study} study=${study} scalars=${scalars} isOver=${isEnded(job.state)} />` : html`<${JobScalars} path=${scalars} isOver=${isEnded(job.state)} />`}
    ${runs.length > 0 && html`<${Runs} runs=${runs} shown=${lastPart(job.name)} />`}
    ${replicas.length > 0 && html`<${Replicas} replicas=${replicas} />`}
    <${Log} source=${log} trials=${study?.trials} isOver=${isEnded(job.state)} />
    ${outputs.length > 0 && html`<${Outputs} outputs=${outputs} />`}
    <section aria-labelledby="spec-title"><div class="bar"><h2 id="spec-title">Specification</h2>
      <${Copy} text=${() => JSON.stringify(job, null, 2)} what="the job as JSON" /></div>
      <${SpecTree} value=${job} /></section>`;
}

/** Says a state that changes; nothing at first, when the heading says it. */
function StateAnnouncement({ state }) {
  const first = useRef(state);
  return html`<${Announcement} text=${state === first.current ? "" : `The job is now ${stateName(state).toLowerCase()}.`} />`;
}

function Facts({ job, kind, place, task, metrics, permissions, declared, commands }) {
  const labels = Object.entries(job.labels ?? {});
  const measured = Object.entries(metrics);
  return html`<dl class="facts">
    <div><dt>Kind</dt><dd>${kindName(kind)}</dd></div>
    <div><dt>Duration</dt><dd><${Duration} from=${job.startTime} to=${job.endTime} /></dd></div>
    <div><dt>Created</dt><dd><${Moment} at=${job.createTime} /></dd></div>
    <div><dt>Started</dt><dd><${Moment} at=${job.startTime} /></dd></div>
    <div><dt>Ended</dt><dd><${Moment} at=${job.endTime} /></dd></div>
    <div><dt>Project</dt><dd>${place.project}</dd></div>
    <div><dt>Region</dt><dd>${place.region}</dd></div>
    ${task && html`<div class="broad"><dt>Task</dt><dd><a href=${`/jobs/${task.collection}/${task.id}`}>${task.collection}/${task.id}</a></dd></div>`}
    ${task?.model && html`<div class="broad"><dt>Model</dt><dd><code>${task.model}</code></dd></div>`}
    ${measured.length > 0 && html`<div class="broad"><dt>Metrics</dt><dd>${measured.map(([name, value]) => html`<span class="chip">${name} ${rounded(value)}</span> `)}</dd></div>`}
    ${permissions.length > 0 && html`<div class="broad"><dt>Permissions</dt><dd>${permissions.map((each) => html`<span class="chip">${each}</span> `)}</dd></div>`}
    ${labels.length > 0 && html`<div class="broad"><dt>Labels</dt><dd>${labels.map(([name, value]) => html`<span class="chip">${name}=${value}</span> `)}</dd></div>`}
    <div class="broad"><dt>Name</dt><dd><code>${job.name}</code> <${Copy} text=${shellWord(job.name)} what="the name" /></dd></div>
    ${declared && html`<${Declaration} declared=${declared} />`}
    <div class="broad"><dt>In a terminal</dt><dd><${Commands} commands=${commands} /></dd></div>
  </dl>`;
}

/** Where a job was declared at the last update of its stack. */
function Declaration({ declared: { name, place, folder, stack } }) {
  const path = place.startsWith("/") ? place : `${folder}/${place}`;
  return html`<div class="broad"><dt>Declared as</dt><dd><code>${name}</code> of stack <code>${stack}</code>, in <code>${place}</code> <${Copy} text=${shellWord(path)} what="the path of the declaration" />
    <span class="under">As of the last <code>pulumi up</code> in <code>${folder}</code>.</span></dd></div>`;
}

const lastPart = (name) => name.split("/").at(-1);
const rounded = (value) => Number(value.toPrecision(4));
const MAX_METRICS = 6;

/** The newest jobs of the same name, each with what it has measured. */
function Runs({ runs, shown }) {
  const { pathname } = location;
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))].slice(0, MAX_METRICS);
  return html`<section aria-labelledby="runs-title"><h2 id="runs-title">Runs of this name <span class="muted">newest first</span></h2>
    <${Wide} label="Table of runs" stacks><table>
      <thead><tr><th scope="col">Run</th><th scope="col">State</th>${metrics.map((name) => html`<th scope="col" class="number" key=${name}>${name}</th>`)}
        <th scope="col" class="number">Duration</th></tr></thead>
      <tbody>${runs.map((run) => html`<tr key=${run.id} aria-current=${run.id === shown ? "true" : undefined}>
        <th scope="row">${run.id === shown ? html`<${Moment} at=${run.createTime} /> <span class="muted">(this one)</span>`
          : html`<a href=${`${pathname.slice(0, pathname.lastIndexOf("/"))}/${run.id}`}><${Moment} at=${run.createTime} /></a>`}</th>
        <td data-of="State"><${Badge} state=${run.state} /></td>
        ${metrics.map((name) => html`<td class="number" key=${name} data-of=${name}>${name in run.metrics ? rounded(run.metrics[name]) : "–"}</td>`)}
        <td class="number" data-of="Duration"><${Duration} from=${run.startTime} to=${run.endTime} /></td></tr>`)}</tbody>
    </table><//></section>`;
}

function Replicas({ replicas }) {
  const [isOpen, open] = useState(false);
  const shown = isOpen ? replicas : replicas.slice(0, 20);
  return html`<section aria-labelledby="replicas-title"><h2 id="replicas-title">Replicas</h2>
    <${Wide} label="Table of replicas" stacks><table>
      <thead><tr><th scope="col">Replica</th><th scope="col">State</th><th scope="col" class="number">Exit code</th>
        <th scope="col" class="number">Attempt</th><th scope="col">Machine</th><th scope="col">Used</th><th scope="col">Image</th></tr></thead>
      <tbody>${shown.map((replica) => html`<tr key=${replica.task}>
        <th scope="row"><code>${replica.task}</code></th><td data-of="State"><${Badge} state=${replica.state} /></td>
        <td class="number" data-of="Exit code">${replica.exitCode ?? "–"}</td><td class="number" data-of="Attempt">${replica.attempt}</td>
        <td data-of="Machine">${replica.machine}</td><td data-of="Used">${used(replica.used)}</td><td data-of="Image"><code>${replica.image}</code></td></tr>`)}</tbody>
    </table><//>
    ${shown.length < replicas.length && html`<p class="more"><button type="button" onClick=${() => open(true)}>Show all ${replicas.length} replicas</button></p>`}
  </section>`;
}

function Outputs({ outputs }) {
  return html`<section aria-labelledby="outputs-title"><h2 id="outputs-title">Outputs</h2>
    <${Wide} label="Table of outputs" stacks><table>
      <thead><tr><th scope="col">Folder</th><th scope="col">URI</th><th scope="col">On this machine</th></tr></thead>
      <tbody>${outputs.map(({ label, uri, path }) => html`<tr key=${label}>
        <th scope="row">${label.startsWith("AIP_") ? html`<code>${label}</code>` : label}</th>
        <td data-of="URI"><${FolderLink} uri=${uri} /></td>
        <td data-of="Path"><code>${path}</code> <${Copy} text=${shellWord(path)} what=${`the path of ${label}`} /></td></tr>`)}</tbody>
    </table><//></section>`;
}

const OPEN_LEVELS = 2;

/** JSON that opens and closes. */
function SpecTree({ value }) {
  return html`<div class="tree"><${Members} value=${value} level=${0} /></div>`;
}

function Members({ value, level }) {
  return html`<ul>${Object.entries(value).map(([name, member]) => html`<li key=${name}><${Member} name=${name} value=${member} level=${level} /></li>`)}</ul>`;
}

function Member({ name, value, level }) {
  if (value === null || typeof value !== "object") {
    return html`<span class="key">${name}</span>: <span class=${`value ${typeof value}`}>${typeof value === "string" ? value || '""' : String(value)}</span>`;
  }
  const count = Object.keys(value).length;
  const size = Array.isArray(value) ? `[${count}]` : `{${count}}`;
  if (!count) return html`<span class="key">${name}</span>: <span class="value">${Array.isArray(value) ? "[]" : "{}"}</span>`;
  return html`<details open=${level < OPEN_LEVELS}><summary><span class="key">${name}</span> <span class="muted">${size}</span></summary>
    <${Members} value=${value} level=${level + 1} /></details>`;
}
