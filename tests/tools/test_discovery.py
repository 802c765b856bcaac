import sys

import pytest

from tools import discovery


def test_the_files_are_what_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["discovery", "--check"])
    assert discovery.main() == 0


def test_methods_are_listed_by_version_without_parameter_names() -> None:
    def document(version: str, *paths: str) -> dict[str, object]:
        methods = {path: {"httpMethod": "GET", "flatPath": f"{version}{path}"} for path in paths}
        return {"version": version, "revision": "1", "resources": {"a": {"methods": methods}}}

    text = discovery.render_methods(
        {"v1": document("v1", "/a/{x}", ":b"), "v1beta1": document("v1beta1", "/a/{y}", "/c/{y}/d")}
    )
    for line in ('"both": {', '"a/*"', '":b"', '"c/*/d"'):
        assert line in text
    assert text.index('"a/*"') < text.index('"v1": {') < text.index('":b"') < text.index('"v1beta1": {')
