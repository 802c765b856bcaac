"""docs/legacy.md says of every field what becomes of it, and the tables are those of the code."""

import copy
import importlib.resources
import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import is_typeddict
from vertex_training.legacy import types
from vertex_training.legacy.convert import convert
from vertex_training.legacy.document import to_yaml
from vertex_training.legacy.pools import LEGACY_TYPES, ROLES, RUNTIMES, SCALE_TIERS, executor_image

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "legacy.md").read_text()
MESSAGES = {
    name: value for name, value in vars(types).items() if is_typeddict(value) and value.__module__ == types.__name__
}

PACKAGE: dict[str, Any] = {
    "scaleTier": "CUSTOM",
    "masterType": "n1-standard-4",
    **{f"{role}{name}": value for role in ROLES[1:] for name, value in (("Type", "n1-standard-4"), ("Count", 1))},
    "packageUris": ["gs://b/t.tar.gz"],
    "pythonModule": "trainer.task",
    "runtimeVersion": "2.1",
}
CONTAINER: dict[str, Any] = {
    name: PACKAGE[name] for name in PACKAGE if not name.startswith(("package", "python", "run"))
}
CONTAINER["masterConfig"] = {"imageUri": "trainer"}
TUNING: dict[str, Any] = {
    **CONTAINER,
    "hyperparameters": {"params": [{"parameterName": "a", "type": "INTEGER", "maxValue": 3}]},
}
# A job, and the value that makes it say something of the field.
SAMPLES: dict[str, tuple[dict[str, Any], Any]] = {
    "region": (PACKAGE, "us-east1"),
    "scaleTier": ({"runtimeVersion": "2.1"}, "STANDARD_1"),
    **{f"{role}Type": (PACKAGE, "n1-standard-8") for role in ROLES},
    **{f"{role}Count": (PACKAGE, 5) for role in ROLES[1:]},
    **{f"{role}Config.imageUri": (CONTAINER, "other") for role in ROLES},
    **{f"{role}Config.containerCommand": (CONTAINER, ["a"]) for role in ROLES},
    **{f"{role}Config.containerArgs": (CONTAINER, ["a"]) for role in ROLES},
    **{f"{role}Config.acceleratorConfig": (PACKAGE, {"type": "NVIDIA_TESLA_T4", "count": 2}) for role in ROLES},
    **{f"{role}Config.diskConfig": (PACKAGE, {"bootDiskSizeGb": 200}) for role in ROLES},
    **{f"{role}Config.tpuTfVersion": (PACKAGE, "2.1") for role in ROLES},
    "args": (PACKAGE, ["a"]),
    "packageUris": (PACKAGE, ["gs://b/other.tar.gz"]),
    "pythonModule": (PACKAGE, "other"),
    "runtimeVersion": (PACKAGE, "2.5"),
    "pythonVersion": (PACKAGE, "3.5"),
    "jobDir": (PACKAGE, "gs://b/d"),
    "serviceAccount": (PACKAGE, "a@b.iam.gserviceaccount.com"),
    "network": (PACKAGE, "projects/1/global/networks/n"),
    "enableWebAccess": (PACKAGE, True),
    "encryptionConfig": (PACKAGE, {"kmsKeyName": "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k"}),
    "scheduling.maxRunningTime": (PACKAGE, "60s"),
    "scheduling.maxWaitTime": (PACKAGE, "1800s"),
    "scheduling.priority": (PACKAGE, 3),
    "useChiefInTfConfig": (PACKAGE, True),
    "hyperparameters.goal": (TUNING, "MINIMIZE"),
    "hyperparameters.hyperparameterMetricTag": (TUNING, "loss"),
    "hyperparameters.params": (TUNING, [{"parameterName": "b", "type": "DOUBLE", "maxValue": 1.5}]),
    "hyperparameters.maxTrials": (TUNING, 7),
    "hyperparameters.maxParallelTrials": (
        {**TUNING, "hyperparameters": {**TUNING["hyperparameters"], "maxTrials": 9}},
        3,
    ),
    "hyperparameters.maxFailedTrials": (TUNING, 1),
    "hyperparameters.algorithm": (TUNING, "RANDOM_SEARCH"),
    "hyperparameters.enableTrialEarlyStopping": (TUNING, True),
    "hyperparameters.resumePreviousJobId": (TUNING, "old"),
}


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


BECOMES = {field: becomes for fields, becomes, _ in table("Fields") for field in quoted(fields)}


