"""What a stack keeps of its last runs: through the real engine, on both targets, from the state alone."""

from typing import Any

from vertex_training.review.document import PreviewDocument
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import build_review

from tests.engine.cloud import CloudProject
from tests.engine.project import Project
from tests.vertex_emulator.running import until

HOURLY = 0.2700022
"""Of n1-standard-4 in europe-west4, as `test_cost_and_quota` computes it."""


def line(day: int, seconds: int) -> str:
    usd = HOURLY * seconds / 3600
    return f"2026-10-{day:02}T09:00:00Z {seconds} s on 1 n1-standard-4: {usd:,.2f} USD at {HOURLY:.4f} an hour"


def keep(project: Project, records: dict[str, list[str]]) -> None:
    """Put records into the stack's state, as if its updates had kept them."""

    def put(state: dict[str, Any]) -> None:
        (stack,) = (each for each in state["resources"] if each["type"] == "pulumi:pulumi:Stack")
        stack["outputs"]["runs"] = {name: "\n".join(lines) for name, lines in records.items()}

    project.edit_state(put)


def test_ten_runs_give_a_range_and_an_eleventh_ends_the_first(cloud: CloudProject) -> None:
    told = cloud.up()
    assert "train: took " in told and " USD by list price" in told
    (first,) = cloud.outputs()["runs"]["train"].splitlines()
    assert " s on 1 n1-standard-4: " in first and first == cloud.outputs()["results"]["train"]["took"]
    # Eight runs of two hours and more, and two slow ones of six and seven hours.
    seconds = [7200 + 60 * number for number in range(8)]
    lines = [line(day, each) for day, each in enumerate([*seconds[:4], 21600, *seconds[4:], 25200], 1)]
    keep(cloud, {"train": lines})
    shown = cloud.pulumi("preview", "--stack", "dev", "--expect-no-changes")
    # 2 h x 0.27 = 0.54, 7 h x 0.27 = 1.89; the mean of all ten, 10,608 s, is 0.7956.
    assert "  train: the last 10 runs took 0.54 to 1.89 USD (2 to 7 h)\n" in shown
    assert ", 0.80 USD expected by earlier runs\n" in shown
    assert "runs:" not in shown  # an output that changes would be listed
    cloud.job["lifecycle"]["rerun"] = "2"
    cloud.stack["vertex-training:guardrails"] = {"maxExpectedCost": 0.7}
    cloud.declare()
    assert (
        "stacks/Pulumi.dev.yaml:" in (refused := cloud.pulumi("preview", "--stack", "dev", fails=True))
        and "guardrails.maxExpectedCost: 0.80 USD expected, the mean of the last runs by list price; allowed: 0.70 for"
        in refused
    )
    del cloud.stack["vertex-training:guardrails"]
    cloud.declare()
    replaced = cloud.pulumi("preview", "--stack", "dev", "--json", "--show-sames")
    assert "`train`: the last 10 runs took 0.54 to 1.89 USD (2 to 7 h)" in review_of(replaced)
    shown, _ = cloud.preview_and_up("--diff")
    assert "2026-10-" not in shown
    kept = cloud.outputs()["runs"]["train"].splitlines()
    assert kept[:9] == lines[1:] and kept[9] == cloud.outputs()["results"]["train"]["took"]
    cloud.pulumi("up", "--yes", "--stack", "dev", "--expect-no-changes")  # with its preview
    assert cloud.outputs()["runs"]["train"].splitlines() == kept


def review_of(text: str) -> str:
    return render_markdown(build_review(PreviewDocument.parse(text, "the preview")))


def test_a_job_that_is_not_waited_for_is_kept_once_refreshed(project: Project) -> None:
    del project.job["lifecycle"]
    project.declare()
    project.up()
    assert "runs" not in project.outputs()
    until(lambda: [job for job in project.list_jobs() if job["state"] == "JOB_STATE_SUCCEEDED"])
    project.up("--refresh", "--expect-no-changes")
    assert " s on this machine, declared for 1 n1-standard-4" in project.outputs()["runs"]["train"]
