"""Writes the JSON Schemas that editors check declarations and stack files with, from the types that the program uses.

    python -m tools.generate_schemas [--check]

Descriptions are the first sentences of the API's discovery document, and those of docs/configuration.md.
"""

import argparse
import importlib.resources
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Required, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_snake
from typing_extensions import is_typeddict

from components.schema import shapes
from components.schema.formats import NumberOrText
from components.settings.stack_values import NAMESPACE
from tools.generate_types import PREFIX
from vertex_api.kinds import KINDS, TRAINING_PIPELINE
from vertex_api.scalars import Boolean, Double, Duration, Int32, Int64, OutputOnly, String, Timestamp
from vertex_api.training_pipeline import TrainingPipeline

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "components" / "schema"
REFERENCE = r"\$\{[^}]+\}"
_ALONE = f"^{REFERENCE}$"
_SECURE = {"type": "object", "properties": {"secure": {"type": "string"}}, "required": ["secure"]}


def _or_reference(kind: str, pattern: str = "") -> dict[str, Any]:
    """A scalar, or a text of a pattern, or a text with a reference in it."""
    return {"type": [kind, "string"], "pattern": f"{pattern}|{REFERENCE}" if pattern else REFERENCE}


_DIGITS = "^-?[0-9]+$"
_SCALARS: list[tuple[Any, dict[str, Any]]] = [
    (NumberOrText, {"type": ["integer", "string"]}),
    (String, {"type": "string"}),
    (Boolean, _or_reference("boolean")),
    (Double, _or_reference("number", r"^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$")),
    (Int32, _or_reference("integer", _DIGITS)),
    (Int64, _or_reference("integer", _DIGITS)),
    (Duration, {"type": "string", "pattern": rf"^-?[0-9]+([.][0-9]{{1,9}})?s$|{REFERENCE}"}),
    (Timestamp, {"type": "string"}),
]
_FILLED_IN = ("Model", "displayName")  # a model is declared in a pipeline alone, and has that one's name
_BESIDE_A_FILE = ("CustomJobSpec", "workerPoolSpecs")  # a job's file may hold the pools, and the rest stand beside it
_OUTPUT_ONLY = get_args(OutputOnly[str])[1]

Schema = dict[str, Any]


class Writer:
    """Collects the definitions that the fields use while it writes them; `described` are descriptions by type."""

    def __init__(self, described: dict[str, dict[str, str]]) -> None:
        self.described = described
        self.definitions: dict[str, Schema] = {}

    def type_of(self, hint: Any) -> Schema:
        """The schema of a type as `vertex_api.types` and `components.schema.shapes` write them."""
        inner, marks = _unwrapped(hint)
        for scalar, schema in _SCALARS:
            if get_args(scalar)[1] in marks:
                return schema
        if inner is Any:
            return {}
        if is_typeddict(inner):
            return self.reference(inner)
        match get_origin(inner):
            case origin if origin is Literal:
                texts = {"enum": list(get_args(inner))}
                number = [{"type": "integer"}] if marks else []  # Google's clients send enums as numbers
                return {"anyOf": [texts, *number, {"type": "string", "pattern": _ALONE}]}
            case origin if origin is types.UnionType:
                return {"anyOf": [self.type_of(each) for each in get_args(inner)]}
            case origin if origin is list:
                return {"type": ["array", "string"], "pattern": _ALONE, "items": self.type_of(get_args(inner)[0])}
            case _:
                return self.map_of(self.type_of(get_args(inner)[1]))

    @staticmethod
    def map_of(schema: Schema) -> Schema:
        """A map from names to what a schema says."""
        return {"type": ["object", "string"], "pattern": _ALONE, "additionalProperties": schema}

    def reference(self, message: Any) -> Schema:
        """A reference to the definition of a TypedDict, which is written if it is not there yet."""
        name = message.__name__
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] |= self.object_of(message)
        return {"$ref": f"#/$defs/{name}"}

    def object_of(self, message: Any) -> Schema:
        """A TypedDict: names in both spellings, the described one being the API's; nothing that the service sets."""
        api = message.__module__.startswith("vertex_api.")
        properties: dict[str, Schema] = {}
        required = []
        for name, hint in get_type_hints(message, include_extras=True).items():
            if _OUTPUT_ONLY in _unwrapped(hint)[1]:
                continue
            schema = self.type_of(hint)
            description = self.described.get(message.__name__, {}).get(name)
            properties[name] = {**schema, **({"description": description} if description else {})}
            if api:
                properties.setdefault(to_snake(name), schema)
            if get_origin(hint) is Required and (message.__name__, name) not in (_FILLED_IN, _BESIDE_A_FILE):
                required.append(name)
        found: Schema = {"type": ["object", "string"], "pattern": _ALONE, "additionalProperties": False}
        return {**found, "properties": properties, **needed(required)}

    def job(self, message: Any) -> Schema:
        """A job as it is declared: with a lifecycle, perhaps with a file, and named by its key."""
        schema = self.object_of(message)
        required = schema.pop("allOf", [])
        schema["properties"] |= {"lifecycle": self.reference(shapes.Lifecycle), "spec": self.reference(shapes.SpecFile)}
        spelled = [rule for rule in required if "displayName" not in json.dumps(rule)]
        pools = needed([_BESIDE_A_FILE[1]])
        of_a_study = {
            "properties": dict.fromkeys(("trialJobSpec", "trial_job_spec"), pools),
            **needed(["studySpec"]),
        }
        below = {"jobSpec": pools, "trialJobSpec": pools, "trainingTaskInputs": {"anyOf": [pools, of_a_study]}}
        spelled += [
            {"properties": dict.fromkeys((field, to_snake(field)), rule)}
            for field, rule in below.items()
            if field in schema["properties"]
        ]
        return {**schema, "if": {"not": {"required": ["spec"]}}, "then": {"allOf": spelled}}

    def build_declaration_properties(self) -> dict[str, Schema]:
        """The keys of a file of declarations."""
        messages = {kind: kind.message for kind in KINDS.values()} | {TRAINING_PIPELINE: TrainingPipeline}
        jobs = {kind.collection: self.map_of(self.job(message)) for kind, message in messages.items()}
        keys: dict[str, Schema] = self.object_of(shapes.Declarations)["properties"]
        return {name: {**schema, **jobs.get(name, {})} for name, schema in keys.items()}


