"""Writes what is taken from the API's discovery documents, which google-api-python-client ships.

    python -m tools.discovery [--check]

- `vertex_api/types.py`: the messages. The document lists names; the numbers that clients may send for enums come from
  the protos of google-cloud-aiplatform.
- `components/args.py`: the same messages for type checkers of programs, in which values may be outputs of resources.
- `vertex_emulator/api/vertex_ai_methods.json`: the methods. The emulator answers 501 to those that it lacks, and 404 to
  those that Vertex AI does not have.
"""

import argparse
import importlib.resources
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, cast

import proto

SCHEMA_ID_PREFIX = "GoogleCloudAiplatformV1"
"""The prefix of the ids of the schemas in the discovery document."""
Schema = dict[str, Any]
ROOT = Path(__file__).parents[1]
TYPES = ROOT / "vertex_api" / "types.py"
ARGUMENTS = ROOT / "components" / "args.py"
METHODS = ROOT / "vertex_emulator" / "api" / "vertex_ai_methods.json"
VERSIONS = ("v1", "v1beta1")
Methods = set[tuple[str, str]]
MODEL_REQUESTS = ("CopyModelRequest", "ExportModelRequest", "MergeVersionAliasesRequest")
TENSORBOARDS = ("Tensorboard", "TensorboardExperiment", "WriteTensorboardExperimentDataRequest")
BATCHES = ("BatchCreateTensorboardRunsRequest", "BatchCreateTensorboardTimeSeriesRequest")
LINEAGE = ("MetadataStore", "Context", "Execution", "Artifact", "AddExecutionEventsRequest")
LINEAGE_REQUESTS = ("AddContextArtifactsAndExecutionsRequest", "AddContextChildrenRequest", "PurgeContextsRequest")
JOBS = ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")
ROOTS = (*JOBS, "UploadModelRequest", *MODEL_REQUESTS, *TENSORBOARDS, *BATCHES, *LINEAGE, *LINEAGE_REQUESTS)
MAX_LINE_LENGTH = 120
MAY_BE_EMPTY = {("EnvVar", "value")}
"""Required texts whose empty value says something, and is left out by clients."""
MAY_BE_INFINITE = {("Scalar", "value")}
"""Numbers that may be infinite, or none: a loss that diverges is a point of a curve, too."""
TASK_INPUTS = ("studySpec", "trialJobSpec", "maxTrialCount", "parallelTrialCount", "maxFailedTrialCount")
"""The fields of a tuning job that are the inputs of a pipeline's task."""
PYTHON_TYPES = {"Int64": "int", "Int32": "int", "Double": "float", "Boolean": "bool", "Any": "Any"}
SCALARS = {
    ("string", None): "String",
    ("string", "int64"): "Int64",
    ("string", "byte"): "String",
    ("string", "google-duration"): "Duration",
    ("string", "google-datetime"): "Timestamp",
    ("integer", "int32"): "Int32",
    ("number", "double"): "Double",
    ("number", "float"): "Double",
    ("boolean", None): "Boolean",
    ("any", None): "Any",
}


def load(version: str = "v1") -> Schema:
    """Return the API's discovery document that the installed google-api-python-client ships."""
    documents = importlib.resources.files("googleapiclient") / "discovery_cache" / "documents"
    document: Schema = json.loads((documents / f"aiplatform.{version}.json").read_text())
    return document


def run(module: str, description: str | None, render: Callable[[], dict[Path, str]]) -> int:
    """Parse the command line of a generator, write its files or, with `--check`, name those that are out of date.

    Returns the exit code.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    check, exit_code = parser.parse_args().check, 0
    for file, text in render().items():
        if not check:
            file.write_text(text)
            print(f"{file.name}: {len(text) // 1000} kB")
        elif not file.is_file() or file.read_text() != text:
            print(f"{file} is out of date: run python -m {module}", file=sys.stderr)
            exit_code = 1
    return exit_code


HEADER = '''"""The training API's messages: generated from its discovery document, do not edit.

{api} {version}, revision {revision}; written by `python -m tools.discovery`.
Field names and meanings: the API's own reference. `OutputOnly` fields are set by the service.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_snake
from typing_extensions import TypedDict

from vertex_api.scalars import Boolean, Double, Duration, Float, Int32, Int64, Numbered, OutputOnly, String, Timestamp

REVISION = "{revision}"


@with_config(
    ConfigDict(
        extra="forbid", alias_generator=to_snake, validate_by_name=True, validate_by_alias=True, loc_by_alias=False
    )
)
class Message(TypedDict, total=False):
    """A message of the API, with its fields in either spelling and no others."""
