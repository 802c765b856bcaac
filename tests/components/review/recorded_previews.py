"""Previews that the real engine printed (`python -m tests.engine.record_previews`), and the golden reviews of them.

The rehearsal of `readme` is one of examples/digits with a default learning rate of 0.01 in place of 0.003, against that
of the checkout, as `vertex-training rehearse --set maxTrialCount=2` saves it.
"""

import copy
import json
from pathlib import Path
from typing import Any

from vertex_training.rehearsal_file import load
from vertex_training.review.document import PreviewDocument
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import build_review

HERE = Path(__file__).parent
CASES = sorted(file.stem for file in (HERE / "recorded").glob("*.json"))
MANY = 1000


def read_recorded(case: str) -> dict[str, Any]:
    """Return the fields of a recorded preview."""
    fields: dict[str, Any] = json.loads((HERE / "recorded" / f"{case}.json").read_text())
    return fields


def parse(fields: dict[str, Any]) -> PreviewDocument:
    """Return the preview with these fields."""
    return PreviewDocument.parse(json.dumps(fields), "preview.json")


def find_step(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of the step of the resource with this name that is no component."""
    steps: list[dict[str, Any]] = [
        each
        for each in fields["steps"]
        if each["urn"].endswith(f"::{name}") and (each.get("newState") or each.get("oldState"))["custom"]
    ]
    (step,) = steps
    return step


def multiply_job(case: str, count: int) -> dict[str, Any]:
    """Return a recorded preview with `count` more jobs like `train`, each with a change of its own."""
    fields = read_recorded(case)
    train = find_step(fields, "train")
    for number in range(count):
        step = copy.deepcopy(train)
        step["urn"] = f"{step['urn']}-of-a-long-name-number-{number:04}"
        container = step["newState"]["inputs"]["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
        container["args"] = [f"--learning-rate=0.{number:04}", "--a-long-argument=" + "x" * 200]
        fields["steps"].append(step)
    return fields


def render_case(case: str) -> str:
    """Return the review of a recorded preview, or of one with 1,000 jobs."""
    fields = multiply_job("machine-change", MANY) if case == f"{MANY}-jobs" else read_recorded(case)
    rehearsed = HERE / "recorded" / "rehearsals" / f"{case}.json"
    return render_markdown(build_review(parse(fields), rehearsal=load(rehearsed) if rehearsed.exists() else None))


if __name__ == "__main__":
    for each in [*CASES, f"{MANY}-jobs"]:
        (HERE / "golden" / f"{each}.md").write_text(render_case(each))
