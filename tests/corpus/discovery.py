"""What an API's discovery document says of a message: the judge of requests that no service answers here."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import googleapiclient

_PREFIXES = {"aiplatform.v1": "GoogleCloudAiplatformV1", "cloudbuild.v1": ""}
"""Of the names of messages, by document."""
_FORMATS = {
    "int64": r"-?\d+",
    "google-duration": r"-?\d+(\.\d+)?s",
    "google-datetime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


@cache
def schemas(document: str = "aiplatform.v1") -> dict[str, Any]:
    """The messages of a document, by their full names."""
    documents = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    found: dict[str, Any] = json.loads((documents / f"{document}.json").read_text())["schemas"]
    return found


def broken(message: str, value: Any, document: str = "aiplatform.v1") -> list[str]:
    """Every place at which a value of a message, such as `CustomJob`, is not what the document says."""
    return list(_broken(document, {"$ref": f"{_PREFIXES[document]}{message}"}, value, message))


def _broken(document: str, schema: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = {**schemas(document)[schema["$ref"]], "readOnly": schema.get("readOnly", False)}
    kind = schema["type"]
    if schema.get("readOnly"):
        yield f"{at} is written by the service alone"
    elif kind == "any":
        return
    elif not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{at} is no {kind}: {value!r}"
    elif kind == "array":
        for index, each in enumerate(value):
            yield from _broken(document, schema["items"], each, f"{at}[{index}]")
    elif kind == "object":
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if inner is None:
                yield f"{at} has no field {name}"
            else:
                yield from _broken(document, inner, each, f"{at}.{name}")
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{at} has no value {value!r}"
    elif schema.get("format") in _FORMATS and not re.fullmatch(_FORMATS[schema["format"]], value):
        yield f"{at} has not the format {schema['format']}: {value!r}"
