"""Writes the JSON Schemas that editors check declarations and stack files with, from the types that the program uses.

    python -m tools.schemas [--check]

Descriptions are the first sentences of the API's discovery document, and those of docs/configuration.md. In the tables
of that page, the column "Type" is written from the types too, and "required" in the column "Default".
"""

import json
import re
import types
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, Literal, Required, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_snake
from typing_extensions import is_typeddict
from vertex_training.schema import shapes
from vertex_training.schema.formats import Formerly, NumberOrText
from vertex_training.settings.settings import NAMESPACE

from tools import discovery
from vertex_api.messages import split_hint
from vertex_api.names import KINDS, TRAINING_PIPELINE
from vertex_api.pipelines import TrainingPipeline
from vertex_api.scalars import Boolean, Double, Duration, Int32, Int64, Numbered, OutputOnly, String, Timestamp

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "components" / "schema"
_PAGE = Path("docs") / "configuration.md"
_TABLE = re.compile(r"(?:^\| `[^`]+` \|.*\n)+", re.MULTILINE)
REFERENCE = r"\$\{[^}]+\}"
_ALONE = f"^{REFERENCE}$"
_SECURE = {"type": "object", "properties": {"secure": {"type": "string"}}, "required": ["secure"]}


def _scalar(json_type: str, pattern: str = "") -> dict[str, Any]:
    """Return the schema of a scalar, or a text of a pattern, or a text with a reference in it."""
    return {"type": [json_type, "string"], "pattern": f"{pattern}|{REFERENCE}" if pattern else REFERENCE}


_DIGITS = "^-?[0-9]+$"
_SCALARS: list[tuple[Any, dict[str, Any]]] = [
    (Formerly, {"type": ["string", "array"], "items": {"type": "string"}}),
    (NumberOrText, {"type": ["integer", "string"]}),
    (String, {"type": "string"}),
    (Boolean, _scalar("boolean")),
    (Double, _scalar("number", r"^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$")),
    (Int32, _scalar("integer", _DIGITS)),
    (Int64, _scalar("integer", _DIGITS)),
    (Duration, {"type": "string", "pattern": rf"^-?[0-9]+([.][0-9]{{1,9}})?s$|{REFERENCE}"}),
    (Timestamp, {"type": "string"}),
]
_FILLED_IN = ("Model", "displayName")  # a model is declared in a pipeline alone, and has that one's name
_BESIDE_A_FILE = ("CustomJobSpec", "workerPoolSpecs")  # a job's file may hold the pools, and the rest stand beside it
_OUTPUT_ONLY = get_args(OutputOnly[str])[1]

Schema = dict[str, Any]


