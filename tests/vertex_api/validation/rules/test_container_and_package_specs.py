"""Rules of what replicas run."""

from typing import Any

import pytest

from tests.vertex_api.jobs import custom_job
from tests.vertex_api.validation.rules.breaking import POOLS, said_of_pool, said_of_spec

PACKAGE = {"executorImageUri": "e", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "m"}
NAME_RULE = "must be letters, digits and underscores, and not start with a digit"


def said_of_package(**fields: Any) -> list[str]:
    pool = {**custom_job()["jobSpec"]["workerPoolSpecs"][0], "pythonPackageSpec": PACKAGE | fields}
    del pool["containerSpec"]
    return [text.removeprefix(f"{POOLS}[0].pythonPackageSpec.") for text in said_of_spec(workerPoolSpecs=[pool])]


def test_an_image_is_required() -> None:
    assert said_of_pool(containerSpec={"imageUri": ""}) == [f"{POOLS}[0].containerSpec.imageUri: is required"]


def test_arguments_have_100000_characters_in_total() -> None:
    assert said_of_pool(containerSpec={"imageUri": "i", "args": ["x" * 99_999, "y"]}) == []
    assert said_of_pool(containerSpec={"imageUri": "i", "args": ["x" * 99_999, "y", "z"]}) == [
        f"{POOLS}[0].containerSpec.args: has 100001 characters in total; at most 100000 are allowed"
    ]
    assert said_of_package(args=["x" * 100_001]) == ["args: has 100001 characters in total; at most 100000 are allowed"]


def test_an_environment_has_at_most_100_variables() -> None:
    entries = [{"name": f"_V{index}", "value": "1"} for index in range(101)]
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries[:100]}) == []
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries}) == [
        f"{POOLS}[0].containerSpec.env: has 101 entries; at most 100 are allowed"
    ]


@pytest.mark.parametrize("name", ["1B", "a-b", "", "a b", "é", "A\n"])
def test_names_of_variables_are_c_identifiers(name: str) -> None:
    entries = [{"name": "A", "value": "1"}, {"name": name, "value": "1"}]
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries}) == [
        f'{POOLS}[0].containerSpec.env[1].name: "{name}" {NAME_RULE}'
    ]
    assert said_of_package(env=entries) == [f'env[1].name: "{name}" {NAME_RULE}']


@pytest.mark.parametrize("entry", [{"name": "A"}, {"name": "A", "value": ""}, {"name": "A", "value": None}])
def test_variables_have_values(entry: dict[str, Any]) -> None:
    said = "env[0].value: is required, and not empty; leave the variable out where it has no value"
    assert said_of_pool(containerSpec={"imageUri": "i", "env": [entry]}) == [f"{POOLS}[0].containerSpec.{said}"]
    assert said_of_package(env=[entry]) == [said]


def test_image_and_module_names_are_checked() -> None:
    (said,) = said_of_pool(containerSpec={"imageUri": "us-docker.pkg.dev/acme/../evil/x"})
    assert said.startswith(f'{POOLS}[0].containerSpec.imageUri: "us-docker.pkg.dev/acme/../evil/x" must be the name of')
    (said,) = said_of_package(executorImageUri="https://e")
    assert said.startswith('executorImageUri: "https://e" must be the name of an image')
    assert said_of_package(pythonModule="trainer/task.py") == [
        'pythonModule: "trainer/task.py" must be the name of a Python module, such as trainer.task'
    ]


def test_a_package_is_complete_and_in_cloud_storage() -> None:
    assert said_of_package() == []
    assert said_of_package(executorImageUri="", pythonModule="") == [
        "executorImageUri: is required",
        "pythonModule: is required",
    ]
    assert said_of_package(packageUris=["gs://b/p", "/tmp/p", ""]) == [
        'packageUris[1]: "/tmp/p" must have the form gs://{bucket}/{object}',
        "packageUris[2]: is empty",
    ]
    assert said_of_package(packageUris=["gs://b/p"] * 101) == ["packageUris: has 101 entries; at most 100 are allowed"]
