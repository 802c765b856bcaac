"""Four pull requests on a project like examples/digits: what the comment of each says, and that it says so first.

`python -m tests.engine.test_pull_requests` writes the golden files anew.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.engine.project import Project, create_project

GOLDEN = Path(__file__).parent / "golden" / "pull-requests"
POOL = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "containerSpec": {"imageUri": "${images.digits}", "args": ["--epochs=${vars.epochs}"]},
}
DECLARATIONS: dict[str, Any] = {
    "vars": {"epochs": 10},
    "images": {"digits": {"context": "digits"}},
    "customJobs": {"digits": {"jobSpec": {"workerPoolSpecs": [POOL]}, "rehearse": {"vars": {"epochs": 3}}}},
    "hyperparameterTuningJobs": {
        "digits-search": {
            "studySpec": {
                "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
                # One value, so that the best trial of each rehearsal has the same parameters.
                "parameters": [{"parameterId": "learning-rate", "discreteValueSpec": {"values": [0.25]}}],
            },
            "maxTrialCount": 4,
            "parallelTrialCount": 1,
            "trialJobSpec": {"workerPoolSpecs": [POOL]},
            "rehearse": {"vars": {"epochs": 3}, "maxTrialCount": 2},
        }
    },
}
MODEL = "model = weights\n"
AVERAGED = "model = [row[:] for row in weights]\n"
AVERAGING = (
    "        model = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(model, weights, strict=True)]\n"
    "    accuracy = sum"
)


def edited(*edits: tuple[str, str]) -> Callable[[str], str]:
    """Return an edit of a text: each first text in it becomes the second one."""

    def edit(text: str) -> str:
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        return text

    return edit


PULL_REQUESTS = {
    "better": edited((MODEL, AVERAGED), ("    accuracy = sum", AVERAGING)),
    "worse": edited(("images(400", "images(100")),
    "crash": edited((MODEL, 'model = json.loads(Path("/weights.json").read_text())\n')),
    "lost-metric": edited(('["accuracy"]', '["acc"]')),
}
"""What each does to the trainer's file."""
ANSWERS = {
    "better": "**Model**: better: `digits` `accuracy` 0.88 → 0.884, `digits-search` `accuracy` 0.88 → 0.884\n",
    "worse": "**Model**: ⚠️ worse: `digits` `accuracy` 0.88 → 0.724, `digits-search` `accuracy` 0.88 → 0.724\n",
    "crash": "**Runs**: ❌ no, 2 of 2 jobs failed: `digits`, `digits-search`: `The replica workerpool0-0 exited with ",
    "lost-metric": "**Model**: ❌ `digits-search`, `digits` no longer report `accuracy`, which `digits-search` needs\n",
}
"""What each comment says in its first five lines."""


def test_comments_answer_four_pull_requests(project: Project) -> None:
    comments = comments_of(project)
    for name, comment in comments.items():
        assert ANSWERS[name] in "".join(comment.splitlines(keepends=True)[:5]), comment
        assert comment == (GOLDEN / f"{name}.md").read_text()
    assert comments.keys() == ANSWERS.keys() == PULL_REQUESTS.keys()
    assert "digits" in project.resources() and project.steps()  # a rehearsal applied nothing of the last one


def comments_of(project: Project) -> dict[str, str]:
    """Return the comment of each pull request on a main branch that is deployed and rehearsed."""
    shutil.copytree(Path(__file__).parent / "digits", project.root / "digits")
    project.declarations = DECLARATIONS
    project.declare()
    project.up()
    run(project, "vertex-training rehearse --stack local --save main.json")
    trainer = project.root / "digits" / "trainer.py"
    main = trainer.read_text()
    comments = {}
    for name, edit in PULL_REQUESTS.items():
        trainer.write_text(edit(main))
        run(project, "pulumi preview --stack local --json --show-sames --non-interactive > preview.json")
        run(project, "vertex-training rehearse preview.json --against main.json --save rehearsal.json")
        comments[name] = normal(run(project, "vertex-training review preview.json --rehearsal rehearsal.json"))
    return comments


def run(project: Project, command: str) -> str:
    """Run a command of a shell in the project, and return its standard output."""
    done = subprocess.run(
        ["bash", "-c", command.replace("vertex-training ", f"{shlex.quote(sys.executable)} -m vertex_training.cli ")],
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    failed_jobs = done.returncode == 1 and "rehearse" in command and (project.root / "rehearsal.json").exists()
    assert (done.returncode == 0 or failed_jobs) and "Traceback (most" not in done.stderr, done.stderr
    return done.stdout


def normal(comment: str) -> str:
    """Return a comment without what differs from machine to machine: times, sizes of files, and what Docker tells."""
    times = re.sub(r"(ran|after) (under 1|\d+) s( → (under 1|\d+) s)?", r"\1 N s", comment)
    sizes = re.sub(r"(\d files), [\d.]+ k?B", r"\1, N B", times)
    used = re.sub(r", peak memory [\d.]+( of [\d.]+)? GiB", "", sizes)
    return re.sub(r"no new (bucket|permission).* or variable", "no new variable", used)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, create_project(Path(folder)) as made:
        for case, text in comments_of(made).items():
            (GOLDEN / f"{case}.md").write_text(text)
