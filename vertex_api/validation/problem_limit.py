"""The limit on the problems that are reported: a hundred say what is wrong, and each one costs time and text."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

MAX_PROBLEMS = 100
MORE_PROBLEMS_TEXT = f"validation stops at {MAX_PROBLEMS} problems, so there may be more: fix these first"

Problem = TypeVar("Problem")


def take_one_more_than_shown(problems: Iterable[Problem]) -> list[Problem]:
    """Return the first problems: one more than are shown, if there are as many, to tell that validation stopped."""
    return list(islice(problems, MAX_PROBLEMS + 1))


def has_too_many(problems: Sequence[object]) -> bool:
    """Return whether there are more problems than are shown, so that validation may stop."""
    return len(problems) > MAX_PROBLEMS


def select_shown_problems_and_more_text(problems: Sequence[Problem]) -> tuple[Sequence[Problem], str]:
    """Return the problems to show, and the text of the last line: empty if these are all."""
    return problems[:MAX_PROBLEMS], MORE_PROBLEMS_TEXT if has_too_many(problems) else ""
