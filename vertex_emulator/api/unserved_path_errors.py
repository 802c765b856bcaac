"""The errors for requests that no route serves.

Methods of Vertex AI, which its discovery documents list, are 501 here. What Vertex AI does not have either is 404,
as at Google's front end.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from vertex_emulator.errors import ApiError

_METHODS = "vertex_ai_methods.json"
_VERSIONS = ("v1", "v1beta1")
_ANY = "*"


def build_unimplemented_or_not_found_error(method: str, url_path: str) -> ApiError:
    """Return the error for a request that no route serves: UNIMPLEMENTED for a method of Vertex AI, else NOT_FOUND."""
    path = url_path.strip("/")
    if is_method_of_vertex_ai(method, path):
        return build_unimplemented_error(method, path)
    return ApiError("NOT_FOUND", f"The requested URL /{path} was not found on this emulator ({method}).")


def build_unimplemented_error(method: str, path: str) -> ApiError:
    """Return the error for a method that the real service has and this emulator does not."""
    message = f"This emulator has no method {method} {path} (docs/fidelity.md lists what it has)."
    return ApiError("UNIMPLEMENTED", message)


def is_method_of_vertex_ai(method: str, path: str) -> bool:
    """Return whether the discovery documents have a method for a path, such as `v1/projects/p/locations/r/models`."""
    version, separator, rest = path.partition(":" if path.startswith(tuple(f"{each}:" for each in _VERSIONS)) else "/")
    if version not in _VERSIONS:
        return False
    segments = (separator.strip("/") + rest).split("/")
    return method in _find_http_methods(_load_method_tree(version), segments, "")


def _find_http_methods(node: dict[str, Any], segments: list[str], previous_segment: str) -> set[str]:
    """Return the HTTP methods at a path below a node of the tree of methods."""
    if not segments:
        return set(node.get("", ()))
    first, *rest = segments
    verb = first.rpartition(":")[2]
    # A project's id may contain a colon; elsewhere one comes before a custom method.
    candidates = [first] if ":" in first and previous_segment != "projects" else [first, _ANY]
    candidates += [f"{_ANY}:{verb}"] if ":" in first else []
    children = (node[name] for name in candidates if name in node)
    return set().union(*(_find_http_methods(child, rest, first) for child in children))


@cache
def _load_method_tree(version: str) -> dict[str, Any]:
    """Return the methods of a version as a tree by segment; the key "" of a node has its HTTP methods."""
    document = json.loads(files(__package__).joinpath(_METHODS).read_text())
    tree: dict[str, Any] = {}
    for part in ("both", version):
        for method, paths in document[part].items():
            for path in paths:
                node = tree
                for segment in path.split("/"):
                    node = node.setdefault(segment, {})
                node.setdefault("", []).append(method)
    return tree
