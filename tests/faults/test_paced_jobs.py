"""The short form of `python -m tests.faults.paced_jobs`, which submits 200 jobs and compares times."""

from pathlib import Path

from tests.engine.project import create_project
from tests.faults.paced_jobs import find_wrong_jobs, submit_jobs


def test_a_paced_stack_survives_faults(tmp_path: Path) -> None:
    with create_project(tmp_path) as project:
        submit_jobs(project, 30, 600, faulty_api=True)
        assert find_wrong_jobs(project, 30) == {}
        project.assert_no_changes()