def with_value(training_input: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(training_input)
    *above, last = field.split(".")
    holder = changed
    for name in above:
        holder = holder.setdefault(name, {})
    holder[last] = value
    return changed


def at(value: Any, path: str) -> Any:
    """Everything at a path whose lists are walked through."""
    for name in path.replace("[]", "").split("."):
        found = [one.get(name) for one in value] if isinstance(value, list) else value.get(name)
        value = [one for one in found if one is not None] if isinstance(value, list) else found
        if value is None:
            return None
    return value


def result(training_input: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The job with its own fields and those of its CustomJobSpec side by side, and the comments."""
    fields, problems = convert({"jobId": "j", "trainingInput": training_input}, "j")
    assert problems == []
    ((_, jobs),) = fields.items()
    body = jobs["j"]
    comments = "\n".join(line for line in to_yaml(fields).splitlines() if line.strip().startswith("#"))
    return {**body, **body.get("jobSpec", {}), **body.get("trialJobSpec", {})}, comments


def documented(message: Any, above: str = "") -> Iterator[str]:
    """The fields of a message that the page has a row for: those of TrainingInput and one level below."""
    for name, hint in typing.get_type_hints(message).items():
        inner = above == "" and name not in ("encryptionConfig",) and is_typeddict(hint)
        yield from documented(hint, f"{name}.") if inner else [f"{above}{name}"]


def test_the_page_has_every_field() -> None:
    assert BECOMES.keys() - {"jobId", "labels"} == set(documented(types.TrainingInput))
    assert SAMPLES.keys() == set(documented(types.TrainingInput))


@pytest.mark.parametrize("field", SAMPLES)
def test_a_field_becomes_what_the_page_says(field: str) -> None:
    training_input, value = SAMPLES[field]
    before, comments_before = result(training_input)
    after, comments = result(with_value(training_input, field, value))
    if BECOMES[field] == "a comment":
        assert (after, before) == (before, after)
        assert field.rpartition(".")[2] in comments.replace(comments_before, "")
    else:
        assert all(at(after, path) != at(before, path) for path in quoted(BECOMES[field]))


def test_the_scale_tiers_are_the_code_s() -> None:
    def cell(tier: str, role: str) -> str:
        name, count = SCALE_TIERS[tier].get(role, ("", 0))
        return f"`{name}`" if role == "master" else f"{count} `{name}`" if count else ""

    rows = [[f"`{tier}`", *(cell(tier, role) for role in ROLES[:3])] for tier in SCALE_TIERS]
    assert table("Scale tiers") == rows


def test_the_machine_types_are_the_code_s() -> None:
    rows = [
        [f"`{name}`", f"`{machine}`", f"{count} `{kind}`" if kind else ""]
        for name, (machine, kind, count) in LEGACY_TYPES.items()
    ]
    assert table("Machine types") == rows


def test_the_runtime_versions_are_the_code_s() -> None:
    images = [executor_image(version, "us-central1", has_gpu=False) for version in RUNTIMES]
    assert table("Runtime versions") == [
        [f"`{version}`", f"`{image.rpartition('/')[2].removesuffix(':latest')}`"]
        for version, image in zip(RUNTIMES, images, strict=True)
    ]


@pytest.mark.parametrize(
    ("runtime", "region", "has_gpu", "image"),
    [
        ("2.5", "us-central1", False, "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-5:latest"),
        ("2.5", "europe-west4", True, "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-5:latest"),
        ("2.10", "asia-east1", False, "asia-docker.pkg.dev/vertex-ai/training/tf-cpu.2-11:latest"),
        ("2.12", "", False, "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-11:latest"),
        ("1.4", "", False, "us-docker.pkg.dev/vertex-ai/training/tf-cpu.1-15:latest"),
        ("nightly", "", False, "us-docker.pkg.dev/vertex-ai/training/tf-cpu.1-15:latest"),
    ],
)
def test_an_image_has_the_same_or_next_version(runtime: str, region: str, has_gpu: bool, image: str) -> None:
    assert executor_image(runtime, region, has_gpu) == image


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_equal_those_of_the_discovery_document(name: str) -> None:
    documents = importlib.resources.files("googleapiclient") / "discovery_cache" / "documents"
    schemas = json.loads((documents / "ml.v1.json").read_text())["schemas"]
    properties = schemas[f"GoogleCloudMlV1__{name}"]["properties"]
    hints = typing.get_type_hints(MESSAGES[name])
    assert hints.keys() == properties.keys()
    for field, schema in properties.items():
        if "enum" in schema and name != "Job":
            assert list(typing.get_args(hints[field])) == schema["enum"]
        if "$ref" in schema and name != "Job":
            assert f"GoogleCloudMlV1__{hints[field].__name__}" == schema["$ref"]
