// The experiments; and one of them: its runs in a table that its headings sort, those that the reader compares, and their curves.
import { Badge, Commands, html, Moment, useEffect, useMemo, useRef, useState, Wide } from "./ui.js";
import { lineColour, MOST_LINE_COLOURS, useScheme } from "./colours.js";
import { ScalarChart } from "./scalar-chart.js";
import { Heading, sorted } from "./trials-table.js";
import { useResource, useLive } from "./emulator-requests.js";
import { value } from "./format.js";

const PATH = "/vertex_emulator/page";
const ROWS = 200; // more are drawn when they are asked for
const AGAIN_MILLISECONDS = 5000; // what programs record changes no job, of which the emulator would tell
const HEIGHT = 200;
const KINDS = [["params", "parameter"], ["metrics", "metric"], ["series", "last value"]];

/** A resource that is asked for again and again: `[data, error, refresh]`. Equal answers are one object, so that nothing is drawn anew for them. */
function useFresh(path) {
  const [latest, error, refresh] = useResource(path);
  const kept = useRef({ text: "", data: null });
  const data = useMemo(() => {
    const text = JSON.stringify(latest);
    if (text !== kept.current.text) kept.current = { text, data: latest };
    return kept.current.data;
  }, [latest]);
  useEffect(() => {
    refresh();
    const timer = setInterval(() => document.hidden || refresh(), AGAIN_MILLISECONDS);
    return () => clearInterval(timer);
  }, [path]);
  return [data, error, refresh];
}

function pathOf(name) {
  return name.split("/").map(encodeURIComponent).join("/");
}

export function ExperimentsPage({ Frame }) {
  const [data, error, refresh] = useFresh(`${PATH}/experiments`);
  const status = useLive(refresh);
  useEffect(() => {
    document.title = "Experiments – Vertex training on this machine";
  }, []);
  return html`<${Frame} status=${status}>
    <h1>Experiments</h1>
    ${error && html`<p class="notice failed" role="alert">${error.message}</p>`}
    ${data?.experiments.length > 0 && html`<${Wide} label="Experiments" stacks><table>
      <thead><tr><th scope="col">Experiment</th><th scope="col" class="number">Runs</th><th scope="col">Created</th></tr></thead>
      <tbody>${data.experiments.map(({ name, id, place, description, runs, createTime }) => html`<tr key=${name}>
        <th scope="row"><a class="name" href=${`/experiments/${pathOf(name)}`}>${id}</a>
          <span class="under">${place.project} · ${place.region}${description && html` · <bdi>${description}</bdi>`}</span></th>
        <td data-of="Runs" class="number">${runs}</td>
        <td data-of="Created"><${Moment} at=${createTime} /></td></tr>`)}</tbody>
    </table><//>`}
    ${data?.experiments.length === 0 && html`<div class="empty"><p>No experiments yet. A program with Google’s SDK makes one:
      <code>aiplatform.init(experiment="NAME")</code>.</p>
      <${Commands} commands=${[{ purpose: "run it against this emulator", command: "vertex-emulator exec -- python train.py" }]} /></div>`}
  <//>`;
}

export function ExperimentPage({ Frame, name }) {
  const [data, error, refresh] = useFresh(`${PATH}/experiments/${name}`);
  const status = useLive(refresh);
  const [picked, pick] = useState([]);
  useEffect(() => {
    document.title = `${data?.id ?? "Experiment"} – Vertex training on this machine`;
  }, [data?.id]);
  const toggle = (id) => pick((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before, id].slice(-MOST_LINE_COLOURS)));
  return html`<${Frame} status=${status}>
    <nav class="crumbs" aria-label="Breadcrumb"><ol><li><a href="/experiments">Experiments</a></li></ol></nav>
    ${error && html`<p class="notice failed" role="alert">${error.message}</p>`}
    ${!data && error && html`<h1>Experiment</h1>`}
    ${data && html`<h1>${data.id}</h1>
      <p class="under">${data.place.project} · ${data.place.region}${data.description && html` · <bdi>${data.description}</bdi>`}</p>
      ${data.runs.length ? html`<${Runs} experiment=${data} picked=${picked} toggle=${toggle} clear=${() => pick([])} />`
        : html`<div class="empty"><p>No runs yet: <code>aiplatform.start_run("NAME")</code> begins one.</p></div>`}`}
  <//>`;
}

