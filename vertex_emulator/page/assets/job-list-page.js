// All jobs, the newest first.
import { Announcement, Badge, Commands, Duration, html, Moment, useEffect, useRef, useState } from "./ui.js";
import { kindName } from "./format.js";
import { ask, useLive } from "./emulator-requests.js";

const GROUPS = [["", "All"], ["active", "Active"], ["succeeded", "Succeeded"], ["failed", "Failed"], ["cancelled", "Cancelled"]];
const IDS_AT_ONCE = 50;
const TYPING_MILLISECONDS = 200;

function parameters(query, more = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, ...more })) if (value) given.set(name, value);
  return given;
}

/** The rows with those of `fresh` in their places, and without the `gone`. */
function merged(rows, fresh, gone) {
  const bySequence = new Map(rows.filter((row) => !gone.has(row.id)).map((row) => [row.sequence, row]));
  for (const row of fresh) bySequence.set(row.sequence, row);
  return [...bySequence.values()].sort((a, b) => b.sequence - a.sequence);
}

function useJobs(query) {
  const [list, setList] = useState({ rows: null, next: null, error: null });
  const asked = useRef(0);
  const work = useRef({ isBusy: false, changed: new Set() }); // one at a time: answers may come in another order
  const latest = useRef(list);
  latest.current = list;

  /** Everything that is shown, again: as many pages as there are, or the first one of a new query. */
  const reload = async (count) => {
    const turn = (asked.current += 1);
    work.current.isBusy = true;
    work.current.changed.clear();
    let rows = [];
    let next = null;
    try {
      do {
        const page = await ask(`/vertex_emulator/page/jobs?${parameters(query, { before: next })}`);
        rows = [...rows, ...page.jobs];
        next = page.next;
      } while (next && rows.length < count);
      if (turn === asked.current) setList({ rows, next, error: null });
    } catch (error) {
      if (turn === asked.current) setList((before) => ({ ...before, error }));
    }
    if (turn !== asked.current) return;
    work.current.isBusy = false;
    update([]);
  };
  const more = async () => {
    const turn = asked.current;
    const page = await ask(`/vertex_emulator/page/jobs?${parameters(query, { before: latest.current.next })}`).catch((error) => ({ error }));
    if (turn !== asked.current) return;
    setList((before) => page.error
      ? { ...before, error: page.error }
      : { rows: merged(before.rows, page.jobs, new Set()), next: page.next, error: null });
  };

  const update = async (ids) => {
    if (!ids) return reload(latest.current.rows?.length ?? 1);
    const turn = asked.current;
    const own = work.current;
    ids.forEach((id) => own.changed.add(id));
    if (own.isBusy) return undefined;
    own.isBusy = true;
    while (own.changed.size) {
      const some = [...own.changed].slice(0, IDS_AT_ONCE);
      some.forEach((id) => own.changed.delete(id));
      const given = parameters(query);
      some.forEach((id) => given.append("id", id));
      const page = await ask(`/vertex_emulator/page/jobs?${given}`).catch(() => null); // the next connection reloads all
      if (turn !== asked.current) return undefined;
      setList((before) => {
        if (!page || !before.rows) return before;
        const oldest = before.next ? before.rows.at(-1).sequence : 0;
        const fresh = page.jobs.filter((row) => row.sequence >= oldest);
        return { ...before, rows: merged(before.rows, fresh, new Set(some)) };
      });
    }
    own.isBusy = false;
    return undefined;
  };

  useEffect(() => {
    const timer = setTimeout(() => reload(1), latest.current.rows ? TYPING_MILLISECONDS : 0);
    return () => clearTimeout(timer);
  }, [query.text, query.state]);
  return [list, more, update];
}

