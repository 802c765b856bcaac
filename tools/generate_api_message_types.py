"""Writes vertex_api/types.py from the discovery document that google-api-python-client ships.

    python -m tools.generate_api_message_types [--check]

The document lists names; the numbers that clients may send for enums come from the protos of google-cloud-aiplatform.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import cast

import proto

from tools.generator_base import SCHEMA_ID_PREFIX, Schema, load_installed_discovery_document, run_generator_command

MODEL_REQUESTS = ("CopyModelRequest", "ExportModelRequest", "MergeVersionAliasesRequest")
ROOTS = ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline", "UploadModelRequest", *MODEL_REQUESTS)
TARGET = Path(__file__).parents[1] / "vertex_api" / "types.py"
MAX_LINE_LENGTH = 120
MAY_BE_EMPTY = {("EnvVar", "value")}
"""Required texts whose empty value says something, and is left out by clients."""
SCALARS = {
    ("string", None): "String",
    ("string", "int64"): "Int64",
    ("string", "google-duration"): "Duration",
    ("string", "google-datetime"): "Timestamp",
    ("integer", "int32"): "Int32",
    ("number", "double"): "Double",
    ("number", "float"): "Double",
    ("boolean", None): "Boolean",
    ("any", None): "Any",
}


def shorten_schema_id(schema_id: str) -> str:
    """`GoogleCloudAiplatformV1CustomJob` → `CustomJob`, `GoogleRpcStatus` → `Status`."""
    return schema_id.removeprefix(SCHEMA_ID_PREFIX).removeprefix("GoogleRpc")


def iterate_referenced_schema_ids(node: object) -> Iterator[str]:
    """Yield every schema id that a schema mentions, in document order."""
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for child in node.values():
            yield from iterate_referenced_schema_ids(child)


def list_reachable_schema_ids(schemas: dict[str, Schema]) -> list[str]:
    """Return the schema ids that the root types reach, breadth first."""
    found = [SCHEMA_ID_PREFIX + root for root in ROOTS]
    for schema_id in found:
        found += [
            name for name in dict.fromkeys(iterate_referenced_schema_ids(schemas[schema_id])) if name not in found
        ]
    return found


def collect_enums_by_value_names(message_names: set[str]) -> dict[frozenset[str], tuple[str, dict[str, int]]]:
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


class TypeWriter:
    """Collects the enums that the fields use while it writes the classes."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        message_names = {shorten_schema_id(schema_id) for schema_id in list_reachable_schema_ids(schemas)}
        self.known_enums = collect_enums_by_value_names(message_names)
        self.used_enums: dict[str, dict[str, int]] = {}

    def render_type(self, field: Schema) -> str:
        if "$ref" in field:
            return f'"{shorten_schema_id(field["$ref"])}"'
        if "enum" in field:
            name, numbers = self.known_enums[frozenset(field["enum"])]
            self.used_enums[name] = numbers
            return name
        if field["type"] == "array":
            return f"list[{self.render_type(field['items'])}]"
        if field["type"] == "object":
            return f"dict[str, {self.render_type(field['additionalProperties'])}]"
        return SCALARS[field["type"], field.get("format")]

    def render_annotation(self, message_name: str, field_name: str, field: Schema) -> str:
        annotation = self.render_type(field)
        if field.get("readOnly"):
            return f"OutputOnly[{annotation}]"
        # Zeros are left out of proto JSON, so only what has no zero can be required.
        has_no_zero = "enum" not in field and ("$ref" in field or annotation == "String" or field["type"] == "array")
        can_be_required = has_no_zero and (message_name, field_name) not in MAY_BE_EMPTY
        if can_be_required and re.match(r"Required\.", field.get("description", "")):
            return f"Required[{annotation}]"
        return annotation

    def render_class(self, schema_id: str) -> str:
        schema, name = self.schemas[schema_id], shorten_schema_id(schema_id)
        sentence = re.split(r"(?<=\.)\s", schema.get("description", f"{name}."))[0]
        doc = "\n    ".join(textwrap.wrap(f'"""{sentence}"""', MAX_LINE_LENGTH - 4))
        properties = schema.get("properties", {})
        fields = [f"    {field}: {self.render_annotation(name, field, properties[field])}" for field in properties]
        return f"class {name}(Message, total=False):\n    {doc}\n\n" + "\n".join(fields)


def render_enum_literal_type(name: str, numbers_by_value: dict[str, int]) -> str:
    values = json.dumps(list(numbers_by_value))[1:-1]
    marks = f"Numbered({', '.join(map(str, numbers_by_value.values()))})"
    line = f"{name} = Annotated[Literal[{values}], {marks}]"
    if len(line) <= MAX_LINE_LENGTH:
        return line
    table = textwrap.fill(values, MAX_LINE_LENGTH, initial_indent="    ", subsequent_indent="    ")
    return f"{name} = Annotated[Literal[\n{table}\n], {marks}]"


HEADER = '''"""The training API's messages: generated from its discovery document, do not edit.

{api} {version}, revision {revision}; written by `python -m tools.generate_api_message_types`.
Field names and meanings: the API's own reference. `OutputOnly` fields are set by the service.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_snake
from typing_extensions import TypedDict

from vertex_api.scalars import Boolean, Double, Duration, Int32, Int64, Numbered, OutputOnly, String, Timestamp

REVISION = "{revision}"


@with_config(
    ConfigDict(
        extra="forbid", alias_generator=to_snake, validate_by_name=True, validate_by_alias=True, loc_by_alias=False
    )
)
class Message(TypedDict, total=False):
    """A message of the API, with its fields in either spelling and no others."""
'''


def render_types_module(document: Schema) -> str:
    """Return the text of vertex_api/types.py for a discovery document."""
    writer = TypeWriter(document["schemas"])
    classes = [writer.render_class(schema_id) for schema_id in list_reachable_schema_ids(document["schemas"])]
    enums = [render_enum_literal_type(name, numbers) for name, numbers in sorted(writer.used_enums.items())]
    header = HEADER.format(api=document["name"], version=document["version"], revision=document["revision"])
    tables = "\n".join(["# fmt: off", *enums, "# fmt: on"])
    text = "\n\n\n".join([f"{header}\n\n{tables}", *classes]) + "\n"
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(formatter, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    return run_generator_command(
        "tools.generate_api_message_types",
        __doc__,
        lambda: {TARGET: render_types_module(load_installed_discovery_document())},
    )


if __name__ == "__main__":
    raise SystemExit(main())
