"""pythonPackageSpec: packages from a bucket, installed into an executor image that runs one of their modules."""

import io
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import docker
import pytest

from tests.vertex_emulator import packages
from tests.vertex_emulator.running import IMAGE, PARENT, RunningEmulator, custom_job
from tests.vertex_emulator.test_studies import study

BUCKET = "my-packages"


def pool(*names: str, module: str = "trainer.task", replicas: int = 1, **package: Any) -> dict[str, Any]:
    """A worker pool that runs a module of packages from the bucket."""
    spec = {
        "executorImageUri": IMAGE,
        "packageUris": [f"gs://{BUCKET}/{name}" for name in names],
        "pythonModule": module,
        **package,
    }
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": replicas, "pythonPackageSpec": spec}


REPORT = """
import json, os, sys, lib.task
print(json.dumps({"args": sys.argv[1:], "job": json.loads(os.environ["CLOUD_ML_JOB"]), "token": os.environ["TOKEN"],
    "in_cluster": json.loads(json.loads(os.environ["CLUSTER_SPEC"])["job"]), "lib": lib.task.NAME,
    "container": os.environ.get("AIP_USE_CUSTOM_CONTAINER")}))
"""


def test_packages_install_in_order_before_module_runs(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / BUCKET
    names = [packages.wheel(folder, "lib", "NAME = 'l'"), packages.sdist(folder, "trainer", REPORT)]
    arguments = ["--out=$(AIP_MODEL_DIR)", "$$(X)", "a b"]
    body = custom_job(
        pool(*names, args=arguments, env=[{"name": "TOKEN", "value": "t-$(CLOUD_ML_REGION)"}]),
        baseOutputDirectory={"outputUriPrefix": "gs://my-bucket/run"},
    )
    name = shared.create(body)
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    lines = shared.lines(name)
    uris = [f"gs://{BUCKET}/{each}" for each in names]
    assert [line for line in lines if line.startswith("Installing the package")] == [
        f"Installing the package: {uri}" for uri in uris
    ]
    (entry,) = shared.objects(name)
    program = {"python_module": "trainer.task", "package_uris": uris, "job_args": arguments}
    assert entry == {
        "args": ["--out=gs://my-bucket/run/model/", "$(X)", "a b"],
        "job": program,
        "in_cluster": program,
        "token": "t-us-central1",
        "lib": "l",
        "container": None,
    }


def test_missing_package_fails_job_with_uri_before_start(
    shared: RunningEmulator,
) -> None:
    name = shared.create(custom_job(pool("none-0.1.tar.gz")))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_FAILED"
    there = shared.data / "gcs" / BUCKET / "none-0.1.tar.gz"
    expected = f"the package gs://{BUCKET}/none-0.1.tar.gz does not exist; put the file at {there}"
    assert expected in job["error"]["message"]
    assert "startTime" not in job
    assert shared.lines(name) == []


def test_package_outside_bucket_is_rejected_by_field_name(shared: RunningEmulator) -> None:
    body = custom_job(pool("a-0.1.tar.gz"), pool("b-0.1.tar.gz", "../../c-0.1.tar.gz"))
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    (violation,) = error["details"][0]["fieldViolations"]
    assert violation["field"].endswith("worker_pool_specs[1].python_package_spec.package_uris[1]")
    assert f"gs://{BUCKET}/../../c-0.1.tar.gz" in violation["description"]


def test_pip_error_is_in_job_log(shared: RunningEmulator) -> None:
    wheel = packages.wheel(shared.data / "gcs" / BUCKET, "needy", "", requires="nothing-of-this-name")
    env = [{"name": "PIP_NO_INDEX", "value": "1"}]
    name = shared.create(custom_job(pool(wheel, module="needy.task", env=env)))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_FAILED"
    expected = "The replica workerpool0-0 exited with a non-zero status of 1."
    assert job["error"]["message"].startswith(expected)
    assert "ERROR: No matching distribution found for nothing-of-this-name" in shared.lines(name)


CHIEF = """
import os, time
there = "/gcs/my-packages/up-1"
while not os.path.exists(there):
    time.sleep(0.05)
print(os.environ["CLOUD_ML_JOB"])
"""
WORKER = """
import json, os, time
job = json.loads(json.loads(os.environ["TF_CONFIG"])["job"])
open(f"/gcs/my-packages/up-{os.environ['RANK']}", "w").write(job["python_module"])
time.sleep(600)
"""


def test_each_pool_runs_its_own_packages(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / BUCKET
    chief, worker = packages.wheel(folder, "chief", CHIEF), packages.wheel(folder, "worker", WORKER)
    name = shared.create(custom_job(pool(chief, module="chief.task"), pool(worker, module="worker.task"), {}))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    (program,) = shared.objects(name)
    assert program["python_module"] == "chief.task"
    assert (folder / "up-1").read_text() == "worker.task"


@pytest.fixture
def bare_image() -> Iterator[str]:
    """An image whose user has no home and no name, and whose Python is called python and nothing else."""
    lines = [
        f"FROM {IMAGE}",
        "RUN mkdir /only && ln -s $(readlink -f $(command -v python3)) /only/python",
        "ENV PATH=/only",
        "USER 12345",
    ]
    client = docker.from_env()
    tag = f"localhost/bare-{token_hex(4)}:1"
    client.images.build(fileobj=io.BytesIO("\n".join(lines).encode()), tag=tag, rm=True, nocache=True)
    yield tag
    client.images.remove(tag, force=True)
    client.close()


def test_packages_run_for_any_user_without_network(shared: RunningEmulator, bare_image: str) -> None:
    folder = shared.data / "gcs" / BUCKET
    script = "import os, lib.task; print(os.getuid(), lib.task.NAME)"
    names = [
        packages.wheel(folder, "lib", "NAME = 'from a wheel'"),
        packages.wheel(folder, "between", "", requires="lib"),
        packages.sdist_with_a_build_backend(folder, "trainer", script),
    ]
    env = [{"name": "PIP_NO_INDEX", "value": "1"}]
    name = shared.create(custom_job(pool(*names, executorImageUri=bare_image, env=env)))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    assert shared.lines(name)[-1] == "12345 from a wheel"
    assert "Installing again without build isolation, with the build tools of the image." in shared.lines(name)


TRIAL = """
import json, os, sys
x = float(sys.argv[2].partition("=")[2])
print(json.dumps({"args": sys.argv[1:], "known": json.loads(os.environ["CLOUD_ML_JOB"])["job_args"]}))
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    entry = {"trial": os.environ["CLOUD_ML_TRIAL_ID"], "global_step": "1", os.environ["CLOUD_ML_HP_METRIC_TAG"]: str(x)}
    json.dump(entry, file)
"""


def test_module_gets_trial_parameters_as_arguments(shared: RunningEmulator) -> None:
    wheel = packages.wheel(shared.data / "gcs" / BUCKET, "tuned", TRIAL)
    body = study(trials=2, trialJobSpec={"workerPoolSpecs": [pool(wheel, module="tuned.task", args=["--fixed"])]})
    name = shared.create(body, "hyperparameterTuningJobs")
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    said = shared.objects(name)
    flags = [["--fixed", f"--x={trial['parameters'][0]['value']!r}"] for trial in job["trials"]]
    assert sorted(line["args"] for line in said) == sorted(line["known"] for line in said) == sorted(flags)
    for trial in job["trials"]:
        assert trial["finalMeasurement"]["metrics"][0]["value"] == trial["parameters"][0]["value"]