'''


def render_types(document: Schema) -> str:
    """Return the text of vertex_api/types.py for a discovery document."""
    writer = _TypeWriter(document["schemas"])
    classes = [writer.message(schema_id) for schema_id in _reachable(document["schemas"])]
    enums = [_enum(name, numbers) for name, numbers in sorted(writer.used_enums.items())]
    header = HEADER.format(api=document["name"], version=document["version"], revision=document["revision"])
    tables = "\n".join(["# fmt: off", *enums, "# fmt: on"])
    text = "\n\n\n".join([f"{header}\n\n{tables}", *classes]) + "\n"
    return _formatted(text, TYPES)


def _formatted(text: str, file: Path) -> str:
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(file), "-"]
    return subprocess.run(formatter, input=text, capture_output=True, text=True, check=True).stdout


class _TypeWriter:
    """Collects the enums that the fields use while it writes the classes."""

    base = "Message"

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        message_names = {short_id(schema_id) for schema_id in _reachable(schemas)}
        self.known_enums = _enums(message_names)
        self.used_enums: dict[str, dict[str, int]] = {}

    def annotated_type(self, field: Schema) -> str:
        if "$ref" in field:
            return f'"{short_id(field["$ref"])}"'
        if "enum" in field:
            name, numbers = self.known_enums[frozenset(field["enum"])]
            self.used_enums[name] = numbers
            return name
        if field["type"] == "array":
            return f"list[{self.annotated_type(field['items'])}]"
        if field["type"] == "object":
            return f"dict[str, {self.annotated_type(field['additionalProperties'])}]"
        return SCALARS[field["type"], field.get("format")]

    def annotation(self, message_name: str, field_name: str, field: Schema) -> str:
        annotation = "Float" if (message_name, field_name) in MAY_BE_INFINITE else self.annotated_type(field)
        if field.get("readOnly"):
            return f"OutputOnly[{annotation}]"
        # Zeros are left out of proto JSON, so only what has no zero can be required.
        has_no_zero = "enum" not in field and ("$ref" in field or annotation == "String" or field["type"] == "array")
        can_be_required = has_no_zero and (message_name, field_name) not in MAY_BE_EMPTY
        if can_be_required and re.match(r"Required\.", field.get("description", "")):
            return f"Required[{annotation}]"
        return annotation

    def message(self, schema_id: str) -> str:
        return self.text(short_id(schema_id), self.schemas[schema_id])

    def text(self, name: str, schema: Schema) -> str:
        sentence = re.split(r"(?<=\.)\s", schema.get("description", f"{name}."))[0]
        doc = "\n    ".join(textwrap.wrap(f'"""{sentence}"""', MAX_LINE_LENGTH - 4))
        properties = schema.get("properties", {})
        annotations = {field: self.annotation(name, field, properties[field]) for field in properties}
        fields = [f"    {field}: {annotation}" for field, annotation in annotations.items() if annotation]
        return f"class {name}({self.base}, total=False):\n    {doc}\n\n" + "\n".join(fields)


ARGUMENTS_HEADER = '''"""The fields of jobs, for type checkers: generated from the discovery document, do not edit.

The messages of `vertex_api.types` without what the service sets. A value may be an output of another resource.
{api} {version}, revision {revision}; written by `python -m tools.discovery`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required

from pulumi import Input
from typing_extensions import ReadOnly, TypedDict
'''


def render_arguments(document: Schema) -> str:
    """Return the text of components/args.py for a discovery document."""
    writer = _ArgumentWriter(document["schemas"])
    classes = [writer.message(schema_id) for schema_id in _reachable(document["schemas"], JOBS)]
    tuning = {**document["schemas"][f"{SCHEMA_ID_PREFIX}HyperparameterTuningJob"], "description": _TASK_INPUTS_DOC}
    tuning["properties"] = {field: tuning["properties"][field] for field in TASK_INPUTS}
    classes.append(writer.text("TuningTaskInputs", tuning))
    enums = [f"{name} = Literal{json.dumps([*numbers])}" for name, numbers in sorted(writer.used_enums.items())]
    header = ARGUMENTS_HEADER.format(api=document["name"], version=document["version"], revision=document["revision"])
    names = [f'{job}Args = {job}\n"""{_ARGS_DOC.format(job)}"""' for job in JOBS]
    return _formatted("\n\n\n".join(["\n".join([header, *enums]), *classes, "\n".join(names)]) + "\n", ARGUMENTS)


_ARGS_DOC = "The API's fields, as a TypedDict: `vertex_training.args.{0}`. Its values may be outputs."
_TASK_INPUTS_DOC = "What a tuning task of a pipeline takes: a study, and the job of each of its trials."


class _ArgumentWriter(_TypeWriter):
    """Writes fields that nobody assigns to, so that a message of `vertex_api.types` is one of these, too."""

    base = "TypedDict"

    def annotated_type(self, field: Schema) -> str:
        if "$ref" in field:
            return super().annotated_type(field)
        if field["type"] in ("array", "object"):
            items = field["items"] if field["type"] == "array" else field["additionalProperties"]
            many = f"Sequence[{self.annotated_type(items)}]"
            return f"Input[{many if field['type'] == 'array' else many.replace('Sequence[', 'Mapping[str, ', 1)}]"
        found = super().annotated_type(field)
        return f"Input[{found if 'enum' in field else PYTHON_TYPES.get(found, 'str')}]"

    def annotation(self, message_name: str, field_name: str, field: Schema) -> str:
        if field.get("readOnly"):
            return ""
        if (message_name, field_name) == ("TrainingPipeline", "trainingTaskInputs"):
            return 'Required[ReadOnly["CustomJobSpec | TuningTaskInputs"]]'
        plain = _TypeWriter(self.schemas).annotation(message_name, field_name, field)
        is_required = plain.startswith("Required[")
        if (message_name, field_name) == ("TrainingPipeline", "trainingTaskDefinition"):
            is_required = False  # the inputs say which task it is
        found = f"ReadOnly[{self.annotated_type(field)}]"
        return f"Required[{found}]" if is_required else found


def _enum(name: str, numbers_by_value: dict[str, int]) -> str:
    values = json.dumps(list(numbers_by_value))[1:-1]
    marks = f"Numbered({', '.join(map(str, numbers_by_value.values()))})"
    line = f"{name} = Annotated[Literal[{values}], {marks}]"
    if len(line) <= MAX_LINE_LENGTH:
        return line
    table = textwrap.fill(values, MAX_LINE_LENGTH, initial_indent="    ", subsequent_indent="    ")
    return f"{name} = Annotated[Literal[\n{table}\n], {marks}]"


def _enums(message_names: set[str]) -> dict[frozenset[str], tuple[str, dict[str, int]]]:
    """Type name and numbers of each enum at the top level or inside `message_names`, by the set of its value names."""
    found: dict[frozenset[str], tuple[str, dict[str, int]]] = {}

    def add_enums(owner: object, prefix: str) -> None:
        for name, member in vars(owner).items():
            if isinstance(member, type) and issubclass(member, proto.Enum):
                if not prefix or prefix in message_names:
                    numbers = {value.name: int(value) for value in cast(type[IntEnum], member)}
                    found.setdefault(frozenset(numbers), (prefix + name, numbers))
            elif isinstance(member, type) and issubclass(member, proto.Message):
                add_enums(member, prefix + name)

    # Imported here, because that takes a second, and the editor schemas do without it.
    from google.cloud import aiplatform_v1

    _ = aiplatform_v1.JobServiceClient  # its names are all there then, also if this process has deferred the package
    add_enums(aiplatform_v1, "")
    return found


def _references(node: object) -> Iterator[str]:
    """Yield every schema id that a schema mentions, in document order."""
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)


def _reachable(schemas: dict[str, Schema], roots: Sequence[str] = ROOTS) -> list[str]:
    """Return the schema ids that the root types reach, breadth first."""
    found = [SCHEMA_ID_PREFIX + root for root in roots]
    for schema_id in found:
        found += [name for name in dict.fromkeys(_references(schemas[schema_id])) if name not in found]
    return found


def short_id(schema_id: str) -> str:
    """`GoogleCloudAiplatformV1CustomJob` → `CustomJob`, `GoogleRpcStatus` → `Status`."""
    return schema_id.removeprefix(SCHEMA_ID_PREFIX).removeprefix("GoogleRpc")


def _methods_below(api_resource: Schema) -> Iterator[Schema]:
    """Yield every method of a resource of the document and of those below it."""
    yield from api_resource.get("methods", {}).values()
    for child in api_resource.get("resources", {}).values():
        yield from _methods_below(child)


def _methods(document: Schema) -> Methods:
    """Return the HTTP method and the path of each method, without the version and with `*` for each parameter."""
    found = set()
    for method in _methods_below(document):
        path = method["flatPath"].removeprefix(document["version"]).removeprefix("/")
        found.add((method["httpMethod"], re.sub(r"\{[^}]+\}", "*", path)))
    return found


def render_methods(documents: dict[str, Schema]) -> str:
    """Return the text of the file for the discovery documents by version."""
    stable, beta = (_methods(documents[version]) for version in VERSIONS)
    revisions = ", ".join(f"{version} revision {documents[version]['revision']}" for version in VERSIONS)
    parts = {"both": stable & beta, "v1": stable - beta, "v1beta1": beta - stable}
    by_part = {part: _by_verb(methods) for part, methods in parts.items()}
    source = f"aiplatform {revisions}; written by `python -m tools.discovery`"
    return json.dumps({"source": source, **by_part}, indent=0) + "\n"


def _by_verb(methods: Methods) -> dict[str, list[str]]:
    """Return the sorted paths of each HTTP method."""
    names = sorted({name for name, _ in methods})
    return {name: sorted(path for other, path in methods if other == name) for name in names}


def main() -> int:
    return run(
        "tools.discovery",
        __doc__,
        lambda: {
            TYPES: render_types(load()),
            ARGUMENTS: render_arguments(load()),
            METHODS: render_methods({version: load(version) for version in VERSIONS}),
        },
    )


if __name__ == "__main__":
    raise SystemExit(main())