export function JobListPage({ Frame }) {
  const start = new URLSearchParams(location.search);
  const [query, setQuery] = useState({ text: start.get("text") ?? "", state: start.get("state") ?? "" });
  const [list, more, update] = useJobs(query);
  const status = useLive(update);
  const change = (part) => {
    const changed = { ...query, ...part };
    setQuery(changed);
    history.replaceState(null, "", `/?${parameters(changed)}`.replace(/\?$/, ""));
  };
  useEffect(() => {
    document.title = "Jobs – Vertex training on this machine";
  }, []);
  const { rows, next, error } = list;
  const isFiltered = Boolean(query.text || query.state);
  return html`<${Frame} status=${status}>
    <h1>Jobs</h1>
    <${Filters} query=${query} change=${change} />
    ${error && html`<p class="notice failed" role="alert">The list cannot be loaded: ${error.message}</p>`}
    <${Announcement} text=${rows && `${rows.length}${next ? " or more" : ""} ${rows.length === 1 ? "job" : "jobs"}`} />
    ${rows?.length > 0 && html`<${JobTable} rows=${rows} />`}
    ${rows?.length === 0 && !next && html`<${Empty} isFiltered=${isFiltered} clear=${() => change({ text: "", state: "" })} />`}
    ${next && html`<p class="more"><button type="button" onClick=${more}>Show older jobs</button></p>`}
  <//>`;
}

function Filters({ query, change }) {
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label class="search"><span class="for-readers">Search by name or id</span>
      <input type="search" placeholder="Search by name or id" aria-keyshortcuts="/" value=${query.text} onInput=${(event) => change({ text: event.target.value })} />
      <kbd aria-hidden="true">/</kbd>
    </label>
    <fieldset class="choices"><legend class="for-readers">State</legend>
      ${GROUPS.map(([value, label]) => html`<label>
        <input type="radio" name="state" value=${value} checked=${query.state === value} onChange=${() => change({ state: value })} />
        <span>${label}</span></label>`)}
    </fieldset>
  </form>`;
}

function JobTable({ rows }) {
  return html`<table class="jobs">
    <caption class="for-readers">Jobs, the newest first</caption>
    <thead><tr>
      <th scope="col">Job</th><th scope="col">State</th><th scope="col" class="roomy">Trials</th>
      <th scope="col" class="roomy">Created</th><th scope="col" class="roomy number">Duration</th>
    </tr></thead>
    <tbody>${rows.map((row) => html`<${JobRow} key=${row.sequence} row=${row} />`)}</tbody>
  </table>`;
}

function JobRow({ row }) {
  const { trials } = row;
  return html`<tr>
    <th scope="row">
      <a class="name" href=${`/jobs/${row.collection}/${row.id}`}>${row.displayName}</a>
      <span class="under">${kindName(row.kind)} · ${row.project} · ${row.region}</span>
      <span class="under cramped"><${Moment} at=${row.createTime} /> · <${Duration} from=${row.startTime} to=${row.endTime} />${trials && ` · ${trials.ended} of ${trials.most} trials`}</span>
    </th>
    <td><${Badge} state=${row.state} /></td>
    <td class="roomy">${trials ? html`<progress max=${trials.most} value=${trials.ended} aria-label="Trials that have ended"></progress> <span class="number">${trials.ended} / ${trials.most}</span>` : html`<span class="muted">–</span>`}</td>
    <td class="roomy"><${Moment} at=${row.createTime} /></td>
    <td class="roomy number"><${Duration} from=${row.startTime} to=${row.endTime} /></td>
  </tr>`;
}

const COMMANDS = [
  { purpose: "what a project declares", command: "pulumi up --stack local" },
  { purpose: "one declared job, by its name", command: "vertex-training run NAME" },
  { purpose: "a script or a test suite that uses Google’s clients", command: "vertex-emulator exec -- python train.py" },
];

function Empty({ isFiltered, clear }) {
  if (isFiltered) return html`<div class="empty"><p>No job matches the search.</p><p><button type="button" onClick=${clear}>Show all jobs</button></p></div>`;
  return html`<div class="empty"><p>No jobs yet. Run one, and it appears here at once:</p>
    <${Commands} commands=${COMMANDS} />
    <p>Or send it with a client of the API at <code>${location.origin}</code>.</p></div>`;
}
