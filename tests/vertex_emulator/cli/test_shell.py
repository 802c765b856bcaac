"""`vertex-emulator shell` in containers of a real emulator, in a pipe and at a terminal."""

import fcntl
import html
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal import ProgramAtTerminal
from tests.vertex_emulator.running import (
    PARENT,
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    labelled,
    pool,
    until,
)
from vertex_emulator.cli.shell import choose_container
from vertex_emulator.errors import ReplicaNotRunning

WAIT = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(600)"
WITHOUT_SHELLS = "import os; [os.remove(f'/usr/bin/{name}') for name in ('sh', 'bash')];" + WAIT


@pytest.fixture(scope="module")
def job(shared: RunningEmulator) -> Iterator[str]:
    """A running job of two replicas, the second without any shell."""
    name = shared.create(custom_job(pool(WAIT), pool(WITHOUT_SHELLS), enableWebAccess=True))
    until(lambda: len(shared.lines(name)) == 2, "both replicas")
    yield name
    shared.call("POST", f"v1/{name}:cancel")
    shared.ended(name)


def arguments(data: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "vertex_emulator", "shell", "--data", str(data), *more]


def test_a_piped_script_runs_with_its_exit_code(shared: RunningEmulator, job: str) -> None:
    script = "echo $RANK; ls -d /gcs; echo aside >&2; head -c 300000 /dev/zero; exit 7\n"
    done = subprocess.run(arguments(shared.data, job.rpartition("/")[2]), input=script.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (7, b"aside\n")
    assert done.stdout == b"0\n/gcs\n" + bytes(300000)


def test_a_terminal_has_its_size_keys_and_restoration(shared: RunningEmulator, job: str) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(arguments(shared.data, job), stdin=theirs, stdout=theirs, stderr=theirs)
    shown = ""

    def read_until(text: str) -> None:
        nonlocal shown
        while text not in shown:
            assert select.select([ours], [], [], PATIENCE_SECONDS)[0], shown
            shown += os.read(ours, 65536).decode(errors="replace")
        shown = shown.partition(text)[2]

    try:
        read_until("# ")
        os.write(ours, b"stty size\n")
        read_until("33 77")
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 50, 0, 0))
        process.send_signal(28)  # SIGWINCH, which the kernel sends to the terminal's own processes only
        os.write(ours, b"until stty size | grep '^20 5'0; do sleep 0.05; done\n")
        read_until("20 50")
        # The program itself says that it has begun: a key that comes before the shell gives it the terminal is lost.
        os.write(ours, b"sh -c \"echo be''gin; exec sleep 600\"\n")
        read_until("begin")
        os.write(ours, b"\x03")
        read_until("# ")
        os.write(ours, b"exit 5\n")
        read_until("exit 5")
        assert process.wait() == 5
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def running_commands(job: str) -> str:
    """The command lines of all processes in the containers of a job, without their numbers."""
    tops = (["docker", "top", container, "-o", "pid,args"] for container in labelled(job))
    tables = [subprocess.run(top, capture_output=True, text=True, check=True).stdout for top in tops]
    return "".join(f"{row.split(maxsplit=1)[1]}\n" for table in tables for row in table.splitlines())


def has_ended(program: str, job: str) -> bool:
    """Whether neither a program nor the shell that started it runs in the containers of a job."""
    commands = running_commands(job)
    return program not in commands and "/bash\n" not in commands


def test_a_closed_window_leaves_no_process(shared: RunningEmulator, job: str) -> None:
    with ProgramAtTerminal(arguments(shared.data, job), os.environ) as program:
        program.read_until("# ")
        program.press("sleep 7201\n")
        until(lambda: "sleep 7201" in running_commands(job), "the program")
        program.close()
        assert program.wait() == 129
    until(lambda: has_ended("sleep 7201", job), "its end")


def test_ctrl_c_in_a_pipe_leaves_no_process(shared: RunningEmulator, job: str) -> None:
    with subprocess.Popen(
        arguments(shared.data, job), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b"sleep 7202\n")
        process.stdin.flush()
        until(lambda: "sleep 7202" in running_commands(job), "the program")
        process.send_signal(signal.SIGINT)
        assert (process.wait(), process.stderr.read()) == (130, b"")
    until(lambda: has_ended("sleep 7202", job), "its end")


