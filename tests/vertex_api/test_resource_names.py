"""Resource names: taken apart and put together again without loss."""

import pytest

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, ResourceName, location_name


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("projects/p/locations/us-central1/customJobs/123", CUSTOM_JOB),
        ("projects/1234/locations/europe-west4/hyperparameterTuningJobs/9", HYPERPARAMETER_TUNING_JOB),
        ("projects/p/locations/us-central1/trainingPipelines/5", TRAINING_PIPELINE),
    ],
)
def test_a_parsed_name_is_written_unchanged(text: str, kind: object) -> None:
    name = ResourceName.parse(text)
    assert str(name) == text
    assert name.kind == kind
    assert text.startswith(f"{location_name(name.project, name.region)}/{name.kind.collection}/")
    assert text.endswith(f"/{name.id}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "123",
        "projects/p/locations/r/customJobs/",
        "projects/p/locations/r/customJobs/1/operations/2",
        "projects/p/locations/r/trainingJobs/1",
        "project/p/locations/r/customJobs/1",
        "projects/p/regions/r/customJobs/1",
        "/projects/p/locations/r/customJobs/1",
    ],
)
def test_invalid_names_are_rejected_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError) as failure:
        ResourceName.parse(text)
    form = "projects/P/locations/R/{customJobs,hyperparameterTuningJobs,trainingPipelines}/ID"
    assert str(failure.value) == f'"{text}" is not {form}'
