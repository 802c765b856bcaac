// The lines on the page. Not a view of the library: thousands of lines are added to, never drawn anew.

const MOST_LINES = 5000;
const AT_END_PIXELS = 24;

export class LogLines {
  /** Fills `place`, which scrolls by itself; `onEnd(isAtEnd)` comes when the reader leaves or reaches the last line. */
  constructor(place, onEnd) {
    this.place = place;
    this.lines = [];
    this.keys = new Set();
    this.isAtEnd = true;
    place.addEventListener("scroll", () => {
      const isAtEnd = place.scrollTop + place.clientHeight > place.scrollHeight - AT_END_PIXELS;
      if (isAtEnd !== this.isAtEnd) onEnd((this.isAtEnd = isAtEnd));
    });
  }

  get last() {
    return this.lines.at(-1)?.line;
  }

  clear() {
    this.lines = [];
    this.keys.clear();
    this.place.replaceChildren();
  }

  /** Add those that are not there yet, each at its time. */
  add(lines) {
    const wasAtEnd = this.isAtEnd;
    const isFull = this.lines.length >= MOST_LINES;
    for (const line of lines) {
      if (this.keys.has(line.key) || (isFull && line.at < this.lines[0].line.at)) continue;
      let i = this.lines.length;
      while (i > 0 && this.lines[i - 1].line.at > line.at) i -= 1;
      const node = lineNode(line);
      this.place.insertBefore(node, this.lines[i]?.node ?? null);
      this.lines.splice(i, 0, { line, node });
      this.keys.add(line.key);
    }
    for (const { line, node } of this.lines.splice(0, Math.max(0, this.lines.length - MOST_LINES))) {
      node.remove();
      this.keys.delete(line.key);
    }
    if (wasAtEnd) this.toEnd();
  }

  toEnd() {
    this.place.scrollTop = this.place.scrollHeight;
  }

  get text() {
    return this.lines.map(({ line }) => `${line.at} ${line.severity} ${origin(line)} ${line.text}`).join("\n");
  }
}

function origin({ trial, task }) {
  return trial ? `trial ${trial} ${task}` : task;
}

function lineNode(line) {
  const node = part("div", `line ${line.severity.toLowerCase()}`);
  const moment = part("time", "at", new Date(line.at).toLocaleTimeString(undefined, { hourCycle: "h23" }));
  moment.dateTime = moment.title = line.at;
  const severity = part("span", "severity", line.severity === "DEFAULT" ? "" : line.severity[0]);
  severity.title = line.severity;
  // What a container wrote is only ever text.
  node.append(moment, severity, part("span", "task", origin(line)), part("span", "text", line.text));
  return node;
}

function part(tag, name, text = "") {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  return node;
}
