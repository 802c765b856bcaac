// The view library under one name, and the small pieces that several views share.
import { html, render, useEffect, useMemo, useRef, useState } from "./vendor/htm/standalone.module.js";
import { clock, localTime, span, stateName } from "./format.js";

export { html, render, useEffect, useMemo, useRef, useState };

const SHAPES = { succeeded: "✓", complete: "✓", failed: "✕", infeasible: "✕", cancelled: "■", running: "▶", active: "▶" };

/** A state as text with a shape, so that colour is never the only sign. */
export function Badge({ state }) {
  const name = stateName(state);
  const kind = name.toLowerCase();
  return html`<span class=${`badge ${kind.replaceAll(" ", "-")}`}><span aria-hidden="true">${SHAPES[kind] ?? "○"}</span> ${name}</span>`;
}

/** A moment: short and local, with the exact one as its title. */
export function Moment({ at }) {
  return at ? html`<time datetime=${at} title=${at}>${localTime(at)}</time>` : html`<span class="muted">–</span>`;
}

/** How long something took, or has taken so far. */
export function Duration({ from, to }) {
  const [, tick] = useState(0);
  const isOpen = Boolean(from && !to);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [isOpen]);
  return from ? html`<span class="number">${span(from, to ?? clock())}</span>` : html`<span class="muted">–</span>`;
}

/** Text to take along. Browsers give the clipboard to secure origins only, of which this machine's addresses are some. */
export function Copy({ text, what }) {
  const [isDone, setDone] = useState(false);
  if (!navigator.clipboard || text === null) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="quiet" onClick=${copy} aria-label=${`Copy ${what}`}>
    <span aria-live="polite">${isDone ? "Copied" : "Copy"}</span>
  </button>`;
}

/** What may be wider than the page scrolls by itself, with the keyboard too. A table that `stacks` puts the cells of a row below each
 * other in a narrow window, each after the name of its column, `data-of`. */
export function Wide({ label, stacks, children }) {
  const place = useRef(null);
  const [isScrolled, setScrolled] = useState(false);
  useEffect(() => {
    const { current } = place;
    const watch = new ResizeObserver(() => setScrolled(current.scrollWidth > current.clientWidth));
    [current, current.firstElementChild].forEach((each) => watch.observe(each));
    return () => watch.disconnect();
  }, []);
  return html`<div class=${stacks ? "wide stacks" : "wide"} ref=${place} role="region" aria-label=${label} tabindex=${isScrolled ? 0 : null}>${children}</div>`;
}

/** Commands, each with a button that takes it along and with what it is for. */
export function Commands({ commands }) {
  return html`<ul class="commands">${commands.map(({ purpose, command }) => html`<li key=${command}><span class="muted">${purpose}</span>
    <div><code>${command}</code> <${Copy} text=${command} what=${`the command: ${purpose}`} /></div></li>`)}</ul>`;
}

/** A link into the bucket folders. */
export function FolderLink({ uri }) {
  return html`<a href=${`/files?uri=${encodeURIComponent(uri)}`}>${uri}</a>`;
}

/** What is said to those who cannot see it change. */
export function Announcement({ text }) {
  return html`<p class="for-readers" role="status" aria-live="polite">${text}</p>`;
}
