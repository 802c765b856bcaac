// Chooses the view by the page's address.
import { html, render } from "./ui.js";
import { FilesPage } from "./bucket-files-page.js";
import { JobPage } from "./job-page.js";
import { JobListPage } from "./job-list-page.js";
import { SchedulesPage } from "./schedules-page.js";

/** The frame around every view. */
export function Frame({ status, children }) {
  return html`
    <header class="top">
      <a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="24" height="24" /> Vertex training</a>
      <nav aria-label="Main"><a href="/">Jobs</a><a href="/schedules">Schedules</a><a href="/files">Files</a></nav>
      ${status && html`<p class=${`live ${status}`} role="status">${status === "live" ? "Live" : "Reconnecting…"}</p>`}
    </header>
    <main id="main" tabindex="-1">${children}</main>`;
}

function view() {
  // As they are in the address: decoded, `..%5C` would lead requests to other paths.
  const [, collection, id] = location.pathname.match(/^\/jobs\/([^/]+)\/([^/]+)$/) ?? [];
  if (id) return html`<${JobPage} Frame=${Frame} collection=${collection} id=${id} />`;
  if (location.pathname === "/files") return html`<${FilesPage} Frame=${Frame} />`;
  if (location.pathname === "/schedules") return html`<${SchedulesPage} Frame=${Frame} />`;
  return html`<${JobListPage} Frame=${Frame} />`;
}

const place = document.createElement("div");
document.body.append(place);
render(view(), place);
