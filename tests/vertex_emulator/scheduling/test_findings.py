"""What an ended container tells beyond its exit code, in lines of its job's log."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import custom_job, custom_job_spec
from tests.vertex_emulator.scheduling.steps import CHIEF, inject, log_texts, submit, submit_study
from vertex_api.errors import FOUND_HERE
from vertex_emulator.database.records import Ending, Replica
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.replicas.remains import Remains
from vertex_emulator.scheduling import findings

OUTPUT = {"outputUriPrefix": "gs://b/run"}


class Files(Remains):
    """A container's files without a container."""

    def __init__(self, *names: str, folder: str = "/app", words: Sequence[str] = ()) -> None:
        super().__init__(folder, tuple(words), None, "")
        object.__setattr__(self, "names", names)
        self.names: tuple[str, ...]

    def _at(self, path: str) -> str:
        return (path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path}").rstrip("/")

    def has(self, path: str) -> bool:
        return any(name == self._at(path) or name.startswith(f"{self._at(path)}/") for name in self.names)

    def files(self, path: str, most: int) -> list[str]:
        if self._at(path) in self.names:
            return [""]
        below = f"{self._at(path)}/"
        return sorted(name.removeprefix(below) for name in self.names if name.startswith(below))[:most]


def of_code(line: str, files: Files) -> list[str]:
    return [text.removeprefix(FOUND_HERE) for text in findings.missing_code(["Traceback", line], lambda: files)]


def lost(files: Files, **job_spec: Any) -> list[str]:
    job = custom_job(custom_job_spec(**job_spec))
    return list(findings.lost_outputs(job, CHIEF, files))


def test_a_uri_taken_for_a_path_is_named() -> None:
    (text,) = lost(Files("/app/gs:/b/run/model/weights"), baseOutputDirectory=OUTPUT)
    assert text == (
        "On this machine: workerpool0-0 has written to the folder /app/gs: of its container, where all is lost, here "
        'and on Vertex AI: AIP_MODEL_DIR is a URI, no path; write to os.environ["AIP_MODEL_DIR"].replace("gs://", '
        '"/gcs/"), or by a client of Cloud Storage'
    )


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("/app/gs:/b/run/checkpoints/1.pt", "AIP_CHECKPOINT_DIR is a URI"),
        ("/app/gs:/b/run/logs/events", "AIP_TENSORBOARD_LOG_DIR is a URI"),
        ("/app/gs:/else/where", "gs://… is a URI"),
    ],
)
def test_every_output_folder_is_known(file: str, named: str) -> None:
    (text,) = lost(Files(file), baseOutputDirectory=OUTPUT)
    assert named in text
    assert lost(Files("/app/model/weights"), baseOutputDirectory=OUTPUT) == []


@pytest.mark.parametrize(
    ("line", "files", "found"),
    [
        (
            "/usr/bin/python: No module named trainer.tsk",
            Files("/app/trainer/__init__.py", "/app/trainer/task.py"),
            "the image has no /app/trainer/tsk.py; it has /app/trainer/task.py, /app/trainer/__init__.py",
        ),
        (
            "python: Error while finding module specification for 'trainer.task' "
            "(ModuleNotFoundError: No module named 'trainer')",
            Files("/app/train.py", words=["python", "-m", "trainer.task"]),
            "the image has no /app/trainer/task.py; it has /app/train.py",
        ),
        (
            "ModuleNotFoundError: No module named 'trainer'",
            Files("/app/trainer/task.py", folder="/", words=["python", "-m", "trainer.task"]),
            "trainer is in /app, and Python looks in /: set ENV PYTHONPATH=/app in the Dockerfile, or WORKDIR /app",
        ),
        (
            "ModuleNotFoundError: No module named 'sdofm.data'",
            Files("/src/sdofm/data.py", "/src/scripts/main.py", folder="/", words=["python", "/src/scripts/main.py"]),
            "sdofm is in /src, and Python looks in /src/scripts: set ENV PYTHONPATH=/src in the Dockerfile",
        ),
        (
            "python: can't open file '/app/tarin.py': [Errno 2] No such file or directory",
            Files("/app/train.py", "/app/data.csv"),
            "the image has no /app/tarin.py; it has /app/train.py",
        ),
        (
            "/usr/bin/python: No module named trainer.tune",
            Files(
                "/trainer", folder="/", words=["python", "-m", "trainer.tune"]
            ),  # by `COPY tune.py /trainer`, as in a public file
            "the image has no /trainer/tune.py, as /trainer is a file: a folder as the target of COPY ends with / "
            "(/trainer/)",
        ),
        (
            "python: can't open file '/app/train.py': [Errno 2] No such file or directory",
            Files("/app/Dockerfile"),
            "the image has no /app/train.py; it has no Python file in /app",
        ),
    ],
)
def test_code_in_vain_is_told_with_what_is_there(line: str, files: Files, found: str) -> None:
    assert of_code(line, files) == [found]


@pytest.mark.parametrize("line", ["ModuleNotFoundError: No module named 'torch'", "ValueError: x", ""])
def test_a_library_is_not_looked_for_among_files(line: str) -> None:
    assert of_code("No module named 'lib'", Files("/lib/x.so", words=["python", "train.py"])) == []
    assert of_code(line, Files("/app/train.py", words=["python", "train.py"])) == []


