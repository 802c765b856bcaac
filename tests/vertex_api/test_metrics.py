"""The file of metrics that a trainer writes."""

import json
from typing import Any

import pytest

from vertex_api.metrics import MAX_BYTES, MAX_METRICS, MAX_NAME, parse, uris


def test_nested_numbers_are_joined_with_dots() -> None:
    content = b'{"loss": 0.5, "test": {"acc": 1, "top": {"5": 0.75}}}'
    assert parse(content) == {"loss": 0.5, "test.acc": 1, "test.top.5": 0.75}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), 10**400, True, None, "0.5", [1, 2], {}, 1e301]
)
def test_what_is_no_finite_number_is_left_out(value: Any) -> None:
    assert parse(json.dumps({"x": value, "kept": 0}).encode()) == {"kept": 0}


@pytest.mark.parametrize("name", ["a\u001b[2J", "a\nb", "a\ud800", "x" * (MAX_NAME + 1)])
def test_names_that_no_terminal_shows_are_left_out(name: str) -> None:
    assert parse(json.dumps({name: 1, "kept": 0}).encode()) == {"kept": 0}


def test_the_first_hundred_metrics_are_kept() -> None:
    found = parse(json.dumps({f"m{number}": number for number in range(MAX_METRICS + 50)}).encode())
    assert [*found] == [f"m{number}" for number in range(MAX_METRICS)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b'{"loss": ', "it is not JSON"),
        (b"[" * 60_000, "it is not JSON"),
        (b"[0.5]", "it is not an object of names and numbers"),
        (b" " * (MAX_BYTES + 1), "it has more than 64 KiB"),
    ],
)
def test_a_broken_file_says_what_is_wrong(content: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(content)


def test_deep_objects_of_valid_files_are_cut_off() -> None:
    assert parse(b'{"":' * 900 + b"1" + b"}" * 900) == {}


def test_the_model_folder_s_file_counts_first() -> None:
    folder = {"baseOutputDirectory": {"outputUriPrefix": "gs://b/out/"}}
    assert uris(folder) == ["gs://b/out/model/metrics.json", "gs://b/out/metrics.json"]
    assert uris({}) == []