def test_nohup_keeps_a_script_running(shared: RunningEmulator, job: str) -> None:
    with subprocess.Popen(
        ["nohup", *arguments(shared.data, job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b"echo begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGHUP)
        assert process.communicate(b"echo on; exit 3\n")[0] == b"on\n"
        assert process.returncode == 3


def test_a_reader_that_has_gone_leaves_no_process(shared: RunningEmulator, job: str) -> None:
    with subprocess.Popen(
        arguments(shared.data, job), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"sleep 7203 & yes 7204\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"7204\n"
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")
    until(lambda: has_ended("720", job), "their end")


def test_web_access_leads_to_the_shell_command(shared: RunningEmulator, job: str) -> None:
    uris = shared.get(job)["webAccessUris"]
    assert sorted(uris) == ["workerpool0-0", "workerpool1-0"]
    page = shared.http.get(uris["workerpool0-0"])
    assert page.status_code == 200 and "script" not in page.text
    (shown,) = re.findall(r'<code class="command">vertex-emulator (.*?)</code>', page.text)
    program = [sys.executable, "-m", "vertex_emulator", *shlex.split(html.unescape(shown))]
    done = subprocess.run(program, input="echo $CLOUD_ML_JOB_ID", capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, job.rpartition("/")[2]), done.stderr
    assert shared.http.get(uris["workerpool0-0"] + "9").status_code == 404
    running = shared.call("GET", f"v1/{PARENT}/customJobs?filter=state=JOB_STATE_RUNNING")["customJobs"]
    assert [listed["webAccessUris"] for listed in running if listed["name"] == job] == [uris]


def test_what_cannot_be_entered_is_one_line(shared: RunningEmulator, job: str, monkeypatch: Any) -> None:
    def complaint(*more: str, code: int = 1) -> str:
        done = command("shell", *more, data=shared.data)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
        return done.stderr

    assert "There is no job 123 here" in complaint("123")
    assert complaint(job, "--task=workerpool2-0").endswith("tasks: workerpool0-0, workerpool1-0\n")
    assert "has no shell: neither bash nor sh" in complaint(job, "--task", "workerpool1-0")
    ended = shared.create(custom_job(pool("pass")))
    shared.ended(ended)
    assert "has ended in JOB_STATE_SUCCEEDED" in complaint(ended)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert "Docker does not answer on unix:///nowhere/docker.sock" in complaint(job, code=5)


def replica(task: str, trial: int | None = None, container: str | None = "c") -> dict[str, Any]:
    return {"job": "1", "trial": trial, "task": task, "container": container and f"{container}-{trial}-{task}"}


@pytest.mark.parametrize(
    ("replicas", "task", "trial", "chosen"),
    [
        ([replica("workerpool0-0"), replica("workerpool1-0")], None, None, "c-None-workerpool0-0"),
        ([replica("workerpool0-0"), replica("workerpool1-0")], "workerpool1-0", None, "c-None-workerpool1-0"),
        ([replica("workerpool0-0", 3)], None, None, "c-3-workerpool0-0"),
        ([replica("workerpool0-0", 3), replica("workerpool0-0", 4)], None, 4, "c-4-workerpool0-0"),
        ([replica("workerpool0-0", 3), replica("workerpool0-0", 4)], None, None, "choose one with --trial, of 3, 4"),
        ([replica("workerpool0-0", 3)], None, 1, "has no running trial 1; running trials: 3"),
        ([replica("workerpool0-0")], None, 1, "has no running trial 1"),
        ([replica("workerpool0-0", container=None)], None, None, "workerpool0-0 of j does not run"),
        ([], None, None, "has no running replica yet"),
    ],
)
def test_the_replica_is_chosen_or_the_choices_named(
    replicas: list[Any], task: str | None, trial: int | None, chosen: str
) -> None:
    reply = {"name": "j", "state": "JOB_STATE_RUNNING", "replicas": replicas}
    if chosen.startswith("c-"):
        assert choose_container(reply, task, trial) == chosen
    else:
        with pytest.raises(ReplicaNotRunning, match=chosen):
            choose_container(reply, task, trial)
