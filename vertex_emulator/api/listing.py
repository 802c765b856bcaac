"""What a list method is asked for: its filter, its page, its order and its mask."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from pydantic.alias_generators import to_snake

from vertex_emulator import filters
from vertex_emulator.errors import ApiError, InvalidFilter
from vertex_emulator.times import parse_time

MAX_PAGE = 100
_TIMES = ("create_time", "update_time", "start_time", "end_time")
Item = TypeVar("Item")
Place = TypeVar("Place", int, str)


@dataclass(frozen=True)
class Listing:
    """One request for a page, read from its query."""

    filter: str = ""
    size: int = MAX_PAGE
    token: str = ""
    order: str = ""
    mask: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Listing:
        """From query parameters in camelCase. Raises ApiError."""
        return cls(
            filter=query.get("filter", ""),
            size=_page_size(query.get("pageSize", "0")),
            token=query.get("pageToken", ""),
            order=query.get("orderBy", ""),
            mask=query.get("readMask", ""),
        )

    def condition(self, known: Iterable[str], states: Iterable[str] = ()) -> filters.Filter | None:
        """The filter, for a resource whose fields `known` can be filtered on (snake_case), and its labels.

        `states` are the values that its state can have. Raises ApiError.
        """
        known, states = tuple(known), tuple(states)
        try:
            found = filters.parse_filter(self.filter)
            found = filters.replace_comparisons(found, _canonical) if found is not None else None
            for comparison in filters.iterate_comparisons(found):
                _check(comparison, known, states)
        except InvalidFilter as error:
            message = f"Invalid filter {self.filter!r}: {error}"
            raise ApiError("INVALID_ARGUMENT", message, [("filter", str(error))]) from error
        return found

    def after(self, kind: type[Place]) -> Place | None:
        """Where the page before ended, None on the first page. Raises ApiError for a token that is none of ours."""
        if not self.token:
            return None
        try:
            held, made_for = json.loads(base64.urlsafe_b64decode(self.token.encode()))
        except (ValueError, TypeError, RecursionError, binascii.Error):
            held = made_for = None
        if type(held) is not kind or made_for != self._made_for:
            message = "page_token is none that this list with this filter gave out"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "unknown token")])
        return held

    def page(self, found: Iterable[Item], place: Callable[[Item], int | str]) -> tuple[list[Item], str]:
        """The first items, and the token for those that follow the last of them, empty when there are none.

        `place` says where an item stands; it is what `after` gives for the next page.
        """
        items = list(islice(found, self.size + 1))
        if len(items) <= self.size:
            return items, ""
        return items[: self.size], self._token(place(items[self.size - 1]))

    @property
    def _made_for(self) -> list[str]:
        return [self.filter, self.order]

    def _token(self, held: int | str) -> str:
        return base64.urlsafe_b64encode(json.dumps([held, self._made_for]).encode()).decode()


def answer(collection: str, items: list[dict[str, Any]], token: str) -> dict[str, Any]:
    """A list reply; proto JSON leaves out what is empty."""
    return {**({collection: items} if items else {}), **({"nextPageToken": token} if token else {})}


def _page_size(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,10}", text) or abs(int(text)) > 2**31 - 1:
        message = f"page_size is {text[:20]!r}; it must be a number"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "not a number")])
    size = int(text)
    if size < 0:
        message = f"page_size is {size}; it must not be negative"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "negative")])
    return min(size or MAX_PAGE, MAX_PAGE)


def _canonical(comparison: filters.Comparison) -> filters.Comparison:
    """Field names in snake_case, and `labels:k` as `labels.k:*`."""
    head, dot, rest = comparison.field.partition(".")
    if (head, dot, comparison.operator) == ("labels", "", ":"):
        return filters.Comparison(f"labels.{comparison.value}", ":", "*")
    return filters.Comparison(f"{to_snake(head)}{dot}{rest}", comparison.operator, comparison.value)


def _check(comparison: filters.Comparison, known: tuple[str, ...], states: tuple[str, ...]) -> None:
    field, value = comparison.field, comparison.value
    if field not in known and not field.startswith("labels."):
        raise InvalidFilter(f"{field!r} cannot be filtered on; known: {', '.join(known)}, labels.KEY")
    if field in _TIMES and comparison.operator != ":" and parse_time(value) is None:
        raise InvalidFilter(f'{field} must be compared with a time such as "2026-01-31T12:00:00Z", not {value!r}')
    if field == "state" and "*" not in value and value not in states:
        raise InvalidFilter(f"{value!r} is no state; known: {', '.join(states)}")