class Builder:
    """Collects the definitions that the fields use while it writes them. `descriptions` are by type and field."""

    def __init__(self, descriptions: dict[str, dict[str, str]]) -> None:
        self.descriptions = descriptions
        self.definitions: dict[str, Schema] = {}

    def of_type(self, hint: Any) -> Schema:
        """Return the schema of a type as `vertex_api.types` and `vertex_training.schema` write them."""
        inner, marks = split_hint(hint)
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
                # Google's clients send enums as numbers.
                number = [{"type": "integer"}] if any(isinstance(each, Numbered) for each in marks) else []
                return {"anyOf": [texts, *number, {"type": "string", "pattern": _ALONE}]}
            case origin if origin is types.UnionType:
                return {"anyOf": [self.of_type(each) for each in get_args(inner)]}
            case origin if origin is list:
                return {
                    "type": ["array", "string"],
                    "pattern": _ALONE,
                    "items": self.of_type(get_args(inner)[0]),
                }
            case _:
                return _map(self.of_type(get_args(inner)[1]))

    def reference(self, message: Any) -> Schema:
        """Return a reference to the definition of a TypedDict, which is written if it is not there yet."""
        name = message.__name__
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] |= self.of_message(message)
        return {"$ref": f"#/$defs/{name}"}

    def of_message(self, typed_dict: Any) -> Schema:
        """Return the schema of a TypedDict, without fields that the service sets.

        Fields stand in both spellings; only the API's own one is described.
        """
        api = typed_dict.__module__.startswith("vertex_api.")
        properties: dict[str, Schema] = {}
        required = []
        for name, hint in get_type_hints(typed_dict, include_extras=True).items():
            if _OUTPUT_ONLY in split_hint(hint)[1]:
                continue
            schema = self.of_type(hint)
            description = self.descriptions.get(typed_dict.__name__, {}).get(name)
            if not api and not description:
                # A table of other keys than the shape's describes none of them.
                raise LookupError(f"docs/configuration.md: no table has exactly the keys of {typed_dict.__name__}")
            properties[name] = {**schema, **({"description": description} if description else {})}
            if api:
                properties.setdefault(to_snake(name), schema)
            if get_origin(hint) is Required and (typed_dict.__name__, name) not in (_FILLED_IN, _BESIDE_A_FILE):
                required.append(name)
        schema = {"type": ["object", "string"], "pattern": _ALONE, "additionalProperties": False}
        return {**schema, "properties": properties, **all_required(required)}

    def of_job(self, message: Any) -> Schema:
        """Return the schema of a job as it is declared: with a lifecycle, perhaps with a file, and named by its key."""
        schema = self.of_message(message)
        required = schema.pop("allOf", [])
        schema["properties"] |= {
            "lifecycle": self.reference(shapes.Lifecycle),
            "rehearse": self.reference(shapes.Rehearse),
            "formerly": self.of_message(shapes.Former)["properties"]["formerly"],
            "spec": self.reference(shapes.SpecFile),
        }
        spelled = [rule for rule in required if "displayName" not in json.dumps(rule)]
        pools = all_required([_BESIDE_A_FILE[1]])
        of_a_study = {
            "properties": dict.fromkeys(("trialJobSpec", "trial_job_spec"), pools),
            **all_required(["studySpec"]),
        }
        below = {"jobSpec": pools, "trialJobSpec": pools, "trainingTaskInputs": {"anyOf": [pools, of_a_study]}}
        spelled += [
            {"properties": dict.fromkeys((field, to_snake(field)), rule)}
            for field, rule in below.items()
            if field in schema["properties"]
        ]
        return {**schema, "if": {"not": {"required": ["spec"]}}, "then": {"allOf": spelled}}

    def declarations(self) -> dict[str, Schema]:
        """Return the schemas of the keys of a file of declarations."""
        messages = {kind: kind.typed_dict for kind in KINDS.values()} | {TRAINING_PIPELINE: TrainingPipeline}
        jobs = {kind.collection: _map(self.of_job(message)) for kind, message in messages.items()}
        keys: dict[str, Schema] = self.of_message(shapes.Declarations)["properties"]
        return {name: {**schema, **jobs.get(name, {})} for name, schema in keys.items()}


def _map(value_schema: Schema) -> Schema:
    return {"type": ["object", "string"], "pattern": _ALONE, "additionalProperties": value_schema}


def all_required(names: list[str]) -> Schema:
    """Return a rule for each field that is required, in one spelling or the other."""
    rules = [{"anyOf": [{"required": [one]} for one in dict.fromkeys((name, to_snake(name)))]} for name in names]
    return {"allOf": rules} if rules else {}


def _api_descriptions(document: Schema) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the first sentence on each field of the API's messages, by message."""
    for name, schema in document["schemas"].items():
        texts = {field: one.get("description", "") for field, one in schema.get("properties", {}).items()}
        sentences = {
            field: re.split(r"(?<=[^.][.])\s", _without_prefix(text), maxsplit=1)[0] for field, text in texts.items()
        }
        yield name.removeprefix(discovery.SCHEMA_ID_PREFIX), {field: text for field, text in sentences.items() if text}


def _without_prefix(description: str) -> str:
    """Return the description of a field without `Required.` and the like before it."""
    return re.sub(r"^((Required|Optional|Immutable)\.\s*)+", "", description)


