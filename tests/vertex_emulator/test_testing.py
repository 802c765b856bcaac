"""The plugin of pytest, in sessions of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vertex_emulator.running import command
from vertex_emulator.testing.pytest_plugin import _project_id

TESTS = """
import os
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1, storage

seen = []


@pytest.mark.parametrize("number", [1, 2])
def test_projects(vertex_emulator, number):
    jobs = aiplatform_v1.JobServiceClient(**vertex_emulator.generated_client_arguments)
    parent = f"projects/{vertex_emulator.project}/locations/{vertex_emulator.region}"
    job = {"display_name": "x", "job_spec": {"worker_pool_specs": [{
        "machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "localhost/none:1"}}]}}
    jobs.create_custom_job(parent=parent, custom_job=job)
    vertex_emulator.inject("quota", count=2)  # one is left, and ends with the test
    vertex_emulator.inject("oom", name="nobody")
    assert vertex_emulator.bucket_folder.is_dir()
    with pytest.raises(exceptions.TooManyRequests):
        jobs.create_custom_job(parent=parent, custom_job=job)
    assert len(list(jobs.list_custom_jobs(parent=parent))) == 1
    bucket = storage.Client(**vertex_emulator.storage_client_arguments).bucket(vertex_emulator.bucket_name)
    bucket.blob("x").upload_from_string("y")
    assert (vertex_emulator.bucket_folder / "x").read_text() == "y"
    assert os.environ["STORAGE_EMULATOR_HOST"] == vertex_emulator.endpoint
    seen.append((vertex_emulator.endpoint, vertex_emulator.project))


def test_one_server(vertex_emulator, vertex_job_log):
    (url, first), (again, second) = seen
    assert url == again == vertex_emulator.endpoint
    assert len({first, second, vertex_emulator.project}) == 3
    jobs = aiplatform_v1.JobServiceClient(**vertex_emulator.generated_client_arguments)
    (job,) = jobs.list_custom_jobs(parent=f"projects/{first}/locations/us-central1")
    assert "Waiting for job to be provisioned" in vertex_job_log(job.name, task="service")
"""


def run_session(folder: Path, *files: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a session of pytest with the plugin on files of tests."""
    for number, tests in enumerate(files):
        (folder / f"test_{number}.py").write_text(tests)
    plugin = ["-p", "vertex_emulator.testing.pytest_plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), **variables}
    command = [sys.executable, "-m", "pytest", "-q", *plugin, f"--basetemp={folder / 'temp'}"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


FAILING = """
import time
from google.cloud import aiplatform_v1


def test_job(vertex_emulator):
    jobs = aiplatform_v1.JobServiceClient(**vertex_emulator.generated_client_arguments)
    parent = f"projects/{vertex_emulator.project}/locations/{vertex_emulator.region}"
    job = {"display_name": "x", "job_spec": {"worker_pool_specs": [{
        "machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "localhost/none:1"}}]}}
    created = jobs.create_custom_job(parent=parent, custom_job=job)
    while not (found := jobs.get_custom_job(name=created.name)).error.message:
        time.sleep(0.1)
    print("NAME", created.name)
    assert found.state.name == "JOB_STATE_SUCCEEDED"


def test_later(vertex_emulator):
    assert False
"""


TESTED = """
from google.cloud import aiplatform
from google.cloud.aiplatform import initializer


def submit():
    "As in production: it knows nothing of an emulator."
    aiplatform.init(project="my-project", location="europe-west4", staging_bucket="gs://my-bucket")
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "container_spec": {"image_uri": "localhost/none:1"}}
    job = aiplatform.CustomJob("x", [{**pool, "replica_count": 1}])
    job.submit()
    return job


def test_submit(vertex_emulator, vertex_job_log):
    print("DATA", vertex_emulator.data_path)
    assert "provisioned" in vertex_job_log(submit().resource_name)


def test_after():
    config = initializer.global_config
    assert (config.api_endpoint, config.staging_bucket) == (None, None)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of one session with all of these tests: to import Google's SDK takes seconds."""
    folder = tmp_path_factory.mktemp("session")
    done = run_session(folder, TESTS, FAILING, TESTED)
    assert "2 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    return folder, done.stdout


def test_a_failed_test_shows_the_logs_of_its_failed_jobs(session: tuple[Path, str]) -> None:
    output = session[1]
    (name,) = re.findall("NAME (.*)", output)
    (shown,) = re.findall(f"-+ Log of job {name.rpartition('/')[2]} -+\n(.*?)\n[-_=]", output, re.DOTALL)
    assert re.search(r"service +Job failed\.", shown) and "localhost/none:1" in shown, output
    assert output.count("Log of ") == 1  # the later test had none


def test_tested_code_reaches_the_emulator_and_no_later_code_does(session: tuple[Path, str]) -> None:
    assert not {"test_submit", "test_after"} & {*re.findall(r"FAILED \S+::(\w+)", session[1])}


def test_below_exec_tests_use_its_emulator(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTED)
    plugin = ["-p", "vertex_emulator.testing.pytest_plugin", "-p", "no:cacheprovider"]
    session = [sys.executable, "-m", "pytest", "-qs", *plugin, "-k", "submit", str(tmp_path)]
    data = tmp_path / "data"
    done = command("exec", data=data, after=["--", *session])
    assert f"DATA {data}" in done.stdout and "1 passed" in done.stdout, done.stdout + done.stderr


def test_tests_share_a_server_and_have_projects(session: tuple[Path, str]) -> None:
    folder, output = session
    assert not {"test_projects", "test_one_server"} & {*re.findall(r"FAILED \S+::(\w+)", output)}
    assert "an injected fault has hit nothing: oom for the next job (name=nobody)" in output
    assert "has hit nothing: quota" not in output
    assert not (folder / "temp" / "vertex-emulator0" / "endpoint.json").exists()  # it has ended


def test_a_session_without_docker_has_one_line(tmp_path: Path) -> None:
    tests = "def test_it(vertex_emulator): pass\ndef test_other(): pass\n"
    done = run_session(tmp_path, tests, DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert "1 passed, 1 error" in done.stdout
    assert f"Docker does not answer on unix://{tmp_path}/none.sock" in done.stdout
    assert "Traceback" not in done.stdout and "project.py" not in done.stdout


def test_the_plugin_imports_nothing_of_the_emulator() -> None:
    script = "import sys, vertex_emulator.testing.pytest_plugin; print(*(n for n in sys.modules if 'vertex' in n))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    packages = ["vertex_emulator", "vertex_emulator.testing", "vertex_emulator.testing.pytest_plugin"]
    assert done.stdout.split() == packages


@pytest.mark.parametrize("name", ["test_x", "test_very_long_names_of_tests_are_cut[a-b]", "test_Ä/ö[1]"])
def test_project_ids_are_valid_and_tell_the_test(name: str) -> None:
    first, second = _project_id(name), _project_id(name)
    assert first != second
    assert re.fullmatch(r"test-[a-z0-9-]{0,24}[a-z0-9]", first)