/** Values by name that has no others: the name of a metric may be that of a method, such as `constructor`. */
function ownOnly(values) {
  return Object.assign(Object.create(null), values);
}

/** The columns of what runs have recorded: of each kind, the names that any of them has. */
function columnsOf(runs) {
  const recorded = KINDS.flatMap(([kind, under]) => [...new Set(runs.flatMap((run) => Object.keys(run[kind])))].sort().map((name) => ({
    key: `${kind} ${name}`, label: name, under, of: (run) => run[kind][name],
    isNumber: runs.every((run) => run[kind][name] === undefined || typeof run[kind][name] === "number"),
  })));
  return [
    { key: "run", label: "Run", of: (run) => run.name },
    { key: "state", label: "State", of: (run) => run.state },
    ...recorded,
    { key: "created", label: "Created", of: (run) => run.createTime },
  ];
}

function Runs({ experiment, picked, toggle, clear }) {
  const [order, setOrder] = useState({ key: "created", isDescending: true });
  const [text, setText] = useState("");
  const [isOpen, open] = useState(false);
  const runs = useMemo(() => experiment.runs.map((run) => ({ ...run, ...Object.fromEntries(KINDS.map(([kind]) => [kind, ownOnly(run[kind])])) })), [experiment]);
  const columns = useMemo(() => columnsOf(runs), [runs]);
  const matching = useMemo(() => runs.filter((run) => run.name.toLowerCase().includes(text.toLowerCase())), [runs, text]);
  const hasJobs = runs.some(({ jobs }) => jobs.length);
  const rows = useMemo(() => {
    const column = columns.find(({ key }) => key === order.key) ?? columns.at(-1);
    const shown = sorted(matching, column, order.isDescending).slice(0, isOpen ? matching.length : ROWS);
    return shown.map((run) => html`<${Row} key=${run.id} run=${run} columns=${columns} hasJobs=${hasJobs} isPicked=${picked.includes(run.id)} toggle=${toggle} />`);
  }, [matching, columns, order, picked, isOpen]);
  const compared = picked.map((id) => runs.find((run) => run.id === id)).filter(Boolean);
  return html`
    ${compared.length > 1 && html`<${Comparison} runs=${compared} columns=${columns.slice(2, -1)} clear=${clear} />`}
    <${RunCurves} experiment=${experiment} runs=${compared.length ? compared : runs.filter(({ series }) => Object.keys(series).length).slice(0, MOST_LINE_COLOURS)} isChosen=${compared.length > 0} />
    <section aria-labelledby="runs-title">
      <div class="bar"><h2 id="runs-title">Runs <span class="muted">${runs.length}</span></h2>
        <div class="controls"><label>Name <input type="search" placeholder="Filter" value=${text} onInput=${(event) => setText(event.target.value)} /></label></div></div>
      <p class="under">Pick up to ${MOST_LINE_COLOURS} runs to compare them.${experiment.left_out > 0 && ` ${experiment.left_out} earlier runs are left out.`}</p>
      <${Wide} label="Table of runs" stacks><table class="trials">
        <caption class="for-readers">Runs; use the buttons in the headings to sort</caption>
        <thead><tr>${columns.map((column) => html`<${Heading} key=${column.key} column=${column} order=${order} setOrder=${setOrder} />`)}${hasJobs && html`<th scope="col">Job</th>`}</tr></thead>
        <tbody>${rows}</tbody>
      </table><//>
      ${!matching.length && html`<p class="muted">No run matches the filter.</p>`}
      ${rows.length < matching.length && html`<p class="more"><button type="button" onClick=${() => open(true)}>Show all ${matching.length} runs</button></p>`}
    </section>`;
}