def _shape_descriptions(markdown: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what the tables of docs/configuration.md say on each key of declarations and stack files, by shape."""
    for rows in _TABLE.findall(markdown):
        cells = re.findall(r"^\| `([^`]+)` \|[^|]*\|[^|]*\|([^|]*)\|", rows, re.MULTILINE)
        descriptions = {key: re.sub(r",? ?\[(below|images|jobs)\]\([^)]*\)", "", cell).strip() for key, cell in cells}
        yield from ((name, descriptions) for name in _shapes_with(descriptions.keys()))


def _shapes_with(keys: Set[str]) -> Iterator[str]:
    """Yield the names of the shapes that a table with these keys describes."""
    inherited = shapes.Declarations.__annotations__.keys()
    for name, shape in vars(shapes).items():
        if (
            is_typeddict(shape)
            and keys
            and keys in (shape.__annotations__.keys(), shape.__annotations__.keys() - inherited)
        ):
            yield name


def with_types(markdown: str) -> str:
    """Return docs/configuration.md with the types of the shapes. A type that has a link stays as it is written."""

    def table(rows: re.Match[str]) -> str:
        keys = re.findall(r"^\| `([^`]+)` \|", rows[0], re.MULTILINE)
        for name in _shapes_with({*keys}):
            hints = get_type_hints(getattr(shapes, name), include_extras=True)
            lines = zip(keys, rows[0].splitlines(keepends=True), strict=True)
            return "".join(_with_type(line, hints[key]) for key, line in lines)
        return rows[0]

    return _TABLE.sub(table, markdown)


def _with_type(row: str, hint: Any) -> str:
    start, key, type_, default, rest = row.split("|", 4)
    if "](" not in type_:
        type_ = f" {_described(hint)} "
    return "|".join([start, key, type_, " required " if get_origin(hint) is Required else default, rest])


_WORDS = {String: "string", Boolean: "boolean", Double: "number", Int32: "integer", Duration: "duration"}


def _described(hint: Any) -> str:
    """Return a type in words, such as `list of strings`."""
    inner, marks = split_hint(hint)
    if get_args(Formerly)[1] in marks:
        return "string or list of strings"
    if get_args(NumberOrText)[1] in marks:
        return "string or integer"
    for scalar, word in _WORDS.items():
        if get_args(scalar)[1] in marks:
            return word
    match get_origin(inner):
        case origin if origin is Literal:
            *first, last = (f"`{each}`" for each in get_args(inner))
            return f"{', '.join(first)} or {last}" if first else last
        case origin if origin is list:
            return f"list of {_described(get_args(inner)[0])}s"
        case origin if origin is dict:
            value = get_args(inner)[1]
            if value is Any:
                return "map of any values"
            before, of, after = _described(value).partition(" of ")
            return f"map of {before}s{of}{after}"
    return "map"


def build_schemas() -> dict[str, Schema]:
    """Return the two schemas, by the names of their files."""
    descriptions = dict(_api_descriptions(discovery.load()))
    descriptions |= dict(_shape_descriptions((ROOT / _PAGE).read_text()))
    descriptions["TuningTaskInputs"] = descriptions["HyperparameterTuningJob"]
    descriptions["Stack"] = descriptions["Declarations"] | descriptions["Stack"]
    return {
        "declarations.schema.json": _declarations_schema(Builder(descriptions)),
        "stack.schema.json": _stack_schema(Builder(descriptions)),
    }


def _declarations_schema(builder: Builder) -> Schema:
    properties = builder.declarations()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Images and jobs of vertex-training",
        "type": "object",
        "properties": properties,
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "$defs": builder.definitions,
    }


def _stack_schema(builder: Builder) -> Schema:
    keys = {
        **builder.of_message(shapes.Stack)["properties"],
        **builder.declarations(),
    }
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
        "$defs": builder.definitions,
    }


def main() -> int:
    def render_files() -> dict[Path, str]:
        schemas = build_schemas().items()
        files = {FOLDER / name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in schemas}
        return {**files, ROOT / _PAGE: with_types((ROOT / _PAGE).read_text())}

    return discovery.run("tools.schemas", __doc__, render_files)


if __name__ == "__main__":
    raise SystemExit(main())
