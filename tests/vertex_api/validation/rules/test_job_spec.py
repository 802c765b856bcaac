"""Rules of a CustomJobSpec: names of what it uses, and networks."""

from typing import Any

import pytest

from tests.vertex_api.validation.rules.breaking import said_of_spec

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
TENSORBOARD = "projects/p/locations/us-central1/tensorboards/1"
CONTEXTS = "projects/p/locations/us-central1/metadataStores/default/contexts"
NETWORK = "projects/12345/global/networks/default"
PEERING = {"domain": "corp.example.", "targetProject": "p", "targetNetwork": "vpc"}


@pytest.mark.parametrize(
    "fields",
    [
        {"serviceAccount": ACCOUNT},
        {"serviceAccount": "123-compute@developer.gserviceaccount.com"},
        {"serviceAccount": "113344556677889900112"},
        {"network": NETWORK, "reservedIpRanges": ["vertex-ai-ip-range"]},
        {"network": ""},
        {"tensorboard": TENSORBOARD, "serviceAccount": ACCOUNT},
        {"experiment": f"{CONTEXTS}/exp", "experimentRun": f"{CONTEXTS}/exp-run"},
        {"persistentResourceId": "my-resource-1"},
        {"models": ["projects/p/locations/us-central1/models/m@2"]},
        {"baseOutputDirectory": {"outputUriPrefix": "gs://bucket"}},
        {"baseOutputDirectory": {"outputUriPrefix": "gs://bucket/a folder/"}},
        {"pscInterfaceConfig": {"networkAttachment": "attachment", "dnsPeeringConfigs": [PEERING]}},
        {"pscInterfaceConfig": {"networkAttachment": "projects/p/regions/us-central1/networkAttachments/a"}},
        {"protectedArtifactLocationId": "europe-west4", "enableWebAccess": True},
    ],
)
def test_names_in_their_form_are_taken(fields: dict[str, Any]) -> None:
    assert said_of_spec(**fields) == []


@pytest.mark.parametrize(
    ("field", "value", "form"),
    [
        ("serviceAccount", "me@example.com", "{account}@{project}.iam.gserviceaccount.com"),
        ("serviceAccount", "trainer", "{account}@{project}.iam.gserviceaccount.com"),
        ("network", "projects/my-project/global/networks/default", "projects/{number}/global/networks/{network}"),
        ("network", "default", "projects/{number}/global/networks/{network}"),
        ("experiment", "exp", "projects/{project}/locations/{region}/metadataStores/{store}/contexts/{experiment}"),
        (
            "experimentRun",
            "run",
            "projects/{project}/locations/{region}/metadataStores/{store}/contexts/{experiment}-{run}",
        ),
    ],
)
def test_malformed_names_show_the_right_form(field: str, value: str, form: str) -> None:
    assert said_of_spec(**{field: value}) == [f'jobSpec.{field}: "{value}" must have the form {form}']


@pytest.mark.parametrize("id_", ["Upper", "1st", "a-", "a_b", "projects/p/locations/r/persistentResources/x"])
def test_a_persistent_resource_is_named_by_its_id(id_: str) -> None:
    assert said_of_spec(persistentResourceId=id_) == [
        f'jobSpec.persistentResourceId: "{id_}" must be at most 63 lower-case letters, digits and hyphens, start '
        "with a letter and not end with a hyphen"
    ]


def test_tensorboard_needs_a_service_account() -> None:
    assert said_of_spec(tensorboard=TENSORBOARD) == [
        "jobSpec.serviceAccount: must be specified when uploading to TensorBoard"
    ]
    (said,) = said_of_spec(tensorboard="board", serviceAccount=ACCOUNT)
    form = "projects/{project}/locations/{region}/tensorboards/{tensorboard}"
    assert said == f'jobSpec.tensorboard: "board" must have the form {form}'


def test_reserved_ranges_are_names_within_a_network() -> None:
    assert said_of_spec(reservedIpRanges=["a"]) == [
        "jobSpec.reservedIpRanges: needs network, the VPC network that the ranges are reserved in"
    ]
    rule = "must be at most 63 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen"
    assert said_of_spec(network=NETWORK, reservedIpRanges=["ok", "10.0.0.0/8", ""]) == [
        f'jobSpec.reservedIpRanges[1]: "10.0.0.0/8" {rule}',
        "jobSpec.reservedIpRanges[2]: is required",
    ]


def test_private_service_connect_has_its_forms() -> None:
    said = said_of_spec(
        pscInterfaceConfig={
            "networkAttachment": "a/b",
            "dnsPeeringConfigs": [
                PEERING,
                PEERING | {"domain": "corp"},
                PEERING | {"targetProject": "", "targetNetwork": "a/b"},
            ],
        }
    )
    at = "jobSpec.pscInterfaceConfig"
    assert said == [
        f'{at}.networkAttachment: "a/b" must have the form '
        "projects/{project}/regions/{region}/networkAttachments/{attachment}",
        f'{at}.dnsPeeringConfigs[1].domain: "corp" must end with a dot',
        f"{at}.dnsPeeringConfigs[2].targetProject: is required",
        f'{at}.dnsPeeringConfigs[2].targetNetwork: "a/b" must be at most 63 lower-case letters, digits and hyphens, '
        "start with a letter and not end with a hyphen",
    ]


@pytest.mark.parametrize("uri", ["bucket/folder", "s3://bucket/x", "gs://", "gs:///x", "gs://Bucket/x", "gs://b/\n"])
def test_outputs_go_to_cloud_storage(uri: str) -> None:
    (said,) = said_of_spec(baseOutputDirectory={"outputUriPrefix": uri})
    assert said.startswith("jobSpec.baseOutputDirectory.outputUriPrefix: ")
    assert said.endswith("must have the form gs://{bucket}/{object}")


def test_an_output_directory_without_a_uri_is_incomplete() -> None:
    said = said_of_spec(baseOutputDirectory={"outputUriPrefix": ""})
    assert said == ["jobSpec.baseOutputDirectory.outputUriPrefix: is required"]


def test_models_have_names() -> None:
    assert said_of_spec(models=["m"]) == [
        'jobSpec.models[0]: "m" must have the form projects/{project}/locations/{region}/models/{model}'
    ]


def test_a_run_s_name_begins_with_its_experiment() -> None:
    contexts = "projects/p/locations/us-central1/metadataStores/default/contexts"
    assert said_of_spec(experiment=f"{contexts}/e", experimentRun=f"{contexts}/e-1") == []
    assert said_of_spec(experiment=f"{contexts}/e", experimentRun=f"{contexts}/f-1") == [
        f'jobSpec.experimentRun: "{contexts}/f-1" is no run of the experiment: it must begin with {contexts}/e-'
    ]
