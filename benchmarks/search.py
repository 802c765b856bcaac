"""How good the default search is: the median regret after 50 trials, beside random search and known results.

python -m benchmarks.search             all problems, 20 seeds: a few minutes
python -m benchmarks.search levy 5      problems whose name holds `levy`, 5 seeds
"""

import multiprocessing
import os
import resource
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.measure import row, seconds
from benchmarks.studies import STUDIES, SyntheticStudy
from vertex_emulator.search import Observation, suggest

TRIALS = 50
SEEDS = 20
AT_ONCE = (1, 4)
MANY_TRIALS = 1000
# One thread in each of the processes: they share the machine already.
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def rows(name_part: str = "", seeds: int = SEEDS) -> Iterator[str]:
    """Render a line per problem whose name contains `name_part`, then time and memory of a single suggestion."""
    os.environ |= ONE_THREAD
    yield f"median regret, {TRIALS} trials, {seeds} seeds   one at a time (at most), four (at most), random search"
    processes = min(os.cpu_count() or 1, 4)
    with multiprocessing.get_context("spawn").Pool(processes, initializer=os.nice, initargs=(10,)) as pool:
        for index, problem in enumerate(STUDIES):
            if name_part in problem.name.lower():
                tasks = [(index, seed, at_once) for at_once in AT_ONCE for seed in range(seeds)]
                regrets = pool.map(_regret_in_worker, tasks, chunksize=1)
                yield _problem_row(problem, regrets[:seeds], regrets[seeds:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = _suggestion_seconds()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield row(f"a suggestion after {MANY_TRIALS:,} trials", took, "s", 0.5, note="median of 5")
    yield row("memory that it takes", (after - before) / 1e3, "MB", note="with numpy and egobox, which stay")


def regret_of(problem: SyntheticStudy, seed: int, at_once: int, algorithm: str = "ALGORITHM_UNSPECIFIED") -> float:
    """Return the best regret of a study whose trials run `at_once` at a time and end in order."""
    study_spec: Any = problem.spec(algorithm)
    observations: list[Observation] = []
    for ended in range(TRIALS):
        while len(observations) < min(TRIALS, ended + at_once):
            observations.append(Observation(suggest(study_spec, observations, seed), "ACTIVE"))
        observations[ended] = _evaluate(problem, observations[ended])
    return min(observation.metrics["regret"] for observation in observations)


def _suggestion_seconds() -> float:
    """Return the median seconds of a suggestion after MANY_TRIALS random trials in the widest space."""
    problem = STUDIES[-1]
    random_spec: Any = problem.spec("RANDOM_SEARCH")
    study_spec: Any = problem.spec("ALGORITHM_UNSPECIFIED")
    observations: list[Observation] = []
    for _ in range(MANY_TRIALS):
        point = suggest(random_spec, observations, 1)
        observations.append(_evaluate(problem, Observation(point, "ACTIVE")))
    return statistics.median(seconds(partial(suggest, study_spec, observations, seed)) for seed in range(5))


def _evaluate(problem: SyntheticStudy, running: Observation) -> Observation:
    return Observation(running.parameters, "SUCCEEDED", {"regret": problem.regret(running.parameters)})


def _regret_in_worker(index_seed_and_at_once: tuple[int, int, int]) -> float:
    index, seed, at_once = index_seed_and_at_once
    return regret_of(STUDIES[index], seed, at_once)


def _problem_row(
    problem: SyntheticStudy, regrets_one_at_a_time: Sequence[float], regrets_four_at_a_time: Sequence[float]
) -> str:
    random = statistics.median(regret_of(problem, seed, 1, "RANDOM_SEARCH") for seed in range(SEEDS))
    anchors = (problem.one_at_a_time, problem.four_at_a_time)
    columns = [
        f"{statistics.median(regrets):13.2g} {'' if anchor is None else f'({anchor:.3g})':9}"
        for regrets, anchor in zip((regrets_one_at_a_time, regrets_four_at_a_time), anchors, strict=True)
    ]
    return f"{problem.name:16}{columns[0]}{columns[1]}{random:9.2g}"


if __name__ == "__main__":
    for line in rows(*sys.argv[1:2], *map(int, sys.argv[2:3])):
        print(line, flush=True)
