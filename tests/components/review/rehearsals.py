"""Rehearsals of recorded previews, as `vertex-training rehearse --save` writes them, and the golden reviews of both.

`python -m tests.components.review.rehearsals` writes the golden files anew.
"""

import copy
from typing import Any

from vertex_training.rehearsal_file import Rehearsal
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import Review, build_review

from .recorded_previews import HERE, MANY, find_step, multiply_job, parse, read_recorded

REASON = "The replica workerpool0-0 exited with a non-zero status of 1.\n  its last log lines:\n    ValueError: no data"


def search_of(fields: dict[str, Any], goal: str = "MAXIMIZE", metric: str = "accuracy") -> dict[str, Any]:
    """Return a recorded preview with a search of what its job `train` runs, which runs again too."""
    step = copy.deepcopy(find_step(fields, "train"))
    step["urn"] = step["urn"].replace("CustomJob::train", "HyperparameterTuningJob::search")
    for side in ("oldState", "newState"):
        inputs = step[side]["inputs"]
        study = {"metrics": [{"metricId": metric, "goal": goal}], "parameters": []}
        inputs["spec"] = {"studySpec": study, "maxTrialCount": 2, "trialJobSpec": inputs["spec"]["jobSpec"]}
    return {**fields, "steps": [*fields["steps"], step]}


def report(name: str, accuracy: float | None, before: float | None = 0.941, **fields: Any) -> Any:
    """Return what a rehearsal says of a job that has succeeded, with an accuracy beside that of its base."""
    replica = {"name": "workerpool0-0", "machineType": "n1-standard-4", "peakMemoryBytes": 2254857830}
    found = {
        "name": name,
        "kind": "CustomJob",
        "outcome": "succeeded",
        "seconds": 41.2,
        "replicas": [{**replica, "memoryBytes": 16106127360, "cpuSeconds": 38.1, "vcpus": 4}],
        "files": {"count": 3, "bytes": 12034, "names": ["model/metrics.json", "model/model.joblib"]},
        "buckets": ["acme-dev-vertex-training-dev"],
    }
    if accuracy is not None:
        found["metrics"] = {"accuracy": accuracy}
    if before is not None:
        found["base"] = {
            "outcome": "succeeded",
            "seconds": 40.0,
            "metrics": {"accuracy": before},
            "buckets": ["acme-dev-vertex-training-dev"],
        }
    return {**found, **fields}


def rehearsal(*jobs: Any) -> Rehearsal:
    """Return the rehearsal of these jobs of stack `dev`, compared with main."""
    whole = {"version": 1, "project": "vertex-training", "stack": "dev", "commit": "0a1b2c3d4e5f", "base": "main.json"}
    return {**whole, "jobs": [*jobs]}  # type: ignore[typeddict-item]


def rehearsed_edit() -> Review:
    """Return the review of an edit of code after which a job fails, and a search has a better model."""
    jobs = (
        report("train", 0.9523, hosts=["models.acme.dev"], newEnv=["HF_TOKEN"]),
        report("search", 0.9611, 0.9583, kind="HyperparameterTuningJob", seconds=95),
        report("evaluate", None, outcome="failed", seconds=3.0, reason=REASON, files={"count": 0, "bytes": 0}),
    )
    return build_review(parse(search_of(read_recorded("code-edit"))), rehearsal=rehearsal(*jobs))


def rehearsed_many() -> Review:
    """Return the review of many jobs, some of which fail, are skipped, or have worse metrics."""
    fields = search_of(multiply_job("machine-change", MANY))
    names = [each["urn"].rpartition("::")[2] for each in fields["steps"] if "-of-a-long-name" in each["urn"]]
    jobs = [report("train", 0.95), report("search", 0.96, kind="HyperparameterTuningJob")]
    for number, name in enumerate(names[:-5]):
        if number % 100 == 3:
            jobs.append(report(name, None, outcome="failed", reason=f"{REASON} in part {number}"))
        elif number % 100 == 4:
            jobs.append({"name": name, "kind": "CustomJob", "outcome": "skipped", "reason": "uses secrets"})
        else:
            jobs.append(report(name, 0.9 + number / 10_000, seconds=float(number)))
    return build_review(parse(fields), rehearsal=rehearsal(*jobs))


CASES = {"rehearsed": rehearsed_edit, f"{MANY}-rehearsed": rehearsed_many}
"""By the name of their golden file."""


if __name__ == "__main__":
    for case, build in CASES.items():
        (HERE / "golden" / f"{case}.md").write_text(render_markdown(build()))
