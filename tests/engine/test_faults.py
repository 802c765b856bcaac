"""Failures: one clear error, no partial results, and a next `up` that continues."""

import os
import re
import signal
import socket
from copy import deepcopy

from tests.engine.killing import kill_pulumi_at
from tests.engine.project import SEARCH, Project
from tests.vertex_emulator.running import until

WAITS = "--until=/gcs/tests/go"
"""A trainer that is let go in the end."""


def test_up_adopts_the_job_of_a_killed_up(project: Project) -> None:
    kill_pulumi_at(project, "POST", "/customJobs", "up")
    (posted,) = project.list_jobs()

    project.up()

    (job,) = project.list_jobs()
    assert job["name"] == posted["name"]
    assert project.outputs()["jobs"]["train"]["name"] == posted["name"]
    project.assert_no_changes()


def test_an_up_killed_before_submission_leaves_no_orphan(project: Project) -> None:
    kill_pulumi_at(project, "GET", "pulumi_stack", "up")
    assert project.list_jobs() == []

    project.up()
    assert len(project.list_jobs()) == 1


def test_jobs_survive_a_killed_emulator(project: Project) -> None:
    project.container["args"] = [WAITS]
    search = deepcopy(SEARCH)
    search["trialJobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = [WAITS]
    project.declarations["hyperparameterTuningJobs"] = {"search": search}
    project.declare()
    up = project.start_pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    until(lambda: _list_job_states(project) == ["JOB_STATE_RUNNING"] * 2)
    os.kill(project.endpoint()["pid"], signal.SIGKILL)
    _release_trainers(project)

    output, _ = up.communicate(timeout=120)

    assert up.returncode == 0, output
    results = project.outputs()["results"]
    assert results["train"]["state"] == "JOB_STATE_SUCCEEDED"
    assert [(trial["id"], trial["state"]) for trial in results["search"]["trials"]] == [
        (number, "SUCCEEDED") for number in "1234"
    ]
    assert len(project.list_jobs()) == 1
    project.assert_no_changes()


def test_a_concurrent_up_is_rejected_without_harm(project: Project) -> None:
    project.container["args"] = [WAITS]
    project.declare()
    first = project.start_pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    until(lambda: _list_job_states(project) == ["JOB_STATE_RUNNING"])
    assert "locked" in project.up(fails=True)
    _release_trainers(project)
    output, _ = first.communicate(timeout=120)
    assert first.returncode == 0, output
    assert len(project.list_jobs()) == 1


def test_typos_are_one_line_each_before_any_change(project: Project) -> None:
    tagged = deepcopy(project.container)
    tagged["imageUrl"] = tagged.pop("imageUri")
    for name, container in {
        "wrong-key": tagged,
        "wrong-type": {**project.container, "args": [5]},
        "wrong-image": {**project.container, "imageUri": "${images.trainr}"},
    }.items():
        job = deepcopy(project.job)
        job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] = container
        project.declarations["customJobs"][name] = job
    (project.root / "trainer" / "Dockerfile").unlink()
    project.declare()
    summary = project.up(fails=True).partition("Diagnostics:")[2]
    path = "jobSpec.workerPoolSpecs[0].containerSpec"
    for line in (
        f"customJobs.wrong-key.{path}.imageUrl: unknown field; did you mean imageUri?",
        f'customJobs.wrong-type.{path}.args[0]: 5 is not a string; write "5" in quotes',
        f"customJobs.wrong-image.{path}.imageUri: ${{images.trainr}} is not declared; did you mean trainer?",
        "images.trainer.dockerfile: there is no trainer/Dockerfile",
    ):
        assert len(re.findall(rf"training/jobs\.yaml:\d+: {re.escape(line)}", summary)) == 1, summary
    assert "4 problems in what is declared:" in summary

    project.stack["vertex-training:targett"] = "local"
    project.declare()
    assert "vertex-training:targett: unknown field; did you mean target?" in project.up(fails=True)
    assert project.resources().keys() <= {"vertex-training-local"}
    assert not project.data.exists()


def test_a_stopped_docker_is_reported_in_one_line(project: Project) -> None:
    project.environment["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    output = project.up(fails=True)
    assert "Docker does not answer on unix:///nonexistent/docker.sock" in output
    assert project.list_jobs() == []
    project.run_emulator("stop")
    del project.environment["DOCKER_HOST"]
    project.up()


def test_a_port_in_use_gives_one_line(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        project.stack["vertex-training:emulator"] = {"port": port}
        project.declare()
        output = project.up(fails=True)
    assert f"port {port} is in use" in output
    assert "train" not in project.resources()
    del project.stack["vertex-training:emulator"]
    project.declare()
    project.up()


def test_failed_builds_show_output_and_submit_nothing(project: Project) -> None:
    dockerfile = project.root / "trainer" / "Dockerfile"
    good = dockerfile.read_text()
    dockerfile.write_text(good + "RUN echo no such wheel && exit 3\n")
    output = project.up(fails=True)
    assert "trainer" in output and "cannot be built" in output and "no such wheel" in output
    assert project.list_jobs() == []
    dockerfile.write_text(good)
    project.up()


def _release_trainers(project: Project) -> None:
    file = project.data / "gcs" / "tests" / "go"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def _list_job_states(project: Project) -> list[str]:
    try:
        return [job["state"] for kind in ("customJobs", "hyperparameterTuningJobs") for job in project.list_jobs(kind)]
    except OSError:
        return []
