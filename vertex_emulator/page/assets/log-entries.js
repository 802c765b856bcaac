// Log entries of a job, from the endpoint that Cloud Logging's clients use.
import { ask } from "./emulator-requests.js";
import { reason } from "./format.js";

const PAGE = 1000;
const OVERLAP_MILLISECONDS = 3000; // replicas' clocks and Docker's buffers: a line may come later than a newer one
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g; // colours and cursor moves of terminals

/** The entries' filter: `job`, and those that are set of `trial`, `task` and `severity` (the least one shown). */
export function filterOf({ job, trial, task, severity }) {
  const terms = ['resource.type="ml_job"', `resource.labels.job_id=${JSON.stringify(String(job))}`];
  if (trial) terms.push(`labels."ml.googleapis.com/trial_id"=${JSON.stringify(String(trial))}`);
  if (task) terms.push(`resource.labels.task_name=${JSON.stringify(task)}`);
  if (severity) terms.push(`severity>=${severity}`);
  return terms.join(" AND ");
}

/** The last entries, oldest first, and whether there are older ones. */
export async function lastEntries(filter) {
  const reply = await list({ filter, orderBy: "timestamp desc", pageSize: PAGE });
  return { lines: (reply.entries ?? []).map(lineOf).reverse(), hasOlder: Boolean(reply.nextPageToken) };
}

/** The entries after those known, some of which come again: `key` tells which. */
export async function* laterEntries(filter, last) {
  const since = last ? new Date(Date.parse(last.at) - OVERLAP_MILLISECONDS).toISOString() : null;
  const body = { filter: since ? `${filter} AND timestamp>="${since}"` : filter, orderBy: "timestamp asc", pageSize: PAGE };
  do {
    const reply = await list(body);
    yield (reply.entries ?? []).map(lineOf);
    body.pageToken = reply.nextPageToken;
  } while (body.pageToken);
}

function list(body) {
  return ask("/v2/entries:list", { method: "POST", body, isRepeatable: true });
}

function lineOf(entry) {
  const { task_name: task } = entry.resource.labels;
  const trial = entry.labels?.["ml.googleapis.com/trial_id"] ?? "";
  const text = task === "service" ? reason(textOf(entry)) : textOf(entry);
  return { key: `${trial} ${task} ${entry.insertId}`, at: entry.timestamp, severity: entry.severity, task, trial, text };
}

function textOf({ textPayload, jsonPayload }) {
  const { message, levelname, attrs, ...others } = jsonPayload ?? { message: textPayload ?? "" };
  const isLine = typeof message === "string" && Object.keys(others).length === 0 && (!jsonPayload || (levelname && attrs?.tag));
  if (isLine) return message.replace(ESCAPES, "").replace(/^.*\r(?=[^\r]+\r?$)/s, "").replace(/\r$/, "");
  const { message: _, ...rest } = jsonPayload;
  if (typeof message !== "string") return JSON.stringify(jsonPayload);
  return Object.keys(rest).length ? `${message} ${JSON.stringify(rest)}` : message;
}
