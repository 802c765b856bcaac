"""The oldest and the newest SDK of Pulumi that the package is tried with, in place of the one of the lock."""

import json
import tomllib

import pytest

from tests.engine import preloaded_python
from tests.engine.project import Project
from tests.engine.test_continue_on_error import job
from tools.setup import CHECKOUT
from tools.setup.sdks import SHA256, folder_of


@pytest.mark.large
@pytest.mark.parametrize("version", SHA256)
def test_failures_are_one_line_and_other_jobs_run(project: Project, version: str) -> None:
    sdk = str(folder_of(version))
    project.environment = preloaded_python.remove_variables(project.environment) | {"PYTHONPATH": sdk}
    program = project.root / "__main__.py"
    program.write_text(f"import pulumi\nassert pulumi.__file__.startswith({sdk!r})\n{program.read_text()}")
    project.declarations["customJobs"] = {"refused": job("true"), "good": job("true")}
    project.declare()
    project.start_emulator()
    assert project.run_emulator("inject", "quota", "--name", "refused").returncode == 0
    summary = project.up("--continue-on-error", fails=True).partition("Diagnostics:")[2]
    assert "refused: not submitted: the quota in us-central1" in summary
    assert "Exception calling application" not in summary
    assert summary.count("error: ") == 2, summary  # this one, and "update failed"
    assert project.outputs()["results"].keys() == {"good"}
    assert project.outputs()["jobs"]["refused"] is None

    project.up()
    assert project.outputs()["results"].keys() == {"good", "refused"}
    project.assert_no_changes()
    jobs = {name for name, each in project.resources().items() if each["type"].endswith(":CustomJob")}
    assert jobs and "stackTrace" not in "".join(json.dumps(project.resources()[name]) for name in jobs)
    project.destroy()


def test_the_oldest_sdk_is_the_lower_bound() -> None:
    requirements = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"pulumi>={next(iter(SHA256)).removesuffix('.0')},<4" in requirements
