"""The query of a list method: filter, page, order and mask; and the page that answers it."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from pydantic.alias_generators import to_snake

from vertex_emulator.errors import ApiError, InvalidFilter
from vertex_emulator.filters.expression_tree import (
    REGULAR_EXPRESSION_OPERATORS,
    Comparison,
    Filter,
    iterate_comparisons,
    replace_comparisons,
)
from vertex_emulator.filters.parser import parse_filter_unless_empty
from vertex_emulator.gcs.files import is_utf8
from vertex_emulator.times import parse_time

MAX_PAGE_SIZE = 100
_TIMES = ("create_time", "update_time", "start_time", "end_time")
Item = TypeVar("Item")
Position = TypeVar("Position", int, str)


@dataclass(frozen=True)
class ListRequest:
    """One request for a page of a list; `filter`, `order` and `mask` are empty if the request has none."""

    filter: str = ""
    page_size: int = MAX_PAGE_SIZE
    token: str = ""
    order: str = ""
    mask: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "ListRequest":
        """Return the request of query parameters in camelCase. Raises ApiError."""
        return cls(
            filter=query.get("filter", ""),
            page_size=_parse_page_size(query.get("pageSize", "0")),
            token=query.get("pageToken", ""),
            order=query.get("orderBy", ""),
            mask=query.get("readMask", ""),
        )

    def parse_and_validate_filter(self, fields: Sequence[str], states: Sequence[str] = ()) -> Filter | None:
        """Return the parsed filter, None for an empty one. Raises ApiError.

        `fields` are the resource's fields that it may name besides labels, in snake_case; `states` are the values
        that the resource's state can have.
        """
        try:
            condition = parse_filter_unless_empty(self.filter)
            if condition is not None:
                condition = replace_comparisons(condition, _convert_field_to_snake_case_and_label_to_wildcard)
            for comparison in iterate_comparisons(condition):
                _validate_comparison(comparison, fields, states)
        except InvalidFilter as error:
            message = f"Invalid filter {self.filter!r}: {error}"
            raise ApiError("INVALID_ARGUMENT", message, [("filter", str(error))]) from error
        return condition

    def decode_page_token_or_none(self, position_type: type[Position]) -> Position | None:
        """Return the position of the previous page's last item, None for the first page.

        Raises ApiError for a token that this list, with this filter and order, did not return.
        """
        if not self.token:
            return None
        try:
            position, token_query = json.loads(base64.urlsafe_b64decode(self.token.encode()))
        except (ValueError, TypeError, RecursionError, binascii.Error):
            position = token_query = None
        is_storable = isinstance(position, int) and 0 <= position < 1 << 63  # SQLite's integers
        if isinstance(position, str):
            is_storable = is_utf8(position)
        if not is_storable or type(position) is not position_type or token_query != [self.filter, self.order]:
            message = "page_token was not returned by this list with this filter and order"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "unknown token")])
        return position

    def take_page_and_next_token(
        self, items: Iterable[Item], get_position: Callable[[Item], int | str]
    ) -> tuple[list[Item], str]:
        """Return the first items and the token of the next page, empty if there is none.

        `get_position` returns what `decode_page_token_or_none` is to return for the next page.
        """
        page = list(islice(items, self.page_size + 1))
        if len(page) <= self.page_size:
            return page, ""
        page.pop()
        token = json.dumps([get_position(page[-1]), [self.filter, self.order]])
        return page, base64.urlsafe_b64encode(token.encode()).decode()


def build_list_reply(collection: str, items: list[dict[str, Any]], next_token: str) -> dict[str, Any]:
    """Return the reply of a list method; proto JSON omits what is empty."""
    return {**({collection: items} if items else {}), **({"nextPageToken": next_token} if next_token else {})}


def _parse_page_size(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,10}", text) or abs(int(text)) > 2**31 - 1:
        message = f"page_size is {text[:20]!r}; it must be a number"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "not a number")])
    size = int(text)
    if size < 0:
        message = f"page_size is {size}; it must not be negative"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "negative")])
    return min(size or MAX_PAGE_SIZE, MAX_PAGE_SIZE)


def _convert_field_to_snake_case_and_label_to_wildcard(comparison: Comparison) -> Comparison:
    """Return the comparison with its field in snake_case, and `labels:k` as `labels.k:*`."""
    head, dot, rest = comparison.field.partition(".")
    if (head, dot, comparison.operator) == ("labels", "", ":"):
        return Comparison(f"labels.{comparison.value}", ":", "*")
    return Comparison(f"{to_snake(head)}{dot}{rest}", comparison.operator, comparison.value)


def _validate_comparison(comparison: Comparison, filterable: Sequence[str], states: Sequence[str]) -> None:
    field, value = comparison.field, comparison.value
    if field not in filterable and not field.startswith("labels."):
        raise InvalidFilter(f"{field!r} cannot be filtered on; known: {', '.join(filterable)}, labels.KEY")
    if comparison.operator in REGULAR_EXPRESSION_OPERATORS:
        raise InvalidFilter(f"{comparison.operator} is an operator of log filters; use {field}=… or {field}:…")
    if field in _TIMES and comparison.operator != ":" and parse_time(value) is None:
        raise InvalidFilter(f'{field} must be compared with a time such as "2026-01-31T12:00:00Z", not {value!r}')
    if field == "state" and "*" not in value and value not in states:
        raise InvalidFilter(f"{value!r} is not a state; known: {', '.join(states)}")
