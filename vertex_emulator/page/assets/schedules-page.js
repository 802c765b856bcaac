// The schedules, their next times, and their last runs with links to the jobs.
import { Badge, FolderLink, html, Moment, useEffect, useState, Wide } from "./ui.js";
import { ask, useLive, useResource } from "./emulator-requests.js";

const PATH = "/vertex_emulator/schedules";
const RUNS_AT_ONCE = 5;
const AGAIN_MILLISECONDS = 15_000; // skipped runs and edits change no job, of which the emulator would tell

function idOf(name) {
  return name.split("/").at(-1);
}

export function SchedulesPage({ Frame }) {
  const [data, error, refresh] = useResource(PATH);
  const status = useLive(refresh);
  useEffect(() => {
    document.title = "Schedules – Vertex training on this machine";
    const timer = setInterval(() => document.hidden || refresh(), AGAIN_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
  return html`<${Frame} status=${status}>
    <h1>Schedules</h1>
    ${error && html`<p class="notice failed" role="alert">${error.message}</p>`}
    ${data?.schedules.map((schedule) => html`<${Schedule} key=${schedule.name} schedule=${schedule} refresh=${refresh} />`)}
    ${data?.schedules.length === 0 && html`<div class="empty"><p>No schedules yet.</p>
      <p>Declare one under <code>schedules</code> in a stack, and create it with <code>make up</code>.</p></div>`}
  <//>`;
}

function Schedule({ schedule, refresh }) {
  const { name, cron, timeZone, paused, overlap, jobs, nextTimes, runs } = schedule;
  const id = idOf(name);
  return html`<section aria-label=${id}>
    <div class="headline"><div class="what"><h2>${id}</h2>${paused && html`<span class="badge">Paused</span>`}</div>
      <${Actions} schedule=${schedule} id=${id} refresh=${refresh} /></div>
    <p class="under">${name}</p>
    <dl class="facts">
      <div><dt>Times</dt><dd><code>${cron}</code> ${timeZone}</dd></div>
      <div><dt>Next</dt><dd>${nextTimes.length ? nextTimes.map((at) => html`<div><${Moment} at=${at} /></div>`) : html`<span class="muted">–</span>`}</dd></div>
      <div><dt>Jobs, one after another</dt><dd>${jobs.map((job) => job.name).join(", ")}</dd></div>
      <div><dt>If the last run goes on</dt><dd>${overlap === "skip" ? "skip the new one" : "run both"}</dd></div>
    </dl>
    ${runs.length > 0 && html`<${Runs} id=${id} runs=${runs} />`}
  </section>`;
}

function Runs({ id, runs }) {
  const [isAll, showAll] = useState(false);
  const shown = isAll ? runs : runs.slice(0, RUNS_AT_ONCE);
  return html`<${Wide} label=${`Runs of ${id}`} stacks><table>
    <thead><tr><th scope="col">Run</th><th scope="col">State</th><th scope="col">Jobs</th><th scope="col">Models</th></tr></thead>
    <tbody>${shown.map((run) => html`<${Run} key=${run.runId} run=${run} />`)}</tbody>
  </table><//>
  ${runs.length > shown.length && html`<p class="more"><button type="button" onClick=${() => showAll(true)}>Show older runs</button></p>`}`;
}

function Run({ run }) {
  const jobs = Object.entries(run.jobs);
  const folders = Object.values(run.modelDirs);
  return html`<tr>
    <th scope="row"><${Moment} at=${run.scheduleTime} /><span class="under">${run.runId}</span></th>
    <td data-of="State"><${Badge} state=${run.state} />${run.reason && html`<span class="under reason">${run.reason}</span>`}</td>
    <td data-of="Jobs">${jobs.map(([name, job]) => html`<div><a href=${`/jobs/${job.split("/").slice(-2).join("/")}`}>${name}</a></div>`)}</td>
    <td data-of="Models">${folders.map((uri) => html`<div><${FolderLink} uri=${uri} /></div>`)}</td>
  </tr>`;
}

function Actions({ schedule, id, refresh }) {
  const [failure, setFailure] = useState("");
  const act = async (action) => {
    setFailure("");
    await ask(`/vertex_emulator/${schedule.name.split("/").map(encodeURIComponent).join("/")}:${action}`, { method: "POST" }).catch((error) => setFailure(error.message));
    refresh();
  };
  const pausing = schedule.paused ? "resume" : "pause";
  return html`<div class="controls">
    ${failure && html`<span role="alert">${failure}</span>`}
    <button type="button" aria-label=${`Run ${id} now`} onClick=${() => act("fire")}>Run now</button>
    <button type="button" aria-label=${`${pausing} ${id}`} onClick=${() => act(pausing)}>${schedule.paused ? "Resume" : "Pause"}</button>
  </div>`;
}