def test_arguments_that_a_shell_drops_are_named() -> None:
    def dropped(*words: str) -> list[str]:
        return list(findings.ignored_args(CHIEF, Files(words=words)))

    (text,) = dropped("/bin/sh", "-c", "python train.py", "--lr=0.1", "--units=8")
    assert 'workerpool0-0 has ignored its arguments (--lr=0.1 --units=8): a shell runs "python train.py"' in text
    for kept in ('python train.py "$@"', "python train.py $0 $*", "x ${1}"):
        assert dropped("bash", "-c", kept, "--lr=0.1") == []
    assert dropped("sh", "-c", "python train.py") == dropped("python", "t.py", "--lr=0.1") == dropped() == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"kind": "preempt", "after": 60}, "preempt has hit nothing: the job has ended after"),
        ({"kind": "fail", "code": 13, "after": 60}, "fail has hit nothing: the job has ended after"),
        ({"kind": "oom", "after": 60}, "oom has hit nothing: the job has ended after"),
        ({"kind": "second-start"}, "second-start has hit nothing: no container has failed"),
    ],
)
def test_a_fault_that_hits_nothing_is_said(emulator: Emulator, fault: dict[str, Any], why: str) -> None:
    inject(emulator, **fault)
    job = submit(emulator)
    emulator.run()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"
    (said,) = [text for text in log_texts(emulator, job) if FOUND_HERE in text]
    assert said.startswith(f"{FOUND_HERE}the injected fault {why}")


def test_a_fault_that_has_hit_is_not_said(emulator: Emulator) -> None:
    inject(emulator, "preempt")
    job = submit(emulator, custom_job_spec(scheduling={"strategy": "SPOT"}))
    emulator.run()
    assert (emulator.job(job).state, emulator.job(job).restarts.preemptions) == ("JOB_STATE_SUCCEEDED", 1)
    assert not any(FOUND_HERE in text for text in log_texts(emulator, job))


def test_files_that_storage_has_not_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "bkt" / "run" / "model"
    folder.mkdir(parents=True)
    (folder / "weights").write_text("1")
    (folder / "link").symlink_to("weights")
    job = custom_job(custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://bkt/run"}))
    assert list(findings.unlike_storage(job, BucketTree(tmp_path))) == []
    os.mkfifo(folder / "pipe")
    os.link(folder / "weights", folder / "same")
    pipe, link = sorted(findings.unlike_storage(job, BucketTree(tmp_path)), key=len)
    assert pipe == f'{FOUND_HERE}"/gcs/bkt/run/model/pipe" is a pipe, which Cloud Storage FUSE refuses on Vertex AI'
    assert " has a hard link, which " in link


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("OSError: [Errno 30] Read-only file system: '/gcs/acme-dta'", "; did you mean acme-data?"),
        ("No such file or directory: '/gcs/acme-dta/x/y.csv'", "; did you mean acme-data?"),
        ("No such file or directory: '/gcs/acme-data/x'", None),
        ("cannot open /mnt/gcs/acme-dta or /gcs/..", None),
        ("/gcs/other-team", "; known: acme-data"),
    ],
)
def test_a_bucket_that_nobody_made_is_named(tmp_path: Path, line: str, said: str | None) -> None:
    (tmp_path / "acme-data").mkdir()
    found = [*findings.missing_bucket(["Traceback", line, line], BucketTree(tmp_path))]
    if said is None:
        assert found == []
    else:
        (text,) = found
        assert text.startswith(f"{FOUND_HERE}there is no bucket ") and text.endswith(said)


def test_many_missing_buckets_are_a_few_lines(tmp_path: Path) -> None:
    lines = [f"/gcs/bucket-{number}/x" for number in range(1000)] + ["/gcs/" + "a" * 10_000_000]
    assert len([*findings.missing_bucket(lines, BucketTree(tmp_path))]) == 5


def test_the_log_of_a_job_has_them(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files("/app/gs:/b", words=["sh", "-c", "python train.py", "--lr=1"])
    monkeypatch.setattr(emulator.machine, "remains", lambda job, replica: files)
    job = submit(emulator)
    emulator.run()
    assert [FOUND_HERE in text for text in log_texts(emulator, job)].count(True) == 2


def test_the_first_trial_speaks_for_all(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(emulator.machine, "remains", lambda job, replica: asked.append(job))
    submit_study(emulator, trials=3)
    emulator.run()
    assert len(asked) == 1


def test_a_container_that_never_started_is_not_asked(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read_log = emulator.machine.read_log

    def read(job: str, replica: Replica, since_ns: int = 0) -> Iterator[LogLine]:
        asked.append(since_ns)
        return read_log(job, replica, since_ns)

    job = submit(emulator)
    emulator.run_ready_steps()
    container = emulator.machine.containers[job, CHIEF]
    # As Docker tells of one whose program it does not find.
    container.status = ReplicaStatus("created", exit_code=127)
    monkeypatch.setattr(emulator.machine, "read_log", read)
    failed = Ending("JOB_STATE_FAILED", 3, "no program", 1)
    statuses = {CHIEF: container.status}
    assert [*emulator.scheduler._custom_jobs._findings(emulator.job(job), failed, statuses)] == []
    assert asked == []
