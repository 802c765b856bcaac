// Parallel coordinates: a line per trial over its parameters and metrics. The table below it says the same in text.
import { html, useEffect, useMemo, useRef, useState, Wide } from "./ui.js";
import { shade } from "./colours.js";
import { aim, value } from "./format.js";

const HEIGHT = 320;
const TOP = 44;
const BOTTOM = 14;
const SIDE = 64;
const LEAST_GAP = 92;
const LETTER = 9; // pixels, of a bold one
const BORDERS = 2;

function y(part) {
  return TOP + (1 - part) * (HEIGHT - TOP - BOTTOM);
}

/** The points of a trial's line, null where it has no value (a parameter that does not apply, a metric still to come). */
function pointsOf(trial, axes, x) {
  return axes.map((axis, i) => {
    const given = axis.of(trial);
    return given === undefined ? null : { x: x(i), y: y(axis.place(given)), text: value(given) };
  });
}

function pathOf(points) {
  return points.map((point, i) => point && `${points[i - 1] ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).filter(Boolean).join("");
}

function useWidth(place) {
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

export function ParallelPlot({ study, shades, marked, mark, pick }) {
  const place = useRef(null);
  const room = useWidth(place);
  const axes = useMemo(() => axesOf(study), [study]);
  const width = Math.max(room - BORDERS, 2 * SIDE + LEAST_GAP * (axes.length - 1));
  const gap = (width - 2 * SIDE) / Math.max(1, axes.length - 1);
  const x = (i) => SIDE + i * gap;
  const [lines, axisViews] = useMemo(() => [
    study.trials.map((trial) => ({ trial, points: pointsOf(trial, axes, x) })),
    axes.map((axis, i) => html`<${Axis} key=${axis.key} axis=${axis} x=${x(i)} most=${Math.floor(gap / LETTER)} />`),
  ], [study, width]);
  const drawn = useMemo(() => html`<g>${lines.map(({ trial, points }) => html`<g key=${trial.id} data-trial=${trial.id}>
    <path class=${`line ${shades.has(trial.id) ? "" : "open"}`} style=${{ stroke: shade(shades.get(trial.id)) }} d=${pathOf(points)} />
    <path class="touch" d=${pathOf(points)} /></g>`)}</g>
    ${axisViews}
    <g>${lines.filter(({ trial }) => study.best.includes(trial.id)).map(({ trial, points }) => html`<${Best} key=${trial.id} id=${trial.id} points=${points} />`)}</g>`, [lines, shades]);
  const trialAt = (event) => event.target.closest("[data-trial]")?.dataset.trial ?? null;
  const one = lines.find(({ trial }) => trial.id === marked);
  return html`<div ref=${place}><${Wide} label="Plot of parallel coordinates">
    <svg class=${`parallel ${one ? "has-marked" : ""}`} width=${width} height=${HEIGHT} role="img" aria-label=${summaryOf(study, axes)}
      onMouseOver=${(event) => mark(trialAt(event))} onMouseLeave=${() => mark(null)} onClick=${(event) => trialAt(event) && pick(trialAt(event))}>
      ${drawn}
      ${one && html`<${Marked} points=${one.points} id=${one.trial.id} />`}
    </svg><//></div>`;
}

function Axis({ axis, x, most }) {
  return html`<g class=${axis.isMetric ? "axis metric" : "axis"}>
    <text class="label" x=${x} y="14" text-anchor="middle">${short(axis.label, most)}<title>${axis.label}</title></text>
    <text class="tick" x=${x} y="29" text-anchor="middle">${axis.under}</text>
    <line x1=${x} x2=${x} y1=${TOP} y2=${HEIGHT - BOTTOM} />
    ${axis.ticks.map(({ at, text }) => html`<line x1=${x - 4} x2=${x} y1=${y(at)} y2=${y(at)} />
      <text class="tick" x=${x - 7} y=${y(at) + 4} text-anchor="end">${short(String(text), 9)}<title>${text}</title></text>`)}
  </g>`;
}

function Best({ points, id }) {
  return html`<g class="best" data-trial=${id}><path d=${pathOf(points)} />
    ${points.map((point, i) => point && html`<text key=${i} class="star" x=${point.x} y=${point.y + 5} text-anchor="middle">★</text>`)}
    <title>Trial ${id}, best</title></g>`;
}

function Marked({ points, id }) {
  return html`<g class="marked" data-trial=${id}><path d=${pathOf(points)} />
    ${points.map((point, i) => point && html`<g key=${i}><circle cx=${point.x} cy=${point.y} r="4" />
      <text x=${point.x + 8} y=${point.y - 6}>${short(point.text, 10)}</text></g>`)}</g>`;
}

/** With the middle left out, as long names often differ at their ends. */
function short(text, most) {
  const half = Math.floor((most - 1) / 2);
  return text.length > most ? `${text.slice(0, most - 1 - half)}…${text.slice(-half)}` : text;
}

function summaryOf({ trials, best }, axes) {
  const winners = trials.filter((trial) => best.includes(trial.id)).slice(0, 3);
  const said = winners.map((trial) => `Best: trial ${trial.id}, ${axes.filter((axis) => axis.of(trial) !== undefined).map((axis) => `${axis.label} ${value(axis.of(trial))}`).join(", ")}.`);
  return `Parallel coordinates of ${trials.length} trials over ${axes.map((axis) => axis.label).join(", ")}. ${said.join(" ")} The table of trials has all values.`;
}

const MOST_NAMES = 9;

/** An axis per parameter and metric: `label`, `under`, `of(trial)`, `place(value)`, `ticks` (`at`, `text`). */
function axesOf({ parameters, metrics, trials }) {
  return [
    ...parameters.map((parameter) => ({ key: `parameter ${parameter.id}`, label: parameter.id, under: "", of: (trial) => trial.parameters[parameter.id], ...scaleOf(parameter) })),
    ...metrics.map((metric) => ({ key: `metric ${metric.id}`, label: metric.id, under: aim(metric), isMetric: true, of: (trial) => trial.metrics[metric.id], ...linear(...extent(trials, metric.id)) })),
  ];
}

function scaleOf({ type, scale, min, max, values }) {
  if (type === "CATEGORICAL") return named(values);
  if (type === "DISCRETE") [min, max] = [Math.min(...values), Math.max(...values)];
  if (scale === "UNIT_LOG_SCALE" && min > 0) return bent(min, max, Math.log, Math.exp);
  if (scale === "UNIT_REVERSE_LOG_SCALE" && min > 0) return bent(min, max, (x) => -Math.log(min + max - x), (y) => min + max - Math.exp(-y));
  return linear(min, max);
}

function extent(trials, id) {
  const known = trials.map((trial) => trial.metrics[id]).filter(Number.isFinite);
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

function linear(min, max) {
  return bent(min, max, (x) => x, (y) => y);
}

function bent(min, max, to, from) {
  const [low, high] = [to(min), to(max)];
  const place = (given) => (high === low ? 0.5 : (to(Number(given)) - low) / (high - low));
  const ticks = high === low ? [min] : [0, 0.25, 0.5, 0.75, 1].map((part) => from(low + part * (high - low)));
  return { place, ticks: ticks.map((tick) => ({ at: place(tick), text: value(Number(tick.toPrecision(3))) })) };
}

function named(values) {
  const place = (given) => (values.length < 2 ? 0.5 : values.indexOf(String(given)) / (values.length - 1));
  const stride = Math.ceil(values.length / MOST_NAMES);
  return { place, ticks: values.filter((_, i) => i % stride === 0).map((name) => ({ at: place(name), text: name })) };
}
