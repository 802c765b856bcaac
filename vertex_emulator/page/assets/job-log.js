// The log of a job: its last lines, and then each line as it is written.
import { Copy, html, useEffect, useRef, useState } from "./ui.js";
import { filterOf, laterEntries, lastEntries } from "./log-entries.js";
import { LogLines } from "./log-lines.js";

const PAUSE_MILLISECONDS = 1000; // lines lie with Docker, which tells of no new ones

/** Load what the filter lets through, and go on until `isOver` or `isPaused`. */
function useLines(place, filter, isOver, isPaused, onEnd) {
  const lines = useRef(null);
  const [state, setState] = useState({ count: null, hasOlder: false, error: "" });
  useEffect(() => {
    lines.current ??= new LogLines(place.current, onEnd);
    lines.current.clear();
    setState({ count: null, hasOlder: false, error: "" });
  }, [filter]);
  useEffect(() => {
    let isCurrent = true;
    let timer = null;
    const own = lines.current;
    const pull = async () => {
      let isFailed = false;
      try {
        if (own.last) {
          for await (const more of laterEntries(filter, own.last)) if (isCurrent) own.add(more);
        } else {
          const { lines: first, hasOlder } = await lastEntries(filter);
          if (isCurrent) own.add(first);
          if (isCurrent) setState((before) => ({ ...before, hasOlder }));
        }
        if (isCurrent) setState((before) => ({ ...before, count: own.lines.length, error: "" }));
      } catch (error) {
        isFailed = true;
        if (isCurrent) setState((before) => ({ ...before, error: error.message }));
      }
      if (isCurrent && (isFailed || (!isOver && !isPaused))) timer = setTimeout(pull, PAUSE_MILLISECONDS);
    };
    const follow = () => {
      clearTimeout(timer);
      if (!document.hidden && !(isPaused && own.last)) pull();
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", follow);
    };
  }, [filter, isOver, isPaused]);
  return [lines, state];
}

export function Log({ source, trials, isOver }) {
  const [choice, setChoice] = useState({ trial: "", task: "", severity: "" });
  const [isPaused, pause] = useState(false);
  const [isWrapped, wrap] = useState(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const place = useRef(null);
  const filter = filterOf({ job: source.job, ...choice, trial: source.trial ?? choice.trial });
  const [lines, { count, hasOlder, error }] = useLines(place, filter, isOver, isPaused, setAtEnd);
  const choose = (name) => (event) => setChoice({ ...choice, [name]: event.target.value });
  return html`<section aria-labelledby="log-title">
    <div class="bar"><h2 id="log-title">Log</h2>
      <div class="controls">
        ${trials && html`<label>Trial <select onChange=${choose("trial")}><option value="">All</option>
          ${trials.map(({ id }) => html`<option value=${id}>${id}</option>`)}</select></label>`}
        ${!trials && html`<label>Replica <select onChange=${choose("task")}><option value="">All</option>
          ${source.tasks.map((task) => html`<option value=${task}>${task}</option>`)}</select></label>`}
        <label>Severity <select onChange=${choose("severity")}><option value="">All</option>
          <option value="WARNING">Warnings and errors</option><option value="ERROR">Errors</option></select></label>
        <label class="check"><input type="checkbox" checked=${isWrapped} onChange=${() => wrap(!isWrapped)} /> Wrap</label>
        ${!isOver && html`<button type="button" onClick=${() => pause(!isPaused)}>${isPaused ? "Resume" : "Pause"}</button>`}
        <${Copy} text=${() => lines.current.text} what="the log" />
      </div>
    </div>
    ${error && html`<p class="notice failed" role="alert">The log cannot be read: ${error}</p>`}
    ${hasOlder && html`<p class="under">Only the last lines are shown; <code>vertex-emulator logs</code> prints all of them.</p>`}
    <div class="log-frame">
      <div class=${`log ${isWrapped ? "wrapped" : ""} ${trials ? "of-trials" : ""}`} ref=${place} role="log" aria-live="off" aria-label="Log lines" tabindex="0"></div>
      ${count === 0 && html`<p class="nothing muted">${isOver ? "No lines." : "No lines yet."}</p>`}
      ${!isAtEnd && html`<button type="button" class="to-end" onClick=${() => lines.current.toEnd()}>To the newest line</button>`}
    </div>
  </section>`;
}
