// What the page asks the emulator for, and how it hears that something has changed.
import { useEffect, useRef, useState } from "./vendor/htm/standalone.module.js";

const AGAIN_MILLISECONDS = 2000;
const TRIES = 4;

/** Do it; where it fails, do it again, a few times or as often as said. Chromium gives up every request that is under way when a network
 * appears or goes (ERR_NETWORK_CHANGED), and the networks of jobs do. */
export async function persistently(work, tries = TRIES) {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (tried >= tries) throw error;
      await new Promise((done) => setTimeout(done, Math.min(150 * tried, AGAIN_MILLISECONDS)));
    }
  }
}

/** Ask; the answer's JSON. Only what can be asked twice is. Throws an Error with the emulator's own words. */
export async function ask(path, { method = "GET", body, isRepeatable = method === "GET" } = {}) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const send = async () => {
    const reply = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    const answer = reply.json();
    return [reply, await (reply.ok && isRepeatable ? answer : answer.catch(() => ({})))]; // it may be cut off, too
  };
  const [reply, answer] = await (isRepeatable ? persistently(send) : send());
  if (reply.ok) return answer;
  const error = new Error(answer.error?.message ?? `The emulator answered ${reply.status}.`);
  error.code = reply.status;
  throw error;
}

/** Listen to changes of all jobs, or of one. `refresh(ids)` comes with the ids that changed; with none after every
 * (re)connection, when anything may have. Returns `live` or `lost`. */
export function useLive(refresh, job) {
  const [status, setStatus] = useState("live");
  const current = useRef(refresh);
  current.current = refresh;
  useEffect(() => {
    let source = null;
    let timer = null;
    const close = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const open = () => {
      close();
      source = new EventSource(`/vertex_emulator/page/events${job ? `?job=${encodeURIComponent(job)}` : ""}`);
      source.addEventListener("ready", () => {
        setStatus("live");
        current.current();
      });
      source.addEventListener("changed", (event) => current.current(JSON.parse(event.data)));
      source.addEventListener("error", () => {
        setStatus("lost");
        // A browser tries again by itself after a lost connection, but not after an answer that is an error.
        if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MILLISECONDS);
      });
    };
    // A browser has six connections to one host for all of its tabs: a tab that nobody sees must not keep one.
    const follow = () => (document.hidden ? close() : open());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      close();
    };
  }, [job]);
  return status;
}

/** Load and keep a resource: `[data, error, refresh]`. Calls to `refresh` that come while it loads become one more. */
export function useResource(path) {
  const [state, setState] = useState({ data: null, error: null });
  const work = useRef({ isBusy: false, isStale: false });
  const refresh = async () => {
    const own = work.current;
    own.isStale = true;
    if (own.isBusy) return;
    own.isBusy = true;
    while (own.isStale) {
      own.isStale = false;
      const started = performance.now();
      try {
        const data = await ask(path);
        setState({ data, error: null });
      } catch (error) {
        setState((before) => ({ data: error.code === 404 ? null : before.data, error }));
      }
      // A study of a thousand trials is large: the more it takes, the less often it is asked for.
      await new Promise((done) => setTimeout(done, performance.now() - started));
    }
    own.isBusy = false;
  };
  return [state.data, state.error, refresh];
}