function Row({ run, columns, hasJobs, isPicked, toggle }) {
  return html`<tr data-run=${run.id} class=${isPicked ? "picked" : ""}>
    <th scope="row"><button type="button" class="pick" aria-pressed=${isPicked} onClick=${() => toggle(run.id)}>${run.name}</button></th>
    <td data-of="State"><${Badge} state=${run.state} /></td>
    ${columns.slice(2, -1).map((column) => html`<td key=${column.key} data-of=${column.label} class=${column.isNumber ? "number" : ""} title=${column.of(run)}>${value(column.of(run))}</td>`)}
    <td data-of="Created"><${Moment} at=${run.createTime} /></td>
    ${hasJobs && html`<td data-of="Job">${run.jobs.map(({ id, collection, state }) => html`<div key=${id}><a href=${`/jobs/${collection}/${id}`}>${id}</a> <${Badge} state=${state} /></div>`)}</td>`}
  </tr>`;
}

/** What the picked runs have recorded side by side; what differs comes first. */
function Comparison({ runs, columns, clear }) {
  const rows = columns.map((column) => ({ ...column, values: runs.map(column.of) })).filter(({ values }) => values.some((each) => each !== undefined));
  const differs = ({ values }) => values.some((each) => each !== values[0]);
  const ordered = [...rows.filter(differs), ...rows.filter((row) => !differs(row))];
  return html`<section aria-labelledby="comparison-title">
    <div class="bar"><h2 id="comparison-title">Comparison of ${runs.length} runs</h2><p class="controls"><button type="button" class="quiet" onClick=${clear}>Close</button></p></div>
    <${Wide} label="Comparison" stacks><table>
      <thead><tr><th scope="col">Recorded</th>${runs.map((run) => html`<th scope="col" key=${run.id}>${run.name}</th>`)}<th scope="col">Differs</th></tr></thead>
      <tbody>${ordered.map((row) => html`<tr key=${row.key}><th scope="row">${row.label} <span class="under">${row.under}</span></th>
        ${row.values.map((each, i) => html`<td key=${runs[i].id} data-of=${runs[i].name} title=${each}>${value(each)}</td>`)}
        <td data-of="Differs">${differs(row) ? "yes" : "no"}</td></tr>`)}</tbody>
    </table><//></section>`;
}

/** The time series of some runs, a chart for each name. */
function RunCurves({ experiment, runs, isChosen }) {
  if (!runs.length) return null;
  return html`<${DrawnCurves} key=${runs.map(({ id }) => id).join()} experiment=${experiment} runs=${runs} isChosen=${isChosen} />`;
}

function DrawnCurves({ experiment, runs, isChosen }) {
  const query = runs.map(({ id }) => `run=${encodeURIComponent(id)}`).join("&");
  const [data, error] = useFresh(`${PATH}/curves/${pathOf(experiment.name)}?${query}`);
  const scheme = useScheme();
  const byTag = useMemo(() => {
    const found = new Map();
    for (const line of data?.lines ?? []) found.set(line.tag, [...(found.get(line.tag) ?? []), line]);
    return found;
  }, [data]);
  if (!error && !byTag.size) return null;
  const lookOf = (name) => ({ stroke: lineColour(runs.findIndex((run) => run.name === name)), width: 1.75 });
  return html`<section aria-labelledby="curves-title">
    <h2 id="curves-title">Time series <span class="muted">${isChosen ? "of the picked runs" : "of the latest runs"}</span></h2>
    ${error && html`<p class="notice failed" role="alert">Not current: ${error.message}</p>`}
    <div class="scalars">${[...byTag].map(([tag, lines]) => html`<${ScalarChart} key=${`${tag} ${scheme}`} tag=${tag} lines=${lines} over="steps" height=${HEIGHT} lookOf=${lookOf} isNamed namesOne />`)}</div>
  </section>`;
}
