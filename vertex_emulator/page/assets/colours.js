// Colours in both schemes: those that mean how good a trial is, of which good ones stand out more, and those of a few lines.
import { useEffect, useState } from "./vendor/htm/standalone.module.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** A CSS colour for a rank from 0 to 1; a trial without one is grey. */
export function shade(rank) {
  const [worse, better, none] = dark.matches ? ["#5b6472", "#7cc4ff", "#6b7380"] : ["#b9c1cc", "#0b57d0", "#9aa3af"];
  return rank === undefined ? none : `color-mix(in oklab, ${better} ${Math.round(rank * 100)}%, ${worse})`;
}

const LINES = [["#0b57d0", "#7cc4ff"], ["#b25000", "#ffb868"], ["#12672b", "#7ddc95"], ["#8e24aa", "#dba8f5"], ["#00696b", "#6fd8d8"], ["#b3261e", "#f5b5b0"]];

/** How many lines can be told apart by colour. */
export const MOST_LINE_COLOURS = LINES.length;

/** The colour of the i-th of a few lines that mean different things. */
export function lineColour(i) {
  return LINES[i % LINES.length][dark.matches ? 1 : 0];
}

/** A colour of the style sheet as it comes out in the present scheme, for canvases. */
export function property(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Changes with the scheme, so that what is drawn can be drawn again. */
export function useScheme() {
  const [isDark, set] = useState(dark.matches);
  useEffect(() => {
    const change = () => set(dark.matches);
    dark.addEventListener("change", change);
    return () => dark.removeEventListener("change", change);
  }, []);
  return isDark;
}
