// Scalars of TensorBoard's event files: of a job all tags, of a study a line per trial of one tag.
import { FolderLink, html, useEffect, useMemo, useState } from "./ui.js";
import { lineColour, MOST_LINE_COLOURS, property, shade, useScheme } from "./colours.js";
import { ScalarChart } from "./scalar-chart.js";
import { ask } from "./emulator-requests.js";

const PAUSE_MILLISECONDS = 2000;
const JOB_HEIGHT = 200;
const STUDY_HEIGHT = 300;
const OVER = ["steps", "seconds"];

/** What is written of `tags`, and what comes until `isOver`: `[found, error]`. */
function useScalars(path, tags, isOver) {
  const [state, setState] = useState({ found: null, error: null });
  const query = tags.map((tag) => `tag=${encodeURIComponent(tag)}`).join("&");
  useEffect(() => {
    let current = null;
    let timer = null;
    const pull = async () => {
      const own = (current = {});
      let pause = isOver ? null : PAUSE_MILLISECONDS;
      try {
        const found = await ask(`${path}?${query}`);
        if (own === current) setState({ found, error: null });
        if (found.has_more) pause = 0;
      } catch (error) {
        pause = PAUSE_MILLISECONDS;
        if (own === current) setState((before) => ({ ...before, error }));
      }
      if (own === current && pause !== null) timer = setTimeout(pull, pause);
    };
    const follow = () => {
      clearTimeout(timer);
      current = null;
      if (!document.hidden) pull();
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      current = null;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", follow);
    };
  }, [path, query, isOver]);
  return [state.found, state.error];
}

/** The scalars of one job, in groups by the prefixes of their tags. */
export function JobScalars({ path, isOver }) {
  const [over, setOver] = useState(OVER[0]);
  const [text, setText] = useState("");
  const [toggled, setToggled] = useState(new Map());
  const [full, setFull] = useState(new Set());
  const [tags, setTags] = useState([]);
  const groups = useMemo(() => shownGroups(tags, text, toggled, full), [tags, text, toggled, full]);
  const [found, error] = useScalars(path, groups.flatMap(({ drawn }) => drawn), isOver);
  const scheme = useScheme();
  useEffect(() => found && setTags((before) => (String(before) === String(found.tags) ? before : found.tags)), [found]);
  const lines = useLinesByTag(found);
  if (!found || !found.folder) return null;
  const lookOf = (run) => ({ stroke: found.runs.length > MOST_LINE_COLOURS ? shade(found.runs.indexOf(run) / found.runs.length) : lineColour(found.runs.indexOf(run)), width: 1.75 });
  const toggle = (name, isOpen) => setToggled((before) => new Map(before).set(name, isOpen));
  const charts = ({ drawn }) => drawn.filter((tag) => lines.has(tag)).map((tag) => html`<${ScalarChart} key=${`${tag} ${scheme}`} tag=${tag} lines=${lines.get(tag)}
    over=${over} height=${JOB_HEIGHT} lookOf=${lookOf} isNamed=${found.runs.length <= MOST_LINE_COLOURS} />`);
  return html`<section aria-labelledby="scalars-title">
    <div class="bar"><h2 id="scalars-title">Scalars ${tags.length > 0 && html`<span class="muted">${tags.length} ${tags.length === 1 ? "tag" : "tags"}</span>`}</h2>
      ${tags.length > 0 && html`<div class="controls">
        ${tags.length > 1 && html`<label>Tags <input type="search" placeholder="Filter" value=${text} onInput=${(event) => setText(event.target.value)} /></label>`}
        <${OverChoice} over=${over} setOver=${setOver} /></div>`}</div>
    <${Remarks} found=${found} error=${error} isOver=${isOver} />
    ${tags.length > 0 && !groups.length && html`<p class="muted">No tag matches the filter.</p>`}
    ${isFew(tags) ? groups.map((group) => html`<div class="scalars">${charts(group)}</div>`) : groups.map((group) => html`<details key=${group.name} class="group" open=${group.isOpen} onToggle=${(event) => event.target.open !== group.isOpen && toggle(group.name, event.target.open)}>
      <summary><bdi>${group.name || "Without prefix"}</bdi> <span class="muted">${group.tags.length}</span></summary>
      ${group.isOpen && html`<div class="scalars">${charts(group)}</div>
        ${group.drawn.length < group.tags.length && html`<p class="more"><button type="button" onClick=${() => setFull((before) => new Set(before).add(group.name))}>Show more of ${group.tags.length} tags</button></p>`}`}
    </details>`)}
  </section>`;
}

