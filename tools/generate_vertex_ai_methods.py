"""Writes the methods of Vertex AI's discovery documents that google-api-python-client ships, for the emulator.

    python -m tools.generate_vertex_ai_methods [--check]

The emulator answers 501 to methods that it lacks, and 404 to those that Vertex AI does not have.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tools.generator_base import Schema, load_installed_discovery_document, run_generator_command

TARGET = Path(__file__).parents[1] / "vertex_emulator" / "api" / "vertex_ai_methods.json"
VERSIONS = ("v1", "v1beta1")
Methods = set[tuple[str, str]]


def iterate_api_methods(api_resource: Schema) -> Iterator[Schema]:
    """Yield every method of a resource of the document and of those below it."""
    yield from api_resource.get("methods", {}).values()
    for child in api_resource.get("resources", {}).values():
        yield from iterate_api_methods(child)


def collect_http_methods_and_paths(document: Schema) -> Methods:
    """Return the HTTP method and the path of each method, without the version and with `*` for each parameter."""
    found = set()
    for method in iterate_api_methods(document):
        path = method["flatPath"].removeprefix(document["version"]).removeprefix("/")
        found.add((method["httpMethod"], re.sub(r"\{[^}]+\}", "*", path)))
    return found


def render_methods_json(documents: dict[str, Schema]) -> str:
    """Return the text of the file for the discovery documents by version."""
    stable, beta = (collect_http_methods_and_paths(documents[version]) for version in VERSIONS)
    revisions = ", ".join(f"{version} revision {documents[version]['revision']}" for version in VERSIONS)
    parts = {"both": stable & beta, "v1": stable - beta, "v1beta1": beta - stable}
    by_part = {part: group_paths_by_http_method(methods) for part, methods in parts.items()}
    source = f"aiplatform {revisions}; written by `python -m tools.generate_vertex_ai_methods`"
    return json.dumps({"source": source, **by_part}, indent=0) + "\n"


def group_paths_by_http_method(methods: Methods) -> dict[str, list[str]]:
    """Return the sorted paths of each HTTP method."""
    names = sorted({name for name, _ in methods})
    return {name: sorted(path for other, path in methods if other == name) for name in names}


def main() -> int:
    return run_generator_command(
        "tools.generate_vertex_ai_methods",
        __doc__,
        lambda: {
            TARGET: render_methods_json({version: load_installed_discovery_document(version) for version in VERSIONS})
        },
    )


if __name__ == "__main__":
    raise SystemExit(main())
