"""Writes the methods of Vertex AI's discovery documents that google-api-python-client ships, for the emulator.

    python -m tools.generate_vertex_ai_methods [--check]

The emulator answers 501 to methods that it lacks, and 404 to those that Vertex AI does not have.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tools.generate_types import Schema, load_installed_discovery_document, write_or_check_files

TARGET = Path(__file__).parents[1] / "vertex_emulator" / "api" / "vertex_ai_methods.json"
VERSIONS = ("v1", "v1beta1")
Methods = set[tuple[str, str]]


def iterate_methods(resource: Schema) -> Iterator[Schema]:
    """Every method of a resource of the document and of those below it."""
    yield from resource.get("methods", {}).values()
    for child in resource.get("resources", {}).values():
        yield from iterate_methods(child)


def list_http_methods_and_paths(document: Schema) -> Methods:
    """The HTTP method and the path of each method, without the version and with `*` for each parameter."""
    found = set()
    for method in iterate_methods(document):
        path = method["flatPath"].removeprefix(document["version"]).removeprefix("/")
        found.add((method["httpMethod"], re.sub(r"\{[^}]+\}", "*", path)))
    return found


def render_methods(documents: dict[str, Schema]) -> str:
    """The text of the file for the discovery documents by version."""
    stable, beta = (list_http_methods_and_paths(documents[version]) for version in VERSIONS)
    revisions = ", ".join(f"{version} revision {documents[version]['revision']}" for version in VERSIONS)
    parts = {"both": stable & beta, "v1": stable - beta, "v1beta1": beta - stable}
    by_part = {part: group_paths_by_http_method(methods) for part, methods in parts.items()}
    source = f"aiplatform {revisions}; written by `python -m tools.generate_vertex_ai_methods`"
    return json.dumps({"source": source, **by_part}, indent=0) + "\n"


def group_paths_by_http_method(methods: Methods) -> dict[str, list[str]]:
    """The sorted paths of each HTTP method."""
    names = sorted({name for name, _ in methods})
    return {name: sorted(path for other, path in methods if other == name) for name in names}


def main() -> int:
    return write_or_check_files(
        "tools.generate_vertex_ai_methods",
        __doc__,
        lambda: {TARGET: render_methods({version: load_installed_discovery_document(version) for version in VERSIONS})},
    )


if __name__ == "__main__":
    raise SystemExit(main())
