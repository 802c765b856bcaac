"""An error of a program, through the real engine: it is shown, the state stays whole, the mended program goes on."""

import os
from functools import reduce
from pathlib import Path

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE

PROGRAM = """\
import pulumi

from vertex_training import Completion, CustomJob, PythonPackage


def job(*args):
    container = {"imageUri": "IMAGE", "command": ["true"], "args": [*args]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return {"displayName": "a", "jobSpec": {"workerPoolSpecs": [pool]}}


first = CustomJob("first", job())
second = CustomJob("second", job(first.run.apply(lambda run: run["name"])))
done = Completion("done", {"second": second})


def transform(_):
    return {}["in a transform"]


package = PythonPackage("trainer", {"path": "trainer"}, pulumi.ResourceOptions(transforms=[]))
CustomJob("behind", job(), pulumi.ResourceOptions(depends_on=[done]))
CustomJob("packaged", job(), pulumi.ResourceOptions(depends_on=[package]))
""".replace("IMAGE", IMAGE)


def run(project: Project, *arguments: str) -> tuple[int, str]:
    process = project._start_pulumi([*arguments, "--stack", "local"], project.environment)
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


def assert_whole(project: Project) -> None:
    code, output = run(project, "stack", "import", "--file", str(project.export()))
    assert code == 0, output


def test_errors_leave_the_state_whole(project: Project) -> None:
    program, wrong_name = (
        project.root / "__main__.py",
        Path(os.fsdecode(bytes(project.root / "trainer" / "caf") + b"\xe9")),
    )
    (project.root / "trainer" / "pyproject.toml").touch()
    del project.stack["vertex-training:include"]
    project.declare()
    for edits, said in (
        ([('run["name"]', 'run["nosuchkey"]')], "KeyError: 'nosuchkey'"),
        ([("transforms=[]", "transforms=[transform]"), ("done]", "done, package]")], "in a transform"),
        ([], 'PythonPackage "trainer": path: trainer/caf\\xe9: its name is no UTF-8; rename the file'),
    ):
        program.write_text(reduce(lambda text, edit: text.replace(*edit), edits, PROGRAM))
        if not edits:
            wrong_name.touch()
        code, output = run(project, "up", "--yes", "--skip-preview", "--continue-on-error")
        assert code != 0 and said in output, output
        assert_whole(project)
        assert "behind" not in project.resources()
    wrong_name.unlink()
    program.write_text(PROGRAM)
    project.up()
    assert {"first", "second", "done", "behind", "trainer", "packaged"} <= project.resources().keys()
    project.assert_no_changes()
