import sys

import pytest

from tools import generate_vertex_ai_methods


def test_the_method_list_is_what_the_generator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["generate_vertex_ai_methods", "--check"])
    assert generate_vertex_ai_methods.main() == 0


def test_methods_are_listed_by_version_without_parameter_names() -> None:
    def document(version: str, *paths: str) -> dict[str, object]:
        methods = {path: {"httpMethod": "GET", "flatPath": f"{version}{path}"} for path in paths}
        return {"version": version, "revision": "1", "resources": {"a": {"methods": methods}}}

    text = generate_vertex_ai_methods.render_methods_json(
        {"v1": document("v1", "/a/{x}", ":b"), "v1beta1": document("v1beta1", "/a/{y}", "/c/{y}/d")}
    )
    for line in ('"both": {', '"a/*"', '":b"', '"c/*/d"'):
        assert line in text
    assert text.index('"a/*"') < text.index('"v1": {') < text.index('":b"') < text.index('"v1beta1": {')
