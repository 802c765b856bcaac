// What the chart draws: columns of x and, for each series, y.

const MOST_CURVES = 60;

/** The trials whose curves are drawn: all, or the best half and the latest half of as many as can be told apart. */
export function shownTrials(trials, shades) {
  const known = trials.filter((trial) => trial.curve.steps.length);
  if (known.length <= MOST_CURVES) return known;
  const byRank = [...known].sort((a, b) => (shades.get(b.id) ?? -1) - (shades.get(a.id) ?? -1));
  const kept = new Set([...byRank.slice(0, MOST_CURVES / 2), ...known.slice(-MOST_CURVES / 2)]);
  return known.filter((trial) => kept.has(trial));
}

/** A trial's points over `steps` or `seconds`: `[xs, ys]`, as `risingPoints` returns them. */
export function points({ curve }, metric, over) {
  return risingPoints(curve, curve.values[metric], over);
}

/** Points over `steps` or `seconds`: `[xs, ys]`, xs rising; of several at one x, the last. */
export function risingPoints(curve, values, over) {
  const known = curve[over].map((x, i) => [x, values[i]]).filter(([, y]) => y !== null);
  // A trainer that gives no steps reports all at step 0: then they are counted.
  const isCounted = over === "steps" && known.length > 1 && known.every(([x]) => x === known[0][0]);
  const byX = new Map(known.map(([x, y], i) => [isCounted ? i + 1 : x, y]));
  const rising = [...byX].sort((a, b) => a[0] - b[0]);
  return [rising.map(([x]) => x), rising.map(([, y]) => y)];
}

/** Final values by trial number, and the best so far: `[numbers, values, best]`. */
export function progress(trials, { id, goal }) {
  const better = goal === "MINIMIZE" ? Math.min : Math.max;
  const known = trials.filter((trial) => trial.state === "SUCCEEDED" && id in trial.metrics);
  const values = known.map((trial) => trial.metrics[id]);
  const best = [];
  for (const value of values) best.push(best.length ? better(best.at(-1), value) : value);
  return [known.map((trial) => Number(trial.id)), values, best];
}
