// Chooses the view by the page's address.
import { html, render } from "./ui.js";
import { FilesPage } from "./bucket-files-page.js";
import { JobPage } from "./job-page.js";
import { JobListPage } from "./job-list-page.js";
import { ExperimentPage, ExperimentsPage } from "./experiments-page.js";
import { SchedulesPage } from "./schedules-page.js";

const VIEWS = [["/", "Jobs", "jobs"], ["/experiments", "Experiments", "experiments"], ["/schedules", "Schedules", "schedules"], ["/files", "Files", "files"]];

/** Which link of the navigation leads to the present view: it, or the one above it. */
function currency(href, part) {
  if (location.pathname === href) return "page";
  return location.pathname.startsWith(`/${part}/`) ? "true" : null;
}

/** The frame around every view. */
export function Frame({ status, children }) {
  return html`
    <header class="top">
      <a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="24" height="24" /> Vertex training</a>
      <nav aria-label="Main">${VIEWS.map(([href, label, part]) => html`<a href=${href} aria-current=${currency(href, part)}>${label}</a>`)}</nav>
      ${status && html`<p class=${`live ${status}`} role="status">${status === "live" ? "Live" : "Reconnecting…"}</p>`}
    </header>
    <main id="main" tabindex="-1">${children}</main>`;
}

function view() {
  // As they are in the address: decoded, `..%5C` would lead requests to other paths.
  const [, collection, id] = location.pathname.match(/^\/jobs\/([^/]+)\/([^/]+)$/) ?? [];
  if (id) return html`<${JobPage} Frame=${Frame} collection=${collection} id=${id} />`;
  if (location.pathname === "/experiments") return html`<${ExperimentsPage} Frame=${Frame} />`;
  if (location.pathname.startsWith("/experiments/")) return html`<${ExperimentPage} Frame=${Frame} name=${location.pathname.slice("/experiments/".length)} />`;
  if (location.pathname === "/files") return html`<${FilesPage} Frame=${Frame} />`;
  if (location.pathname === "/schedules") return html`<${SchedulesPage} Frame=${Frame} />`;
  return html`<${JobListPage} Frame=${Frame} />`;
}

addEventListener("keydown", (event) => {
  const field = document.querySelector('input[type="search"]');
  if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey) return;
  if (!field || document.activeElement.type === "search" || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  field.select();
});

const place = document.createElement("div");
document.body.append(place);
render(view(), place);
