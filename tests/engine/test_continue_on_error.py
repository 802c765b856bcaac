"""`pulumi up --continue-on-error`: what does not depend on a failure goes through, and nobody sees a traceback."""

from copy import deepcopy
from typing import Any

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE


def job(command: str, **lifecycle: Any) -> dict[str, Any]:
    """Return a job that runs a command of the shell, and is waited for."""
    container = {"imageUri": IMAGE, "command": ["sh", "-c", command]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return {"jobSpec": {"workerPoolSpecs": [pool]}, "lifecycle": {"wait": True, **lifecycle}}


def edit(job: dict[str, Any], command: str) -> None:
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"][-1] = command


def test_independent_jobs_and_exports_go_through(project: Project) -> None:
    project.use_own_image("continue on error")
    jobs = project.declarations["customJobs"]
    jobs |= {
        "refused": job("true"),
        "good": job("true"),
        "after-refused": job("true", after=["refused"]),
        "failing": job("true", after=["good"]),
    }
    project.declare()
    project.up()
    before = project.resources()
    assert project.outputs()["results"].keys() == {"train", "refused", "good", "after-refused", "failing"}

    valid = deepcopy(project.declarations)
    dockerfile = project.root / "trainer" / "Dockerfile"
    buildable = dockerfile.read_text()
    dockerfile.write_text(f"{buildable}RUN echo no such wheel && exit 3\n")
    for name, command in {
        "refused": "true 2",
        "good": "true 2",
        "after-refused": "true 2",
        "failing": "exit 7",
    }.items():
        edit(jobs[name], command)
    project.declare()
    project.request("POST", "/vertex_emulator/faults", {"kind": "quota", "name": "refused"})
    summary = project.up("--continue-on-error", fails=True).partition("Diagnostics:")[2]
    for message in ("no such wheel", "refused: not submitted: the quota in us-central1", "failing failed: The replica"):
        assert message in summary, summary
    assert summary.count("error: ") == 4, summary  # these three, and "update failed"
    now, outputs = project.resources(), project.outputs()
    assert now["refused"]["pendingReplacement"]
    assert now["train"]["id"] == before["train"]["id"] and now["after-refused"]["id"] == before["after-refused"]["id"]
    assert now["good"]["id"] != before["good"]["id"]
    assert outputs["results"] == {"good": now["wait-for-upstream-1"]["outputs"]["results"]["good"]}
    assert outputs["jobs"]["failing"]["state"] == "JOB_STATE_FAILED"
    assert outputs["jobs"]["good"]["state"] == "JOB_STATE_SUCCEEDED"
    assert [name for name, run in outputs["jobs"].items() if run is None] == ["after-refused", "refused", "train"]
    assert outputs["pinnedImages"] == {"trainer": None}

    project.declarations = valid
    dockerfile.write_text(buildable)
    project.declare()
    project.up()
    assert project.outputs()["results"].keys() == {"train", "refused", "good", "after-refused", "failing"}
    project.assert_no_changes()


PROGRAM = """\
import pulumi

from vertex_training import Completion, CustomJob, run


def job(*args):
    container = {"imageUri": "IMAGE", "command": ["true"], "args": [*args]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return {"displayName": args[0], "jobSpec": {"workerPoolSpecs": [pool]}}


def program(_):
    refused = CustomJob("refused", job("refused"))
    waited = Completion("waited", {"refused": refused})
    CustomJob("uses-id", job("a", refused.id))
    after = pulumi.ResourceOptions(depends_on=[waited])
    name = "${jobs.refused.name}"
    CustomJob("after", job("after", name), jobs={"refused": refused}, opts=after)
    good = CustomJob("good", job("good"))
    done = Completion("done", {"good": good})
    pulumi.export("refused", waited.results.apply(lambda results: results["refused"]["state"]))
    pulumi.export("page", refused.run["page"])
    pulumi.export("good", done.results["good"]["state"])


run(program)
""".replace("IMAGE", IMAGE)


def test_a_program_goes_on_without_a_refused_job(project: Project) -> None:
    (project.root / "__main__.py").write_text(PROGRAM)
    del project.stack["vertex-training:include"]
    project.declare()
    project.start_emulator()
    project.request("POST", "/vertex_emulator/faults", {"kind": "quota", "name": "refused"})
    output = project.up("--continue-on-error", fails=True).partition("Diagnostics:")[2]
    assert output.count("refused: not submitted: the quota in us-central1") == 1, output
    assert project.outputs()["good"] == "JOB_STATE_SUCCEEDED"
    assert {"refused", "waited", "uses-id", "after"}.isdisjoint(project.resources())

    project.up()
    assert project.outputs()["refused"] == "JOB_STATE_SUCCEEDED"
    project.assert_no_changes()
