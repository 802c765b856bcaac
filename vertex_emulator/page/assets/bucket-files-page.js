// The bucket folders, for reading.
import { Copy, html, Moment, useEffect, useRef, useState, Wide } from "./ui.js";
import { bytes, shellWord } from "./format.js";
import { ask } from "./emulator-requests.js";

const ROOT = "gs://";

function at(uri) {
  return uri === ROOT ? "/files" : `/files?uri=${encodeURIComponent(uri)}`;
}

export function FilesPage({ Frame }) {
  const uri = useRef(new URLSearchParams(location.search).get("uri") || ROOT).current;
  const [{ found, error }, set] = useState({});
  useEffect(() => {
    document.title = `${uri} – Vertex training on this machine`;
    ask(`/vertex_emulator/page/files?uri=${encodeURIComponent(uri)}`).then((answer) => set({ found: answer }), (failure) => set({ error: failure }));
  }, []);
  return html`<${Frame}>
    <${Crumbs} uri=${uri} />
    <h1 class="path">${uri === ROOT ? "Buckets" : uri.replace(/\/$/, "").split("/").at(-1)}</h1>
    ${error && html`<p class="notice failed" role="alert">${error.code === 404 ? "There is no such folder yet: nothing has been written there." : error.message}</p>`}
    ${found && html`<p class="under"><code>${found.path}</code> <${Copy} text=${shellWord(found.path)} what="the folder's path" /></p>
      <${Entries} found=${found} />`}
  <//>`;
}

function Crumbs({ uri }) {
  const parts = uri.slice(ROOT.length).split("/").filter(Boolean);
  return html`<nav class="crumbs" aria-label="Breadcrumb"><ol>
    <li><a href="/files">Buckets</a></li>
    ${parts.map((part, i) => html`<li><a href=${at(ROOT + parts.slice(0, i + 1).join("/"))} aria-current=${i === parts.length - 1 ? "page" : null}>${part}</a></li>`)}
  </ol></nav>`;
}

function Entries({ found }) {
  if (!found.entries.length) return html`<div class="empty"><p>${found.uri === ROOT ? "No job has written to a bucket yet." : "This folder is empty."}</p></div>`;
  return html`<${Wide} label="Files" stacks><table>
    <thead><tr><th scope="col">Name</th><th scope="col" class="number">Size</th><th scope="col">Modified</th></tr></thead>
    <tbody>${found.entries.map((entry) => html`<tr key=${entry.name}>
      <th scope="row"><${EntryName} entry=${entry} /></th>
      <td class="number" data-of="Size">${entry.kind === "file" ? bytes(entry.size) : "–"}</td><td data-of="Modified"><${Moment} at=${entry.modified} /></td></tr>`)}</tbody>
  </table><//>
  ${found.left_out > 0 && html`<p>${found.left_out} more are in the folder on this machine.</p>`}`;
}

function EntryName({ entry }) {
  const remark = !entry.uri ? "name is not UTF-8" : entry.kind === "link" ? "link" : entry.kind === "special" ? "no regular file" : "";
  if (remark) return html`<bdi>${entry.name}</bdi> <span class="muted">(${remark})</span>`;
  if (entry.kind === "folder") return html`<a href=${at(entry.uri)}>${entry.name}/</a>`;
  return html`<a href=${`/vertex_emulator/page/download?uri=${encodeURIComponent(entry.uri)}`} download>${entry.name}</a>`;
}
