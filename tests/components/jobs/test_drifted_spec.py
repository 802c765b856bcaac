"""Drift: a job as the service holds it compares equal to its declaration unless something in it differs."""

from typing import Any

import pytest
from vertex_training.jobs.drifted_spec import copy_declared_with_differing_actual_values
from vertex_training.schema.interpolation import expand

from tests.vertex_api.jobs import ABSENT, custom_job, edited
from vertex_api.names import CUSTOM_JOB
from vertex_api.validation.check import validate_job

SECRETS = {"secrets": {"token": "hunter2", "key": "abc"}}
ENV = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "env")
DECLARED: dict[str, Any] = edited(
    custom_job(), *ENV, to=[{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "bearer ${secrets.token}"}]
) | {"labels": {"team": "vision"}}
DECLARED["jobSpec"] |= {
    "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"},
    "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": False},
}


def held() -> dict[str, Any]:
    """The declared job as the service gives it back, in canonical form."""
    job = expand(DECLARED, SECRETS)
    job["labels"] = {**job["labels"], "pulumi_token": "t"}
    job["jobSpec"] = {
        **job["jobSpec"],
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out/"},
        "scheduling": {"timeout": "3600s"},
        "serviceAccount": "default@project.iam.gserviceaccount.com",
    }
    pool = job["jobSpec"]["workerPoolSpecs"][0]
    pool["diskSpec"] = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
    canonical, problems = validate_job(CUSTOM_JOB, job)
    assert problems == []
    return dict(canonical)


def seen(actual: dict[str, Any], declared: dict[str, Any] = DECLARED) -> Any:
    return copy_declared_with_differing_actual_values(declared, actual, SECRETS)


def test_an_omitted_unspecified_enum_is_no_drift() -> None:
    machine = {"machineType": "n1-standard-4", "acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED"}
    assert seen({"machineType": "n1-standard-4"}, machine) == machine
    assert seen({"acceleratorType": "NVIDIA_L4"}, machine) == {"acceleratorType": "NVIDIA_L4"}


def test_service_defaults_and_labels_are_no_drift() -> None:
    assert held() != DECLARED
    assert seen(held()) == DECLARED


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("displayName",), "other"),
        (("labels", "team"), "speech"),
        (("jobSpec", "scheduling", "timeout"), "60s"),
        (("jobSpec", "scheduling", "restartJobOnWorkerRestart"), True),
        (("jobSpec", "baseOutputDirectory", "outputUriPrefix"), "gs://bucket/elsewhere/"),
        (("jobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType"), "n1-highmem-2"),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args"), ["--epochs=4"]),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args"), ["--epochs=3", "--more"]),
        ((*ENV, 0, "value"), "2"),
    ],
)
def test_only_the_real_change_is_shown(path: tuple[Any, ...], to: Any) -> None:
    assert seen(edited(held(), *path, to=to)) == edited(DECLARED, *path, to=to)


@pytest.mark.parametrize("path", [("labels", "team"), ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")])
def test_a_removed_field_is_shown_as_removed(path: tuple[Any, ...]) -> None:
    assert seen(edited(held(), *path, to=ABSENT)) == edited(DECLARED, *path, to=ABSENT)


@pytest.mark.parametrize("zero", [0, 0.0, False, "", [], {}])
def test_an_omitted_declared_zero_is_no_drift(zero: Any) -> None:
    assert copy_declared_with_differing_actual_values({"a": zero}, {}, {}) == {"a": zero}
    assert copy_declared_with_differing_actual_values({"a": zero}, {"a": 1}, {}) == {"a": 1}


def test_only_a_folder_s_slash_is_overlooked() -> None:
    assert copy_declared_with_differing_actual_values("gs://a/b/", "gs://a/b", {}) == "gs://a/b"
    assert copy_declared_with_differing_actual_values("gs://a/b", "gs://a/b//", {}) == "gs://a/b//"


def test_an_unchanged_secret_keeps_its_reference() -> None:
    assert "hunter2" in str(held())
    assert "hunter2" not in str(seen(held()))
    assert "${secrets.token}" in str(seen(held()))


def test_a_different_secret_is_a_change() -> None:
    found = seen(edited(held(), *ENV, 1, "value", to="bearer stolen"))
    assert found == edited(DECLARED, *ENV, 1, "value", to="bearer stolen")


@pytest.mark.parametrize(
    "env",
    [
        [{"name": "TOKEN", "value": "bearer hunter2"}],
        [{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "bearer hunter2"}, {"name": "B", "value": "2"}],
        [{"name": "TOKEN", "value": "bearer hunter2"}, {"name": "A", "value": "1"}],
    ],
    ids=["one less", "one more", "another order"],
)
def test_a_change_beside_a_secret_reveals_nothing(env: list[dict[str, str]]) -> None:
    found = seen(edited(held(), *ENV, to=env))
    assert found != DECLARED
    assert "hunter2" not in str(found)


def test_sending_fills_in_secrets_only() -> None:
    sent = expand(DECLARED, SECRETS)
    assert sent == edited(DECLARED, *ENV, 1, "value", to="bearer hunter2")
    assert "${secrets.token}" in str(DECLARED)


def test_sending_unescapes_text() -> None:
    args = ["$${secrets.token}", "$(MODEL_DIR)", "${secrets.key}$${x}"]
    assert expand({"args": args}, SECRETS) == {"args": ["${secrets.token}", "$(MODEL_DIR)", "abc${x}"]}


@pytest.mark.parametrize("value", ["a$${b}", "${secrets.key}", "$$", "x\n"])
def test_a_secret_is_sent_verbatim(value: str) -> None:
    assert expand(["${secrets.token}", "a ${secrets.token}"], {"secrets": {"token": value}}) == [
        value,
        f"a {value}",
    ]
