// Axes of the parallel-coordinates plot: where a value lies between 0 (bottom) and 1 (top), and what is written there.
import { aim, value } from "./format.js";

const MOST_NAMES = 9;

/** An axis per parameter and metric: `label`, `under`, `of(trial)`, `place(value)`, `ticks` (`at`, `text`). */
export function axesOf({ parameters, metrics, trials }) {
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
