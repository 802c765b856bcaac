"""What a job names in another region than its own."""

import pytest

from tests.vertex_api.jobs import custom_job, tuning_job
from vertex_api.validation.mistakes import region_mismatches

KEY = "projects/acme-kms/locations/europe-west4/keyRings/r/cryptoKeys/k"
ATTACHMENT = "projects/acme-dev/regions/europe-west4/networkAttachments/a"


def test_a_key_of_another_region_is_found() -> None:
    job = custom_job() | {"encryptionSpec": {"kmsKeyName": KEY}}
    assert list(region_mismatches(job, ("jobSpec",), "europe-west4")) == []
    assert list(region_mismatches(job, ("jobSpec",), "us-central1")) == [
        (
            ("encryptionSpec", "kmsKeyName"),
            'the key is in "europe-west4"; it must be in the region of the jobs, us-central1',
        )
    ]


@pytest.mark.parametrize(("name", "count"), [(ATTACHMENT, 1), ("a", 0)])
def test_an_attachment_of_another_region_is_found(name: str, count: int) -> None:
    job = tuning_job()
    job["trialJobSpec"]["pscInterfaceConfig"] = {"networkAttachment": name}
    found = list(region_mismatches(job, ("trialJobSpec",), "us-central1"))
    path = ("trialJobSpec", "pscInterfaceConfig", "networkAttachment")
    assert [each for each, _ in found] == [path] * count


def test_a_tensorboard_of_another_region_is_found() -> None:
    job = tuning_job()
    job["trialJobSpec"]["tensorboard"] = "projects/p/locations/europe-west4/tensorboards/7"
    assert list(region_mismatches(job, ("trialJobSpec",), "europe-west4")) == []
    ((path, message),) = region_mismatches(job, ("trialJobSpec",), "us-central1")
    assert path == ("trialJobSpec", "tensorboard")
    assert message == 'the TensorBoard is in "europe-west4"; it must be in the region of the jobs, us-central1'


def test_a_model_gets_its_versions_where_it_is() -> None:
    job = custom_job() | {"parentModel": "projects/p/locations/europe-west4/models/m"}
    assert list(region_mismatches(job, ("jobSpec",), "europe-west4")) == []
    message = 'the model is in "europe-west4"; it must be in the region of the jobs, us-central1'
    assert list(region_mismatches(job, ("jobSpec",), "us-central1")) == [(("parentModel",), message)]


def test_protected_artifacts_are_said_to_be_elsewhere_only() -> None:
    job = custom_job()
    job["jobSpec"]["protectedArtifactLocationId"] = "us-central1"
    assert list(region_mismatches(job, ("jobSpec",), "europe-west4")) == []
    assert list(region_mismatches(job, ("jobSpec",), "us-central1")) == [
        (("jobSpec", "protectedArtifactLocationId"), "is the region of the jobs, us-central1; leave it out")
    ]


def test_a_job_without_regional_resources_has_no_mismatches() -> None:
    assert list(region_mismatches(custom_job(), ("jobSpec",), "us-central1")) == []
