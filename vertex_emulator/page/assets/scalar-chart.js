// One tag: a line for each run, and what the lines say where the pointer is.
import { html, useMemo, useRef, useState } from "./ui.js";
import { useChart } from "./line-chart.js";
import { risingPoints } from "./curve-data.js";
import { seconds, value } from "./format.js";

/** `lookOf(run)` is a line's `stroke`, `width` and `dash`; `isNamed` says that a legend names all lines, `namesOne` also if there is one alone. */
export function ScalarChart({ tag, lines, over, height, lookOf, isNamed, namesOne = false, onFocus = () => {} }) {
  const place = useRef(null);
  const [at, setAt] = useState(null);
  const [focused, setFocused] = useState(null);
  const drawn = useMemo(() => lines.map((line) => ({ ...line, points: risingPoints(line, line.values, over) })).filter(({ points: [xs] }) => xs.length), [lines, over]);
  const key = drawn.map(({ run }) => run).join("\n");
  useChart(place, height, (uPlot) => {
    const focus = (i) => {
      setFocused(drawn[i - 1]?.run ?? null);
      onFocus(drawn[i - 1]?.run ?? null);
    };
    return {
      data: drawn.length ? uPlot.join(drawn.map(({ points }) => points)) : null,
      series: drawn.map(({ run, points: [xs] }) => ({ ...lookOf(run), spanGaps: true, points: { show: xs.length === 1 } })),
      isOverTime: over === "seconds",
      hooks: {
        setCursor: [({ cursor, data }) => setAt(cursor.left >= 0 && cursor.idx !== null ? data[0][cursor.idx] : null)],
        setSeries: [({ cursor }, i) => cursor.left >= 0 && focus(i)],
      },
    };
  }, [key, over], [drawn]);
  const leave = () => {
    setFocused(null);
    onFocus(null);
  };
  return html`<figure class="scalar">
    <figcaption>${tag}</figcaption>
    <div class="chart" style=${{ minHeight: `${height}px` }} ref=${place} onMouseLeave=${leave} role="img" aria-label=${summaryOf(tag, drawn, over)}></div>
    <${Legend} drawn=${drawn} at=${at} over=${over} lookOf=${lookOf} isNamed=${isNamed} namesOne=${namesOne} focused=${focused} />
    <${NotFinite} lines=${lines} />
  </figure>`;
}

function Legend({ drawn, at, over, lookOf, isNamed, namesOne, focused }) {
  if (!isNamed) {
    const line = drawn.find(({ run }) => run === focused);
    return html`<p class="under readout">${line ? html`<bdi>${line.run}</bdi>: <${Reading} line=${line} at=${at} over=${over} />` : `${drawn.length} lines; point at one for its name and values.`}</p>`;
  }
  return html`<ul class="lines">${drawn.map((line) => html`<li key=${line.run}>
    ${(namesOne || drawn.length > 1) && html`<span class="swatch" style=${{ background: lookOf(line.run).stroke }}></span> <bdi>${line.run || "."}</bdi> `}<${Reading} line=${line} at=${at} over=${over} /></li>`)}</ul>`;
}

/** The value at the pointer, or the last one. */
function Reading({ line: { points: [xs, ys] }, at, over }) {
  const i = at === null ? xs.length - 1 : nearest(xs, at);
  return html`<strong title=${String(ys[i])}>${value(ys[i])}</strong> <span class="muted">${moment(xs[i], over)}</span>`;
}

function NotFinite({ lines }) {
  const found = lines.filter(({ not_finite: { count } }) => count);
  return found.map(({ run, not_finite: { count, step } }) => html`<p key=${run} class="remark">${lines.length > 1 && html`<bdi>${run || "."}</bdi>: `}${count} ${count === 1 ? "value is" : "values are"} NaN or infinite, the first at step ${step.toLocaleString()}.</p>`);
}

function moment(x, over) {
  return over === "steps" ? `at step ${x.toLocaleString()}` : `after ${seconds(x)}`;
}

function nearest(xs, x) {
  let best = 0;
  for (let i = 1; i < xs.length; i += 1) if (Math.abs(xs[i] - x) < Math.abs(xs[best] - x)) best = i;
  return best;
}

function summaryOf(tag, drawn, over) {
  const said = drawn.slice(0, 6).map(({ run, points: [xs, ys] }) => `${run ? `${run}: ` : ""}last ${value(ys.at(-1))} ${moment(xs.at(-1), over)}, lowest ${value(Math.min(...ys))}, highest ${value(Math.max(...ys))}.`);
  return `${tag} over ${over}. ${said.join(" ")}${drawn.length > 6 ? ` And ${drawn.length - 6} more lines.` : ""}`;
}