/** One tag of a study's trials; `mark(trialId)` is told of the trial that the pointer is at. */
export function StudyScalars({ path, isOver, study, shades, mark }) {
  const [over, setOver] = useState(OVER[0]);
  const [chosen, setChosen] = useState("");
  const [first, setFirst] = useState("");
  const tag = chosen || first;
  const [found, error] = useScalars(path, tag ? [tag] : [], isOver);
  const scheme = useScheme();
  useEffect(() => found && setFirst((before) => before || (found.tags[0] ?? "")), [found]);
  const lines = useLinesByTag(found);
  if (!found || !found.has_files) return null;
  const variants = [...new Set(found.runs.map(variantOf))];
  const lookOf = (run) => {
    const isBest = study.best.includes(trialOf(run));
    const dash = variants.indexOf(variantOf(run)) > 0 ? { dash: [6, 4] } : {};
    return { stroke: isBest ? property("--best") : shade(shades.get(trialOf(run))), width: isBest ? 3 : 1.5, ...dash };
  };
  return html`<section aria-labelledby="scalars-title">
    <div class="bar"><h2 id="scalars-title">Scalars of trials</h2>
      ${found.tags.length > 0 && html`<div class="controls">
        <label>Tag <select value=${tag} onChange=${(event) => setChosen(event.target.value)}>
          ${groupsOf(found.tags).map(({ name, tags }) => html`<optgroup key=${name} label=${name || "Without prefix"}>${tags.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</optgroup>`)}</select></label>
        <${OverChoice} over=${over} setOver=${setOver} /></div>`}</div>
    <${Remarks} found=${found} error=${error} isOver=${isOver} />
    ${lines.has(tag) && html`<${ScalarChart} key=${`${tag} ${scheme}`} tag=${tag} lines=${lines.get(tag)} over=${over} height=${STUDY_HEIGHT} lookOf=${lookOf} isNamed=${false} onFocus=${(run) => mark(run && trialOf(run))} />`}
    ${variants.length > 1 && html`<p class="under">Solid: <bdi>${variants[0] || "."}</bdi>; dashed: ${variants.slice(1).join(", ")}.</p>`}
    ${found.left_out > 0 && html`<p class="under">The latest trials; ${found.left_out} earlier ones are left out.</p>`}
  </section>`;
}

function useLinesByTag(found) {
  return useMemo(() => {
    const byTag = new Map();
    for (const line of found?.lines ?? []) byTag.set(line.tag, [...(byTag.get(line.tag) ?? []), line]);
    return byTag;
  }, [found]);
}

function OverChoice({ over, setOver }) {
  return html`<label>Over <select value=${over} onChange=${(event) => setOver(event.target.value)}>${OVER.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>`;
}

function Remarks({ found, error, isOver }) {
  const yet = isOver ? "" : " yet";
  return html`
    ${error && html`<p class="notice failed" role="alert">Not current: ${error.message}</p>`}
    ${!found.has_files && html`<p class="muted">No TensorBoard event files in <${FolderLink} uri=${found.folder} />${yet}.</p>`}
    ${found.has_files && !found.tags.length && !found.has_more && html`<p class="muted">The event files hold no scalars${yet}.</p>`}
    ${found.has_more && html`<p class="muted">Reading the event files…</p>`}
    ${found.problems.map((problem) => html`<p key=${problem} class="remark">${problem}</p>`)}`;
}

/** The trial of a run such as `trial-3/train`, and the part after it. */
function trialOf(run) {
  return run.split("/")[0].replace("trial-", "");
}

function variantOf(run) {
  return run.split("/").slice(1).join("/");
}

// Which tags are drawn: grouped by prefix, filtered, and no more at once than a page has room for.
const MOST_OPEN_AT_FIRST = 6;
const MOST_IN_GROUP = 12;
const MOST_DRAWN = 48;
const MOST_LETTERS = 12_000; // of the tags in the address of a request, of which servers take 16 kB

/** Tags by their prefix: `[{ name, tags }]`; those without one come first, under "". */
function groupsOf(tags) {
  const groups = new Map([["", []]]);
  for (const tag of tags) {
    const prefix = tag.includes("/") ? tag.slice(0, tag.indexOf("/")) : "";
    if (groups.has(prefix)) groups.get(prefix).push(tag);
    else groups.set(prefix, [tag]);
  }
  return [...groups].filter(([, members]) => members.length).map(([name, members]) => ({ name, tags: members }));
}

/** Whether tags are few enough to be shown without groups. */
function isFew(tags) {
  return tags.length <= MOST_IN_GROUP;
}

/** The groups with a tag that has all words of `text`, each with `isOpen` and the tags that are `drawn` of it. `toggled`
 * has those that the reader has opened or closed, `full` those of which the reader has asked for all tags. */
function shownGroups(tags, text, toggled, full) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = tags.filter((tag) => words.every((word) => tag.toLowerCase().includes(word)));
  if (isFew(tags)) return matching.length ? [{ name: "", tags: matching, isOpen: true, drawn: matching }] : [];
  let count = 0;
  let drawnCount = 0;
  let letters = 0;
  return groupsOf(matching).map(({ name, tags: members }) => {
    const isOpen = toggled.get(name) ?? (words.length > 0 || count === 0 || count + members.length <= MOST_OPEN_AT_FIRST);
    count += members.length;
    const most = isOpen ? Math.min(full.has(name) ? members.length : MOST_IN_GROUP, MOST_DRAWN - drawnCount) : 0;
    const drawn = members.slice(0, most).filter((tag) => (letters += encodeURIComponent(tag).length) <= MOST_LETTERS);
    drawnCount += drawn.length;
    return { name, tags: members, isOpen, drawn };
  });
}
