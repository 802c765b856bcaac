"""docs/fidelity.md is complete, and agrees with what the emulator does."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from tests.vertex_emulator.api.test_routes import SERVED
from vertex_emulator.scheduling.lifecycle import APPROXIMATED_FIELDS, REJECTED_FIELDS

PREFIX = "GoogleCloudAiplatformV1"
STATUSES = {"same", "approximated", "refused"}
EVIDENCE = {"recorded YYYY-MM", "reported", "read in docs", "guessed"}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    """The messages of the API's discovery document."""
    documents = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    found: dict[str, Any] = json.loads((documents / "aiplatform.v1.json").read_text())["schemas"]
    return found


@pytest.fixture(scope="module")
def rows(cells: dict[str, str]) -> dict[str, str]:
    """Status by field (or method), as the page's tables give it."""
    return {name: cell.partition(", ")[0] for name, cell in cells.items()}


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    """Status and evidence by field (or method), as the page's tables give them."""
    text = (Path(__file__).parents[2] / "docs" / "fidelity.md").read_text()
    found = re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", text, re.MULTILINE)
    assert len(found) == len(dict(found)), "a field has two rows"
    return dict(found)


def fields(schemas: dict[str, Any], message: str, path: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Every field below a message, messages themselves included; a message within itself is not opened again."""
    for name, schema in schemas[PREFIX + message].get("properties", {}).items():
        yield f"{path}{name}"
        reference = schema.get("$ref") or schema.get("items", {}).get("$ref", "")
        inner = reference.removeprefix(PREFIX)
        if reference.startswith(PREFIX) and inner not in above:
            yield from fields(schemas, inner, f"{path}{name}.", (*above, message, inner))


def without_a_row(wanted: set[str], rows: dict[str, str]) -> set[str]:
    """A row `a.b.*` stands for all fields below `a.b`."""
    families = tuple(name.removesuffix("*") for name in rows if name.endswith(".*"))
    return {name for name in wanted if name not in rows and not name.startswith(families)}


def test_fields_of_other_resources_have_rows(schemas: dict[str, Any], rows: dict[str, str]) -> None:
    wanted = {
        *(f"trainingPipelines.{name}" for name in schemas[f"{PREFIX}TrainingPipeline"]["properties"]),
        *fields(schemas, "InputDataConfig", "inputDataConfig."),
        *fields(schemas, "Model", "models.", ("Model",)),
        *(f"models.upload.{name}" for name in schemas[f"{PREFIX}UploadModelRequest"]["properties"]),
        *(f"tensorboards.{name}" for name in schemas[f"{PREFIX}Tensorboard"]["properties"]),
        *(f"experiments.{name}" for name in schemas[f"{PREFIX}TensorboardExperiment"]["properties"]),
        *(f"runs.{name}" for name in schemas[f"{PREFIX}TensorboardRun"]["properties"]),
        *(f"timeSeries.{name}" for name in schemas[f"{PREFIX}TensorboardTimeSeries"]["properties"]),
    }
    assert without_a_row(wanted, rows) == set()


def test_every_method_that_is_served_has_a_row(rows: dict[str, str]) -> None:
    served = {f"{resource}.{name}" for resource, names in SERVED.items() for name in names if "." not in resource}
    assert served - set(rows) == set()


def test_job_and_study_fields_have_rows(schemas: dict[str, Any], rows: dict[str, str]) -> None:
    wanted = {
        *fields(schemas, "CustomJobSpec", ""),
        *fields(schemas, "StudySpec", "studySpec.", ("StudySpec",)),
        *(f"customJobs.{name}" for name in schemas[f"{PREFIX}CustomJob"]["properties"]),
        *(f"hyperparameterTuningJobs.{name}" for name in schemas[f"{PREFIX}HyperparameterTuningJob"]["properties"]),
        *(f"trials.{name}" for name in schemas[f"{PREFIX}Trial"]["properties"]),
    }
    assert wanted - set(rows) == set()


def kind_of(evidence: str) -> str:
    """Return a row's evidence without its month."""
    return re.sub(r"(?<=^recorded )20\d\d-(0[1-9]|1[0-2])$", "YYYY-MM", evidence)


def test_every_row_has_a_status_and_its_evidence(cells: dict[str, str]) -> None:
    pairs = [cell.split(", ") for cell in cells.values()]
    assert {status for status, _ in pairs} == STATUSES
    assert {kind_of(evidence) for _, evidence in pairs} == EVIDENCE


def test_the_page_counts_its_evidence(cells: dict[str, str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fidelity.md").read_text()
    told = {name: int(count) for name, count in re.findall(r"^\| ([a-zA-Z -]+) \| (\d+) \|", page, re.MULTILINE)}
    assert told == Counter(kind_of(cell.partition(", ")[2]) for cell in cells.values())


def test_recorded_rows_are_shown_by_recordings(cells: dict[str, str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fidelity.md").read_text()
    recordings = [name for name in cells if name.startswith("recording ")]
    assert [int(name.split(":")[0].split()[1]) for name in recordings] == [*range(1, len(recordings) + 1)]
    lines = [line for line in page.splitlines() if line.startswith("| `recording ")]
    assert [line for line in lines if "api/test_recorded.py::" not in line and "refused" not in line] == []


def test_unsupported_fields_are_documented(rows: dict[str, str]) -> None:
    assert {name: rows[name] for name in REJECTED_FIELDS} == dict.fromkeys(REJECTED_FIELDS, "refused")
    assert {name: rows[name] for name in APPROXIMATED_FIELDS} == dict.fromkeys(APPROXIMATED_FIELDS, "approximated")


def test_fields_documented_as_refused_are_rejected(rows: dict[str, str], schemas: dict[str, Any]) -> None:
    known = {*fields(schemas, "CustomJobSpec", ""), *fields(schemas, "StudySpec", "studySpec.", ("StudySpec",))}
    said = {name for name, status in rows.items() if status == "refused" and name in known}
    assert said == {
        name for name in known if any(name == each or name.startswith(f"{each}.") for each in REJECTED_FIELDS)
    }


def test_every_row_names_existing_tests() -> None:
    tests = Path(__file__).parents[1]
    page = (tests.parent / "docs" / "fidelity.md").read_text()
    shown_by = re.findall(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    assert len(shown_by) == page.count("\n| `")
    assert [name for name, named in shown_by if not re.search(r"`[\w/]+\.py::\w+`", named)] == []
    named = set(re.findall(r"`([\w/]+\.py)::(\w+)`", page))
    missing = {(path, name) for path, name in named if f"def {name}(" not in (tests / path).read_text()}
    assert missing == set()
