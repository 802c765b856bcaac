import pytest

from vertex_emulator.errors import InvalidFilter
from vertex_emulator.filters.expression_tree import find_required_value, matches
from vertex_emulator.filters.parser import parse_filter_unless_empty

JOB = {
    "state": "JOB_STATE_RUNNING",
    "display_name": "my job (7)",
    "labels.team": "vision",
    "labels.ml.googleapis.com/trial_id": "3",
    "create_time": "2026-11-21T12:00:00.500000Z",
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "state=JOB_STATE_RUNNING",
        'state="JOB_STATE_RUNNING"',
        "state!=JOB_STATE_FAILED",
        'display_name="my job (7)"',
        'display_name:"my*"',
        "labels.team=vision",
        "labels.team:*",
        'labels."ml.googleapis.com/trial_id"="3"',
        "labels.absent!=x",
        "NOT labels.absent:*",
        'create_time>"2026-11-21T12:00:00Z"',
        "create_time>=2026-11-21T12:00:00.5Z",
        'create_time<"2026-11-21T13:30:00+01:00"',
        "state=JOB_STATE_RUNNING AND labels.team=vision",
        "state=JOB_STATE_RUNNING labels.team=vision",
        "state=X OR state=JOB_STATE_RUNNING",
        "(state=X OR state=Y) OR (labels.team=vision AND NOT state=X)",
    ],
)
def test_matching_filter_selects_job(text: str) -> None:
    assert matches(parse_filter_unless_empty(text), JOB.get)


@pytest.mark.parametrize(
    "text",
    [
        "state=JOB_STATE_FAILED",
        "NOT state=JOB_STATE_RUNNING",
        "labels.team!=vision",
        "labels.absent:*",
        "labels.absent=x",
        'display_name:"your*"',
        'create_time<"2026-11-21T12:00:00Z"',
        "state=JOB_STATE_RUNNING AND labels.team=nlp",
        "state=JOB_STATE_RUNNING labels.team=nlp",
    ],
)
def test_filter_without_match_excludes_job(text: str) -> None:
    assert not matches(parse_filter_unless_empty(text), JOB.get)


def test_or_binds_tighter_than_and() -> None:
    # (false AND true) OR true would pass; false AND (true OR true) does not.
    assert not matches(parse_filter_unless_empty("state=X AND labels.team=vision OR labels.team=vision"), JOB.get)
    # true OR (false AND false) would pass; (true OR false) AND false does not.
    assert not matches(parse_filter_unless_empty("state=JOB_STATE_RUNNING OR state=X AND labels.team=nlp"), JOB.get)


def test_quotes_and_brackets_in_values_match_literally() -> None:
    assert matches(parse_filter_unless_empty(r'display_name="say \"hi\""'), {"display_name": 'say "hi"'}.get)
    assert matches(parse_filter_unless_empty('display_name:"a[1]*"'), {"display_name": "a[1]b"}.get)
    assert not matches(parse_filter_unless_empty('display_name:"a?c"'), {"display_name": "abc"}.get)


@pytest.mark.parametrize(
    "text", ["state", "state=", "=x", "(state=x", "state=x)", "state=x AND", "OR", 'state="x', "a==b"]
)
def test_broken_filter_is_rejected_with_what_is_missing(text: str) -> None:
    with pytest.raises(InvalidFilter, match=r"filter"):
        parse_filter_unless_empty(text)


def test_deep_nesting_is_rejected() -> None:
    with pytest.raises(InvalidFilter, match="nests"):
        parse_filter_unless_empty("(" * 10_000 + "a=b" + ")" * 10_000)


def test_a_required_value_is_found() -> None:
    assert find_required_value(parse_filter_unless_empty('a="1" AND (b=2 AND c=3)'), "c") == "3"
    assert find_required_value(parse_filter_unless_empty("a=1 AND (c=3 OR c=4)"), "c") is None
