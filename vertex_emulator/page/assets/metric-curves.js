// A metric over steps or time, a curve per trial; or over trials, with the best so far.
import { html, useEffect, useRef, useState } from "./ui.js";
import { useChart } from "./line-chart.js";
import { points, progress, shownTrials } from "./curve-data.js";
import { property, shade } from "./colours.js";
import { value } from "./format.js";

const HEIGHT = 300;
const OVER = [["steps", "steps"], ["seconds", "seconds"], ["trials", "trials"]];

function curveChart(uPlot, { study, shades, metric, over }) {
  const trials = shownTrials(study.trials, shades).filter((trial) => points(trial, metric.id, over)[0].length);
  const data = trials.length ? uPlot.join(trials.map((trial) => points(trial, metric.id, over))) : null;
  const series = trials.map((trial) => {
    const isBest = study.best.includes(trial.id);
    const stroke = isBest ? property("--best") : shade(shades.get(trial.id));
    return { stroke, width: isBest ? 3 : 1.5, spanGaps: true, points: { show: trial.curve.steps.length === 1 } };
  });
  return { data, series, ids: trials.map(({ id }) => id) };
}

function progressChart(uPlot, { study, shades, metric }) {
  const data = progress(study.trials, metric);
  const dots = { stroke: shade(1), fill: shade(1), paths: () => null, points: { show: true, size: 7, fill: shade(1) } };
  const line = { stroke: property("--best"), width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
  return { data: data[0].length ? data : null, series: [dots, line], ids: [] };
}

export function Curves({ study, shades, marked, mark, metric, setMetric }) {
  const [over, setOver] = useState("steps");
  const [shown, setShown] = useState({ count: 0, isEmpty: true });
  const place = useRef(null);
  const drawn = useRef({ ids: [], isOwn: false });
  const chart = useChart(place, HEIGHT, (uPlot) => {
    const made = (over === "trials" ? progressChart : curveChart)(uPlot, { study, shades, metric, over });
    setShown({ count: made.ids.length, isEmpty: !made.data });
    drawn.current.ids = made.ids;
    const marks = (i) => drawn.current.isOwn || mark(made.ids[i - 1] ?? null);
    // A chart without the pointer in it says that no series has it too, as soon as it is drawn.
    return { ...made, isOverTime: over === "seconds", hooks: { setSeries: [(own, i) => own.cursor.left >= 0 && marks(i)] } };
  }, [study, shades, metric.id, over]);
  useEffect(() => {
    const own = drawn.current;
    if (!chart.current || !own.ids.length) return;
    own.isOwn = true; // what the table marks is not to be told back to it
    chart.current.setSeries(own.ids.indexOf(marked) + 1 || null, { focus: true });
    own.isOwn = false;
  }, [marked]);
  const measured = study.trials.filter((trial) => trial.curve.steps.length).length;
  const one = study.trials.find((trial) => trial.id === marked);
  return html`<div class="bar"><h2 id="curves-title"><bdi>${metric.id}</bdi> over ${over}</h2>
      <div class="controls">
        ${study.metrics.length > 1 && html`<label>Metric <select value=${metric.id} onChange=${(event) => setMetric(event.target.value)}>
          ${study.metrics.map(({ id }) => html`<option value=${id}>${id}</option>`)}</select></label>`}
        <label>Over <select value=${over} onChange=${(event) => setOver(event.target.value)}>
          ${OVER.map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select></label>
      </div></div>
    <div class="chart" style=${{ minHeight: `${HEIGHT}px` }} ref=${place} onMouseLeave=${() => mark(null)} role="img" aria-label=${`${metric.id} over ${over}. The table of trials holds the final values, and a picked trial's measurements.`}></div>
    ${shown.isEmpty && html`<p class="nothing muted">No trial has reported <bdi>${metric.id}</bdi> yet.</p>`}
    <p class="under readout">${one ? html`Trial ${one.id}: <bdi>${metric.id}</bdi> ${value(one.metrics[metric.id])}` : over === "trials" ? "Each dot is a trial; the line is the best so far." : shown.count < measured ? `The best and the latest, ${shown.count} of ${measured} trials.` : "The thick line is the best trial."}</p>`;
}
