// The trial that was picked: its values in full and its measurements, which the curves show.
import { Badge, html, useEffect, useRef, Wide } from "./ui.js";
import { seconds, value } from "./format.js";

export function TrialDetails({ trial, metrics, isBest, close }) {
  const heading = useRef(null);
  useEffect(() => heading.current.scrollIntoView({ block: "nearest" }), [trial.id]);
  const { curve } = trial;
  return html`<section class="details" aria-labelledby="details-title">
    <div class="bar"><h2 id="details-title" ref=${heading}>Trial ${trial.id} ${isBest && html`<span class="star" role="img" aria-label="best">★</span>`} <${Badge} state=${trial.state} /></h2>
      <p class="controls"><a href=${`/jobs/customJobs/${trial.job}`}>Replicas, outputs and log</a> <button type="button" class="quiet" onClick=${close}>Close</button></p></div>
    ${trial.infeasibleReason && html`<p class="notice failed text">${trial.infeasibleReason}</p>`}
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
