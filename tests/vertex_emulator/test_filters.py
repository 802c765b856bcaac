import pytest

from vertex_emulator.errors import InvalidFilter
from vertex_emulator.filters import parse

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
    assert parse(text).matches(JOB.get)


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
    assert not parse(text).matches(JOB.get)


NUMBERS = {"labels.k": "10", "labels.small": "-1.5", "labels.e": "1e2", "labels.word": "v10"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("labels.k>9", True),
        ("labels.k<9", False),
        ("labels.k>=10.0", True),
        ('labels.k<"11"', True),
        ("labels.small<-1", True),
        ("labels.e>99", True),
        ("labels.e=100", False),
        ("labels.k=10.0", False),
        ("labels.word>v9", False),
        ("labels.k>9x", False),
        ("labels.k<1e999", True),
        (f"labels.k<{'9' * 400}", True),
    ],
)
def test_numbers_have_the_order_of_numbers(text: str, matches: bool) -> None:
    assert parse(text).matches(NUMBERS.get) is matches


def test_or_binds_tighter_than_and() -> None:
    # (false AND true) OR true would pass; false AND (true OR true) does not.
    assert not parse("state=X AND labels.team=vision OR labels.team=vision").matches(JOB.get)
    # true OR (false AND false) would pass; (true OR false) AND false does not.
    assert not parse("state=JOB_STATE_RUNNING OR state=X AND labels.team=nlp").matches(JOB.get)


def test_quotes_and_brackets_in_values_match_literally() -> None:
    assert parse(r'display_name="say \"hi\""').matches({"display_name": 'say "hi"'}.get)
    assert parse('display_name:"a[1]*"').matches({"display_name": "a[1]b"}.get)
    assert not parse('display_name:"a?c"').matches({"display_name": "abc"}.get)


@pytest.mark.parametrize(
    "text", ["state", "state=", "=x", "(state=x", "state=x)", "state=x AND", "OR", 'state="x', "a==b"]
)
def test_broken_filters_say_what_is_missing(text: str) -> None:
    with pytest.raises(InvalidFilter, match=r"filter"):
        parse(text)


def test_deep_nesting_is_rejected() -> None:
    with pytest.raises(InvalidFilter, match="nests"):
        parse("(" * 10_000 + "a=b" + ")" * 10_000)


def test_a_required_value_is_found() -> None:
    assert parse('a="1" AND (b=2 AND c=3)').required("c") == "3"
    assert parse("a=1 AND (c=3 OR c=4)").required("c") is None
