// A study: its best trial, its plots, its trials, and the trial that the reader has picked.
import { Badge, html, useEffect, useMemo, useRef, useState, Wide } from "./ui.js";
import { Curves } from "./metric-curves.js";
import { ParallelPlot } from "./parallel-plot.js";
import { StudyScalars } from "./scalars.js";
import { TrialsTable } from "./trials-table.js";
import { reason, seconds, value } from "./format.js";

const MOST_AXES_BESIDE = 8;
const MOST_BEST_LISTED = 5;

/** By trial id, how good its value of a metric is among all: 0 the worst, 1 the best. Trials without one are left out. */
function ranks(trials, { id, goal }) {
  const known = trials.filter((trial) => id in trial.metrics);
  const sign = goal === "MINIMIZE" ? -1 : 1;
  known.sort((a, b) => sign * (a.metrics[id] - b.metrics[id]));
  return new Map(known.map((trial, i) => [trial.id, known.length > 1 ? i / (known.length - 1) : 1]));
}

/** Values by name that has no others: the name of a metric may be that of a method, such as `constructor`. */
function ownOnly(values) {
  return Object.assign(Object.create(null), values);
}

export function Study({ study: given, scalars, isOver }) {
  const study = useMemo(() => ({ ...given, trials: given.trials.map((trial) => ({ ...trial, metrics: ownOnly(trial.metrics), parameters: ownOnly(trial.parameters) })) }), [given]);
  const { trials, metrics, parameters, best } = study;
  const [metricId, setMetric] = useState((metrics.find(({ threshold }) => threshold === null) ?? metrics[0]).id);
  const [marked, mark] = useState(null);
  const [picked, pick] = useState(null);
  const metric = metrics.find(({ id }) => id === metricId) ?? metrics[0];
  const shades = useMemo(() => ranks(trials, metric), [trials, metric.id]);
  const shared = { study, shades, marked: marked ?? picked, mark };
  const toggle = (id) => pick((before) => (before === id ? null : id));
  return html`
    <${Best} study=${study} />
    ${trials.length > 0 && html`
      <div class=${parameters.length + metrics.length > MOST_AXES_BESIDE ? "plots" : "plots beside"}>
        <section aria-labelledby="parallel-title">
          <div class="bar"><h2 id="parallel-title">Parameters and metrics</h2>
            <p class="legend" aria-hidden="true">${metrics.length > 1 && html`<bdi>${metric.id}</bdi>: `}worse <span class="ramp"></span> better, <span class="star">★</span> best</p></div>
          <${ParallelPlot} ...${shared} pick=${toggle} />
        </section>
        <section aria-labelledby="curves-title">
          <${Curves} ...${shared} metric=${metric} setMetric=${setMetric} />
        </section>
      </div>
      <${StudyScalars} path=${scalars} isOver=${isOver} study=${study} shades=${shades} mark=${mark} />
      <section aria-labelledby="trials-title"><h2 id="trials-title">Trials <span class="muted">${trials.length} of at most ${study.most}</span></h2>
        <${TrialsTable} study=${study} marked=${marked} mark=${mark} picked=${picked} pick=${toggle} />
      </section>
      ${picked && html`<${TrialDetails} trial=${trials.find(({ id }) => id === picked)} metrics=${metrics} isBest=${best.includes(picked)} close=${() => pick(null)} />`}`}`;
}

function Best({ study: { best, trials, metrics, parameters } }) {
  const winners = best.map((id) => trials.find((trial) => trial.id === id));
  if (!winners.length) return html`<p class="notice">${trials.length ? "No trial has succeeded yet." : "No trials yet: the first is being prepared."}</p>`;
  if (winners.length > 1) {
    return html`<section class="notice best" aria-labelledby="best-title"><h2 id="best-title"><span class="star" aria-hidden="true">★</span> ${winners.length} best trials</h2>
      <p>No other trial is at least as good in every metric and better in one.</p>
      <ul>${winners.slice(0, MOST_BEST_LISTED).map(({ id, metrics: values }) => html`<li key=${id}>Trial ${id}: ${metrics.map((metric) => html`<span class="chip" title=${String(values[metric.id])}><bdi>${metric.id}</bdi> = ${value(values[metric.id])}</span> `)}</li>`)}</ul>
      ${winners.length > MOST_BEST_LISTED && html`<p class="muted">The table marks all of them.</p>`}</section>`;
  }
  const [{ id, metrics: values, parameters: chosen, startTime, endTime }] = winners;
  return html`<section class="notice best" aria-labelledby="best-title"><h2 id="best-title"><span class="star" aria-hidden="true">★</span> Best trial: ${id}</h2>
    <p>${metrics.map((metric) => html`<span class="chip strong" title=${String(values[metric.id])}><bdi>${metric.id}</bdi> = ${value(values[metric.id])}</span> `)}
      ${parameters.filter((parameter) => parameter.id in chosen).map((parameter) => html`<span class="chip" title=${String(chosen[parameter.id])}><bdi>${parameter.id}</bdi> = ${value(chosen[parameter.id])}</span> `)}
      ${endTime && html`<span class="muted">in ${seconds((Date.parse(endTime) - Date.parse(startTime)) / 1000)}</span>`}</p></section>`;
}

/** The trial that was picked: its values in full and its measurements, which the curves show. */
function TrialDetails({ trial, metrics, isBest, close }) {
  const heading = useRef(null);
  useEffect(() => {
    heading.current.focus({ preventScroll: true });
    heading.current.scrollIntoView({ block: "nearest" });
  }, [trial.id]);
  const leave = () => {
    close();
    document.querySelector(`[data-trial="${trial.id}"] .pick`)?.focus();
  };
  const { curve } = trial;
  return html`<section class="details" aria-labelledby="details-title" onKeyDown=${(event) => event.key === "Escape" && leave()}>
    <div class="bar"><h2 id="details-title" ref=${heading} tabindex="-1">Trial ${trial.id} ${isBest && html`<span class="star" role="img" aria-label="best">★</span>`} <${Badge} state=${trial.state} /></h2>
      <p class="controls"><a href=${`/jobs/customJobs/${trial.job}`}>Replicas, outputs and log</a> <button type="button" class="quiet" onClick=${leave}>Close</button></p></div>
    ${trial.infeasibleReason && html`<p class="notice failed text">${reason(trial.infeasibleReason)}</p>`}
    <dl class="facts">
      ${Object.entries(trial.metrics).map(([name, given]) => html`<div key=${`m${name}`}><dt>${name}</dt><dd><strong>${given}</strong></dd></div>`)}
      ${Object.entries(trial.parameters).map(([name, given]) => html`<div key=${name}><dt>${name}</dt><dd>${given}</dd></div>`)}
    </dl>
    ${curve.steps.length > 0 && html`<details><summary>${curve.steps.length < curve.measured ? `${curve.steps.length} of ` : ""}${curve.measured} measurements</summary>
      <${Wide} label=${`Measurements of trial ${trial.id}`}><table>
        <thead><tr><th scope="col" class="number">Step</th><th scope="col" class="number">Elapsed</th>
          ${metrics.map(({ id }) => html`<th scope="col" class="number">${id}</th>`)}</tr></thead>
        <tbody>${curve.steps.map((step, i) => html`<tr><td class="number">${step}</td><td class="number">${seconds(curve.seconds[i])}</td>
          ${metrics.map(({ id }) => html`<td class="number">${value(curve.values[id][i])}</td>`)}</tr>`)}</tbody>
      </table><//></details>`}
  </section>`;
}