def needed(names: list[str]) -> Schema:
    """A rule for each field that is required, in one spelling or the other."""
    rules = [{"anyOf": [{"required": [one]} for one in dict.fromkeys((name, to_snake(name)))]} for name in names]
    return {"allOf": rules} if rules else {}


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without Required and Annotated, and what it was annotated with."""
    if get_origin(hint) is Required:
        return _unwrapped(get_args(hint)[0])
    if hasattr(hint, "__metadata__"):
        return get_args(hint)[0], hint.__metadata__
    return hint, ()


def api_descriptions(document: Schema) -> Iterator[tuple[str, dict[str, str]]]:
    """The first sentence on each field of the API's messages."""
    for name, schema in document["schemas"].items():
        texts = {field: one.get("description", "") for field, one in schema.get("properties", {}).items()}
        sentences = {field: re.split(r"(?<=[^.][.])\s", _bare(text), maxsplit=1)[0] for field, text in texts.items()}
        yield name.removeprefix(PREFIX), {field: text for field, text in sentences.items() if text}


def _bare(text: str) -> str:
    return re.sub(r"^((Required|Optional|Immutable)\.\s*)+", "", text)


def page_descriptions(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    """What docs/configuration.md says of each key of our own shapes."""
    inherited = shapes.Declarations.__annotations__.keys()
    named = {name: value.__annotations__.keys() for name, value in vars(shapes).items() if is_typeddict(value)}
    for rows in re.findall(r"(?:^\| `[^`]+` \|.*\n)+", page, re.MULTILINE):
        cells = re.findall(r"^\| `([^`]+)` \|[^|]*\|[^|]*\|([^|]*)\|", rows, re.MULTILINE)
        said = {key: re.sub(r",? ?\[(below|images|jobs)\]\([^)]*\)", "", cell).strip() for key, cell in cells}
        yield from ((name, said) for name, own in named.items() if said and said.keys() in (own, own - inherited))


def schemas() -> dict[str, Schema]:
    """The two schemas, by the names of their files."""
    documents = importlib.resources.files("googleapiclient") / "discovery_cache" / "documents"
    document = json.loads((documents / "aiplatform.v1.json").read_text())
    described = dict(api_descriptions(document))
    described |= dict(page_descriptions((ROOT / "docs" / "configuration.md").read_text()))
    described["TuningTaskInputs"] = described["HyperparameterTuningJob"]
    described["Stack"] = described["Declarations"] | described["Stack"]
    return {
        "declarations.schema.json": _build_declarations_schema(Writer(described)),
        "stack.schema.json": _stack(Writer(described)),
    }


def _build_declarations_schema(writer: Writer) -> Schema:
    properties = writer.build_declaration_properties()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Images and jobs of vertex-training",
        "type": "object",
        "properties": properties,
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "$defs": writer.definitions,
    }


def _stack(writer: Writer) -> Schema:
    keys = {**writer.object_of(shapes.Stack)["properties"], **writer.build_declaration_properties()}
    keys["secrets"]["additionalProperties"] = {"anyOf": [{"type": "string"}, _SECURE]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A stack file of vertex-training",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {f"{NAMESPACE}:{name}": schema for name, schema in keys.items()},
                "patternProperties": {f"^(?!{NAMESPACE}:)": {}},
                "additionalProperties": False,
                "required": [f"{NAMESPACE}:target"],
            }
        },
        "$defs": writer.definitions,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.generate_schemas", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    check = parser.parse_args().check
    outdated = 0
    for name, schema in schemas().items():
        file, text = FOLDER / name, json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if check:
            if not file.is_file() or file.read_text() != text:
                print(f"{file} is out of date: run python -m tools.generate_schemas", file=sys.stderr)
                outdated = 1
        else:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text)
            print(f"{file.relative_to(ROOT)}: {len(text) // 1000} kB")
    return outdated


if __name__ == "__main__":
    raise SystemExit(main())
