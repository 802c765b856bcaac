// Numbers, times and states as people read them.

/** The time now, as the API writes times. */
export function clock() {
  return new Date().toISOString();
}

/** `JOB_STATE_RUNNING` → `Running`. */
export function stateName(state) {
  const words = state.replace(/^(JOB|PIPELINE)_STATE_/, "").toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `HyperparameterTuningJob` → `Tuning job`. */
export function kindName(kind) {
  if (kind === "HyperparameterTuningJob") return "Tuning job";
  const words = kind.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether a job's state is its last. */
export function isEnded(state) {
  return /_(SUCCEEDED|FAILED|CANCELLED|EXPIRED|PARTIALLY_SUCCEEDED)$/.test(state);
}

/** A short local time: with the day, and with the year where it is another. */
export function localTime(at) {
  const moment = new Date(at);
  const other = moment.getFullYear() !== new Date().getFullYear();
  return moment.toLocaleString(undefined, {
    year: other ? "numeric" : undefined, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
    hourCycle: "h23",
  });
}

/** The time between two moments: `4.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function span(from, to) {
  return seconds(Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000));
}

/** Seconds as people say them. */
export function seconds(count) {
  if (count < 60) return `${count.toFixed(1)} s`;
  const whole = Math.floor(count);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A value in a table: numbers to four significant digits, everything else as it is. */
export function value(given) {
  if (given === undefined || given === null) return "–";
  if (typeof given !== "number" || Number.isInteger(given)) return String(given);
  const size = Math.abs(given);
  return size >= 1e-3 && size < 1e5 ? String(Number(given.toPrecision(4))) : Number(given.toPrecision(3)).toExponential();
}

/** A number beside an axis, where long ones have no room. */
export function tick(given) {
  return Math.abs(given) >= 1e5 ? given.toExponential().replace("e+", "e") : value(given);
}

/** The reason of a failure without the service's link to Google Cloud's console, which has no log of a job on this machine. */
export function reason(text) {
  return text.replace(/\s*To find out more about why your job exited please check the logs: \S+/g, "");
}

/** What a metric is for, in a word: to be improved, or to stay on one side of a threshold. */
export function aim({ goal, threshold }) {
  if (threshold !== null) return `safe ${goal === "MINIMIZE" ? "≤" : "≥"} ${value(threshold)}`;
  return goal === "MINIMIZE" ? "minimize" : "maximize";
}

/** A path as one word of a command in a shell; null with control characters, which are keys to a terminal even in quotes. */
export function shellWord(path) {
  if (/[\u0000-\u001f\u007f-\u009f]/.test(path)) return null;
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`;
}

/** Bytes with a unit. */
export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

/** What a replica has used: `2.1 of 15 GiB, 38 s of processor`; a dash if nobody has read it. */
export function used(usage) {
  if (!usage) return "–";
  const gib = (count) => value(Number((count / 2 ** 30).toPrecision(2)));
  const time = usage.cpuSeconds < 10 ? `${value(usage.cpuSeconds)} s` : seconds(usage.cpuSeconds);
  return `${gib(usage.peakMemoryBytes)} of ${gib(usage.memoryLimitBytes)} GiB, ${time} of processor`;
}
