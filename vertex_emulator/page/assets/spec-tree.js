// JSON that opens and closes.
import { html } from "./ui.js";

const OPEN_LEVELS = 2;

export function SpecTree({ value }) {
  return html`<div class="tree"><${Members} value=${value} level=${0} /></div>`;
}

function Members({ value, level }) {
  return html`<ul>${Object.entries(value).map(([name, member]) => html`<li key=${name}><${Member} name=${name} value=${member} level=${level} /></li>`)}</ul>`;
}

function Member({ name, value, level }) {
  if (value === null || typeof value !== "object") {
    return html`<span class="key">${name}</span>: <span class=${`value ${typeof value}`}>${typeof value === "string" ? value || '""' : String(value)}</span>`;
  }
  const count = Object.keys(value).length;
  const size = Array.isArray(value) ? `[${count}]` : `{${count}}`;
  if (!count) return html`<span class="key">${name}</span>: <span class="value">${Array.isArray(value) ? "[]" : "{}"}</span>`;
  return html`<details open=${level < OPEN_LEVELS}><summary><span class="key">${name}</span> <span class="muted">${size}</span></summary>
    <${Members} value=${value} level=${level + 1} /></details>`;
}
