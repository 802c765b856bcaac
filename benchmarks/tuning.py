"""How good the default search algorithm is: median regret at 50 trials, beside random search and known results."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from typing import Any

from benchmarks.problems import PROBLEMS, Problem
from emulator.search import Observation, suggest

TRIALS = 50
SEEDS = 20
ONE, FOUR = 1, 4


def regret(
    problem: Problem, seed: int, at_once: int, algorithm: str = "ALGORITHM_UNSPECIFIED", trials: int = TRIALS
) -> float:
    """The best of a study's trials, `at_once` of them running at any time, the oldest ending first."""
    study_spec: Any = problem.study_spec(algorithm)
    observations: list[Observation] = []
    ended = 0
    while ended < trials:
        while len(observations) < trials and len(observations) - ended < at_once:
            observations.append(Observation(suggest(study_spec, observations, seed), "ACTIVE"))
        point = observations[ended].parameters
        observations[ended] = Observation(point, "SUCCEEDED", {"regret": problem.regret(point)})
        ended += 1
    return min(observation.metrics["regret"] for observation in observations)


def _study(task: tuple[int, int, int]) -> float:
    index, seed, at_once = task
    return regret(PROBLEMS[index], seed, at_once)


if __name__ == "__main__":
    os.nice(10)
    which = [int(c) for c in sys.argv[1]] if len(sys.argv) > 1 else range(7)
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS
    modes = [int(c) for c in sys.argv[3].split(",")] if len(sys.argv) > 3 else [1, 4]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for index in which:
            problem = PROBLEMS[index]
            out = [problem.name]
            for at_once in modes:
                t = time.perf_counter()
                found = pool.map(_study, [(index, seed, at_once) for seed in range(seeds)], chunksize=1)
                q = statistics.quantiles(found, n=4)
                out.append(
                    f"{at_once}: {statistics.median(found):.3g} [{q[0]:.2g} {q[2]:.2g}] ({time.perf_counter() - t:.0f}s)"
                )
            rnd = statistics.median(regret(problem, seed, 1, "RANDOM_SEARCH") for seed in range(seeds))
            print(*out, f"random {rnd:.3g}", problem.one_at_a_time, problem.four_at_a_time, flush=True)
