// Trials in a table that its headings sort.
import { Badge, Duration, html, useEffect, useMemo, useRef, useState, Wide } from "./ui.js";
import { aim, reason, value } from "./format.js";

const ROWS = 200; // more are drawn when they are asked for

/** What a column is called, and by what it sorts. */
function columnsOf({ metrics, parameters }) {
  return [
    { key: "trial", label: "Trial", of: (trial) => Number(trial.id) },
    { key: "state", label: "State", of: (trial) => trial.state },
    ...metrics.map((metric) => ({ key: `metric ${metric.id}`, label: metric.id, under: aim(metric), isNumber: true, of: (trial) => trial.metrics[metric.id] })),
    ...parameters.map(({ id, parent, type }) => ({ key: `parameter ${id}`, label: id, under: parent ? `if ${parent}` : "", isNumber: type !== "CATEGORICAL", of: (trial) => trial.parameters[id] })),
    { key: "duration", label: "Duration", isNumber: true, of: (trial) => trial.startTime && Date.parse(trial.endTime ?? new Date()) - Date.parse(trial.startTime) },
  ];
}

/** A copy in order; those without a value come last either way, and equal ones keep their order. */
export function sorted(rows, column, isDescending) {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.of(a), column.of(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
    return sign * order;
  });
}

export function TrialsTable({ study, marked, mark, picked, pick }) {
  const [order, setOrder] = useState({ key: "trial", isDescending: false });
  const [isOpen, open] = useState(false);
  const body = useRef(null);
  const columns = useMemo(() => columnsOf(study), [study]);
  const hasReasons = study.trials.some((trial) => trial.infeasibleReason);
  const rows = useMemo(() => {
    const column = columns.find(({ key }) => key === order.key) ?? columns[0];
    const shown = sorted(study.trials, column, order.isDescending).slice(0, isOpen ? study.trials.length : ROWS);
    return shown.map((trial) => html`<${Row} key=${trial.id} trial=${trial} study=${study}
      columns=${columns} hasReasons=${hasReasons} isPicked=${trial.id === picked} pick=${pick} />`);
  }, [study, order, picked, isOpen]);
  // The marked row changes with every move of the pointer: the rows themselves are left alone.
  useEffect(() => {
    const row = body.current?.querySelector(`[data-trial="${marked}"]`);
    row?.classList.add("marked");
    return () => row?.classList.remove("marked");
  }, [marked, rows]);
  const markRow = (event) => mark(event.target.closest("tr")?.dataset.trial ?? null);
  return html`<${Wide} label="Table of trials" stacks><table class="trials">
    <caption class="for-readers">Trials; use the buttons in the headings to sort</caption>
    <thead><tr>${columns.map((column) => html`<${Heading} key=${column.key} column=${column} order=${order} setOrder=${setOrder} />`)}
      ${hasReasons && html`<th scope="col">Reason</th>`}</tr></thead>
    <tbody ref=${body} onMouseOver=${markRow} onMouseLeave=${() => mark(null)} onfocusin=${markRow} onfocusout=${() => mark(null)}>${rows}</tbody>
  </table><//>
  ${rows.length < study.trials.length && html`<p class="more"><button type="button" onClick=${() => open(true)}>Show all ${study.trials.length} trials</button></p>`}`;
}

/** The heading of a column, a button that sorts by it. */
export function Heading({ column: { key, label, under, isNumber }, order, setOrder }) {
  const isSorted = order.key === key;
  const direction = order.isDescending ? "descending" : "ascending";
  const arrow = isSorted ? (order.isDescending ? "▼" : "▲") : "";
  return html`<th scope="col" class=${isNumber ? "number" : ""} aria-sort=${isSorted ? direction : null}>
    <button type="button" class="sort" onClick=${() => setOrder({ key, isDescending: isSorted && !order.isDescending })}>
      <span class="label" title=${label}>${label}</span><span class="arrow" aria-hidden="true">${arrow}</span></button>
    ${under && html`<span class="under">${under}</span>`}</th>`;
}

function Row({ trial, study, columns, hasReasons, isPicked, pick }) {
  const isBest = study.best.includes(trial.id);
  const values = columns.slice(2, -1);
  return html`<tr data-trial=${trial.id} class=${`${isBest ? "best" : ""} ${isPicked ? "picked" : ""}`}>
    <th scope="row"><button type="button" class="pick" aria-pressed=${isPicked} onClick=${() => pick(trial.id)}>
      <span class="for-readers">Trial </span>${trial.id}</button>
      ${isBest && html`<span class="star" title="best" role="img" aria-label="best">★</span>`}</th>
    <td data-of="State"><${Badge} state=${trial.state} /></td>
    ${values.map((column) => html`<td key=${column.key} data-of=${column.label} class=${column.isNumber ? "number" : ""} title=${column.of(trial)}>${value(column.of(trial))}</td>`)}
    <td data-of="Duration" class="number"><${Duration} from=${trial.startTime} to=${trial.endTime} /></td>
    ${hasReasons && html`<td data-of="Reason" class="reason" title=${reason(trial.infeasibleReason ?? "")}>${reason(trial.infeasibleReason ?? "")}</td>`}
  </tr>`;
}
