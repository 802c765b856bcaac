// Cancel a job that goes on; delete one that has ended. Both ask first.
import { html, useRef, useState } from "./ui.js";
import { isEnded, stateName } from "./format.js";
import { ask } from "./emulator-requests.js";

const CANCEL = {
  label: "Cancel job",
  question: "Cancel this job?",
  effect: "Its containers are asked to stop, and killed if they do not. This cannot be undone.",
  refusal: "Let it run",
};
const DELETE = {
  label: "Delete job",
  question: "Delete this job?",
  effect: "The job, its trials and its logs are removed. Files in its output folders stay. This cannot be undone.",
  refusal: "Keep it",
};

export function Actions({ job }) {
  const dialog = useRef(null);
  const [work, setWork] = useState({ isBusy: false, failure: "" });
  const hasEnded = isEnded(job.state);
  const action = hasEnded ? DELETE : CANCEL;
  const act = async () => {
    setWork({ isBusy: true, failure: "" });
    const path = `/v1/${job.name.split("/").map(encodeURIComponent).join("/")}`;
    try {
      await (hasEnded ? ask(path, { method: "DELETE" }) : ask(`${path}:cancel`, { method: "POST", isRepeatable: true }));
      dialog.current?.close(); // a page that has heard of the deletion has none any more
      if (hasEnded) location.assign("/");
      setWork({ isBusy: false, failure: "" });
    } catch (error) {
      setWork({ isBusy: false, failure: error.message });
    }
  };
  const isCancelling = stateName(job.state) === "Cancelling";
  return html`
    <button type="button" class="danger" disabled=${isCancelling} onClick=${() => dialog.current.showModal()}>
      ${isCancelling ? "Cancelling…" : action.label}</button>
    <dialog ref=${dialog} aria-labelledby="question" aria-describedby="effect">
      <h2 id="question">${action.question}</h2>
      <p id="effect">${action.effect}</p>
      ${work.failure && html`<p class="notice failed" role="alert">${work.failure}</p>`}
      <p class="choices-of-two">
        <button type="button" onClick=${() => dialog.current.close()}>${action.refusal}</button>
        <button type="button" class="danger" disabled=${work.isBusy} onClick=${act}>${action.label}</button>
      </p>
    </dialog>`;
}
