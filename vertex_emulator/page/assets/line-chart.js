// A chart of lines, drawn by uPlot: loaded when the first is drawn, as wide as its place, in the present scheme.
import { useEffect, useRef } from "./ui.js";
import { property, useScheme } from "./colours.js";
import { tick } from "./format.js";
import { persistently } from "./emulator-requests.js";

const INTEGER_INCREMENTS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

const MOST_TICKS = 100;

let loading = null;

/** The chart library, which other pages do not need. It is asked for until it comes: a chart has no other moment for it. */
function chartLibrary() {
  loading ??= persistently(() => new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = "/assets/vendor/uplot/uPlot.iife.min.js";
    script.onload = () => done(window.uPlot);
    script.onerror = () => fail(new Error("the chart library cannot be loaded"));
    document.head.append(script);
  }), Infinity);
  return loading;
}

/** The multiples of the increment from min to max, no more than there is room for. The library's own loop adds the
 * increment until max is reached, which is never where that is too small for the numbers: 2 ** 53 + 1 is 2 ** 53. */
function ticksOf(chart, axis, min, max, increment) {
  const first = Math.ceil(min / increment);
  const count = Math.min(Math.floor(max / increment) - first + 1, MOST_TICKS);
  return Array.from({ length: Math.max(0, count) }, (_, i) => Number(((first + i) * increment).toPrecision(15)));
}

function optionsOf({ series, hooks, isOverTime }, width, height) {
  const [text, grid] = [property("--muted"), property("--border")];
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, splits: ticksOf };
  return {
    width, height, legend: { show: false }, padding: [14, 30, 0, 0],
    scales: { x: { time: false } },
    axes: [{ ...axis, space: 64, size: 38, ...(!isOverTime && { incrs: INTEGER_INCREMENTS }) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(tick) }],
    series: [{}, ...series],
    cursor: { y: false, focus: { prox: 24 }, drag: { x: true, y: false } },
    focus: { alpha: 0.25 },
    hooks,
  };
}

/** Draw in `place` what `make(uPlot)` returns: `data` (null for nothing yet), `series`, `hooks`, and `isOverTime` where x is
 * in seconds; the ticks of steps and trials are whole numbers. Drawn anew where `inputs` change, with new data (of as many
 * series) where `updates` do; the zoom is kept then. Returns a ref to the chart. */
export function useChart(place, height, make, inputs, updates = []) {
  const chart = useRef(null);
  const current = useRef(make);
  current.current = make;
  const scheme = useScheme();
  useEffect(() => {
    let isCurrent = true;
    const watch = new ResizeObserver(([entry]) => chart.current?.setSize({ width: entry.contentRect.width, height }));
    chartLibrary().then((uPlot) => {
      if (!isCurrent) return;
      const made = current.current(uPlot);
      if (!made.data) return;
      chart.current = new uPlot(optionsOf(made, place.current.clientWidth, height), made.data, place.current);
      watch.observe(place.current);
    });
    return () => {
      isCurrent = false;
      watch.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [...inputs, scheme]);
  useEffect(() => {
    const own = chart.current;
    if (!own) return;
    const { data } = current.current(window.uPlot);
    if (!data) return;
    const [xs] = own.data;
    const isZoomed = own.scales.x.min > xs[0] || own.scales.x.max < xs.at(-1);
    own.batch(() => {
      const { min, max } = own.scales.x;
      own.setData(data);
      if (isZoomed) own.setScale("x", { min, max });
    });
  }, updates);
  return chart;
}
