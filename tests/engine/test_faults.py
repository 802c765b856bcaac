"""Failures: one clear error, no partial results, and a next `up` that continues."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.engine.project import SEARCH, Project, create_project
from tests.vertex_emulator.running import until

WAITS = "--until=/gcs/tests/go"
"""A trainer that is let go in the end."""


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project that declares one tiny job, `train`."""
    with create_project(tmp_path_factory.mktemp("faults")) as project:
        yield project


class TestFailedUps:
    """Tests of one stack, in order: each repairs what has failed in it, and the next one gets further."""

    def test_typos_are_one_line_each_before_any_change(self, stack: Project) -> None:
        declared = deepcopy(stack.declarations)
        tagged = deepcopy(stack.container)
        tagged["imageUrl"] = tagged.pop("imageUri")
        for name, container in {
            "wrong-key": tagged,
            "wrong-type": {**stack.container, "args": [5]},
            "wrong-image": {**stack.container, "imageUri": "${images.trainr}"},
        }.items():
            job = deepcopy(stack.job)
            job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] = container
            stack.declarations["customJobs"][name] = job
        dockerfile = stack.root / "trainer" / "Dockerfile"
        moved = dockerfile.rename(stack.root / "Dockerfile")
        stack.stack["vertex-training:targett"] = "local"
        stack.declare()
        summary = stack.up(fails=True).partition("Diagnostics:")[2]
        path = "jobSpec.workerPoolSpecs[0].containerSpec"
        for line in (
            f"customJobs.wrong-key.{path}.imageUrl: unknown field; did you mean imageUri?",
            f'customJobs.wrong-type.{path}.args[0]: 5 is not a string; write "5" in quotes',
            f"customJobs.wrong-image.{path}.imageUri: ${{images.trainr}} is not declared; did you mean trainer?",
            "images.trainer.dockerfile: there is no trainer/Dockerfile",
        ):
            assert len(re.findall(rf"training/jobs\.yaml:\d+: {re.escape(line)}", summary)) == 1, summary
        assert summary.count("vertex-training:targett: unknown field; did you mean target?") == 1
        assert "5 problems in what is declared:" in summary
        # The second is the engine's own provider, which has looked for records of earlier runs in the state.
        assert stack.resources().keys() <= {"vertex-training-local", "default"}
        assert not stack.data.exists()
        moved.rename(dockerfile)
        del stack.stack["vertex-training:targett"]
        stack.declarations = declared
        stack.declare()

    def test_failed_builds_show_output_and_submit_nothing(self, stack: Project) -> None:
        dockerfile = stack.root / "trainer" / "Dockerfile"
        good = dockerfile.read_text()
        dockerfile.write_text(good + "RUN echo no such wheel && exit 3\n")
        output = stack.up(fails=True)
        assert "trainer" in output and "cannot be built" in output and "no such wheel" in output
        assert stack.list_jobs() == []
        dockerfile.write_text(good)

    def test_a_stopped_docker_is_reported_in_one_line(self, stack: Project) -> None:
        stack.environment["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
        output = stack.up(fails=True)
        assert "Docker does not answer on unix:///nonexistent/docker.sock" in output
        assert stack.list_jobs() == []
        stack.run_emulator("stop")
        del stack.environment["DOCKER_HOST"]

    def test_a_port_in_use_gives_one_line(self, stack: Project) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            stack.stack["vertex-training:emulator"] = {"port": port}
            stack.declare()
            output = stack.up(fails=True)
        assert f"port {port} is in use" in output
        assert "train" not in stack.resources()
        del stack.stack["vertex-training:emulator"]
        stack.declare()

    def test_failing_jobs_show_exit_code_and_log(self, stack: Project) -> None:
        stack.container["args"] = ["--exit=7"]
        stack.declare()
        for _ in range(2):  # when it is submitted, and when it is known already
            output = stack.up(fails=True)
            assert "train failed: The replica workerpool0-0 exited with a non-zero status of 7." in output
            assert "the data is not there" in output
            assert len(stack.list_jobs()) == 1
        stack.container["args"] = []
        stack.declare()

    def test_the_next_up_continues(self, stack: Project) -> None:
        stack.up()
        assert stack.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
        assert len(stack.list_jobs()) == 1


@pytest.fixture(scope="class")
def waiting_up(stack: Project) -> "subprocess.Popen[str]":
    """An `up` that waits for a job and a search, which wait for `_release_trainers`."""
    stack.container["args"] = [WAITS]
    search = deepcopy(SEARCH)
    search["trialJobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = [WAITS]
    stack.declarations["hyperparameterTuningJobs"] = {"search": search}
    stack.declare()
    up = stack.start_pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    until(lambda: _list_job_states(stack) == ["JOB_STATE_RUNNING"] * 2)
    return up


class TestWaitingUp:
    """Tests of one stack, in order, while `up` waits for its jobs."""

    def test_a_concurrent_up_is_rejected_without_harm(
        self, stack: Project, waiting_up: "subprocess.Popen[str]"
    ) -> None:
        assert "locked" in stack.up(fails=True)
        assert _list_job_states(stack) == ["JOB_STATE_RUNNING"] * 2
        assert waiting_up.poll() is None

    def test_jobs_survive_a_killed_emulator(self, stack: Project, waiting_up: "subprocess.Popen[str]") -> None:
        os.kill(stack.endpoint()["pid"], signal.SIGKILL)
        _release_trainers(stack)

        output, _ = waiting_up.communicate(timeout=120)

        assert waiting_up.returncode == 0, output
        results = stack.outputs()["results"]
        assert results["train"]["state"] == "JOB_STATE_SUCCEEDED"
        assert [(trial["id"], trial["state"]) for trial in results["search"]["trials"]] == [
            (number, "SUCCEEDED") for number in "1234"
        ]
        assert len(stack.list_jobs()) == 1
        stack.assert_no_changes()


def _release_trainers(project: Project) -> None:
    file = project.data / "gcs" / "tests" / "go"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def _list_job_states(project: Project) -> list[str]:
    try:
        return [job["state"] for kind in ("customJobs", "hyperparameterTuningJobs") for job in project.list_jobs(kind)]
    except OSError:
        return []
