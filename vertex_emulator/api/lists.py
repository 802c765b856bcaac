"""Lists: the fields of a resource that filters, orders and masks may name, and the pages of it."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.messages import message_fields
from vertex_api.names import did_you_mean
from vertex_emulator import filters
from vertex_emulator.errors import ApiError, InvalidFilter
from vertex_emulator.filters import PATTERN_OPERATORS, Comparison, Filter
from vertex_emulator.gcs.files import is_utf8
from vertex_emulator.times import parse_time

PAGED = frozenset({"filter", "pageSize", "pageToken"})
"""The query parameters of every list method."""
MASKED = PAGED | {"readMask"}
"""Those of lists of jobs and pipelines, which the API does not order by a field (discovery document)."""
ORDERED = MASKED | {"orderBy"}
"""Those of lists of models and versions."""
MAX_PAGE_SIZE = 100
_TIMES = ("create_time", "update_time", "start_time", "end_time")
Item = TypeVar("Item")
Position = TypeVar("Position", int, str)


@dataclass(frozen=True)
class Fields(Generic[Item]):
    """The fields of a resource by name in snake_case, each with how its text is read.

    Filters may name `texts`, which may be fields of nested messages (`error.code`), `labels.KEY`, and `families`: maps
    like labels (`metadata.KEY`), each read by its key. `states` are the values of the field `state`. `orderBy` may name
    what is `sortable`.
    """

    texts: Mapping[str, Callable[[Item], str | None]]
    labels: Callable[[Item], Mapping[str, str]] = lambda _: {}
    families: Mapping[str, Callable[[Item, str], str | None]] = field(default_factory=dict)
    states: Sequence[str] = ()
    sortable: Mapping[str, Callable[[Item], str]] = field(default_factory=dict)

    def text(self, item: Item, name: str) -> str | None:
        """Return the text of a field of a resource, None if it is absent."""
        if name in self.texts:
            return self.texts[name](item)
        family, _, key = name.partition(".")
        if family in self.families:
            return self.families[family](item, key)
        return self.labels(item).get(key)

    def match(self, condition: Filter, item: Item) -> bool:
        """Return whether a resource matches a filter."""
        return condition.matches(lambda name: self.text(item, name))


@dataclass(frozen=True)
class ListRequest:
    """One request for a page of a list; `filter`, `order` and `mask` are empty if the request has none."""

    filter: str = ""
    page_size: int = MAX_PAGE_SIZE
    token: str = ""
    order: str = ""
    mask: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, str], most: int = MAX_PAGE_SIZE) -> "ListRequest":
        """Return the request of query parameters in camelCase, for pages of at most `most`. Raises ApiError."""
        return cls(
            filter=query.get("filter", ""),
            page_size=_page_size(query.get("pageSize", "0"), most),
            token=query.get("pageToken", ""),
            order=query.get("orderBy", ""),
            mask=query.get("readMask", ""),
        )

    def condition(self, fields: Fields[Any]) -> Filter:
        """Return the filter of resources with these fields. Raises ApiError."""
        try:
            condition = filters.parse(self.filter).replace(lambda each: _normalize(each, fields))
            for comparison in condition.comparisons():
                _check(comparison, fields)
        except InvalidFilter as error:
            message = f"Invalid filter {self.filter!r}: {error}"
            raise ApiError("INVALID_ARGUMENT", message, [("filter", str(error))]) from error
        return condition

    def position(self, kind: type[Position]) -> Position | None:
        """Return the position of the previous page's last item, None for the first page.

        Raises ApiError for a token that this list, with this filter and order, did not return.
        """
        if not self.token:
            return None
        try:
            position, query = json.loads(base64.urlsafe_b64decode(self.token.encode()))
        except (ValueError, TypeError, RecursionError, binascii.Error):
            position = query = None
        is_storable = isinstance(position, int) and 0 <= position < 1 << 63  # SQLite's integers
        if isinstance(position, str):
            is_storable = is_utf8(position)
        if not is_storable or type(position) is not kind or query != [self.filter, self.order]:
            message = "page_token was not returned by this list with this filter and order"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "unknown token")])
        return position

    def page(self, items: Iterable[Item], position: Callable[[Item], int | str]) -> tuple[list[Item], str]:
        """Return the first items and the token of the next page, empty if there is none.

        `position` returns what the method `position` is to return for the next page.
        """
        page = list(islice(items, self.page_size + 1))
        if len(page) <= self.page_size:
            return page, ""
        page.pop()
        token = json.dumps([position(page[-1]), [self.filter, self.order]])
        return page, base64.urlsafe_b64encode(token.encode()).decode()

    def sorted_page(
        self,
        items: list[Item],
        fields: Fields[Item],
        sequence: Callable[[Item], int],
        noun: str,
        newest_first: bool = True,
    ) -> tuple[list[Item], str]:
        """Return the same of resources in the order of `orderBy`, and of equal ones the newest or the oldest first.

        Their number is their position; `noun` is what the errors call them. Raises ApiError.
        """
        last = self.position(int)
        items = sorted(items, key=sequence, reverse=newest_first)
        for name, is_descending in reversed(self._order(fields)):
            items.sort(key=fields.sortable[name], reverse=is_descending)
        if last is not None:
            sequences = [sequence(item) for item in items]
            if last not in sequences:
                message = f"page_token: the last {noun} of the previous page was deleted; list again from the start"
                raise ApiError("INVALID_ARGUMENT", message, [("page_token", "outdated")])
            items = items[sequences.index(last) + 1 :]
        return self.page(items, sequence)

    def _order(self, fields: Fields[Any]) -> list[tuple[str, bool]]:
        """Return the fields of `orderBy` in snake_case, each with whether it descends."""
        order = []
        for part in filter(None, map(str.strip, self.order.split(","))):
            name, _, direction = part.partition(" ")
            if to_snake(name) not in fields.sortable or direction.strip() not in ("", "asc", "desc"):
                message = f'order_by: "{part}" must be one of {", ".join(fields.sortable)}, with or without desc'
                raise ApiError("INVALID_ARGUMENT", message, [("order_by", f'"{part}" is unknown')])
            order.append((to_snake(name), direction.strip() == "desc"))
        return order


def reply(collection: str, items: Sequence[Mapping[str, Any]], token: str) -> dict[str, Any]:
    """Return the reply of a list method, with the next page's token; proto JSON omits what is empty."""
    return {**({collection: items} if items else {}), **({"nextPageToken": token} if token else {})}


def _page_size(text: str, most: int) -> int:
    if not re.fullmatch("-?[0-9]{1,10}", text) or abs(int(text)) > 2**31 - 1:
        message = f"page_size is {text[:20]!r}; it must be a number"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "not a number")])
    size = int(text)
    if size < 0:
        message = f"page_size is {size}; it must not be negative"
        raise ApiError("INVALID_ARGUMENT", message, [("page_size", "negative")])
    return min(size or MAX_PAGE_SIZE, most)


def _normalize(comparison: Comparison, fields: Fields[Any]) -> Comparison:
    """Return the comparison with its field in snake_case, and `labels:k` as `labels.k:*`, all families likewise."""
    head, dot, rest = comparison.field.partition(".")
    if (dot, comparison.operator) == ("", ":") and head in ("labels", *fields.families):
        return Comparison(f"{head}.{comparison.value}", ":", "*")
    return Comparison(f"{to_snake(head)}{dot}{rest}", comparison.operator, comparison.value)


def _check(comparison: Comparison, fields: Fields[Any]) -> None:
    name, value = comparison.field, comparison.value
    if name not in fields.texts and not ("." in name and name.partition(".")[0] in ("labels", *fields.families)):
        known = ", ".join([*fields.texts, *(f"{family}.KEY" for family in ("labels", *fields.families))])
        raise InvalidFilter(f"{name!r} cannot be filtered on; known: {known}")
    if comparison.operator in PATTERN_OPERATORS:
        raise InvalidFilter(f"{comparison.operator} is an operator of log filters; use {name}=… or {name}:…")
    if name in _TIMES and comparison.operator != ":" and parse_time(value) is None:
        raise InvalidFilter(f'{name} must be compared with a time such as "2026-01-31T12:00:00Z", not {value!r}')
    if name == "state" and "*" not in value and value not in fields.states:
        raise InvalidFilter(f"{value!r} is not a state; known: {', '.join(fields.states)}")


@dataclass(frozen=True)
class Mask:
    """The fields of a resource that `readMask` names, such as `name,job_spec.scheduling`; all of them without paths."""

    paths: Sequence[str] = ()

    @classmethod
    def parse(cls, text: str, message_type: Any) -> "Mask":
        """Parse a FieldMask; `message_type` is the TypedDict of the resource.

        Raises ApiError for a path that is not one of its fields: a list or a map can only be the end of a path
        (google.protobuf.FieldMask).
        """
        paths = _paths(text)
        if "*" in paths:
            return cls()
        _check_paths(paths, message_type, "readMask")
        return cls(paths)

    def apply(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """Return only the fields of a resource that the mask names."""
        if not self.paths:
            return dict(resource)
        masked: dict[str, Any] = {}
        for key, value in resource.items():
            inner = [rest for head, _, rest in (path.partition(".") for path in self.paths) if head == key]
            if inner:
                masked[key] = Mask(inner).apply(value) if all(inner) else value
        return masked

    def __contains__(self, name: str) -> bool:
        """Return whether the mask includes a field of the resource."""
        return not self.paths or any(path.partition(".")[0] == name for path in self.paths)


def update_fields(mask: str, message_type: Any) -> list[str]:
    """Return the fields that a patch changes by its `updateMask`, in camelCase. Raises ApiError for an empty one."""
    paths = _paths(mask)
    if not paths:
        raise ApiError("INVALID_ARGUMENT", "updateMask: is required", [("update_mask", "is required")])
    _check_paths(paths, message_type, "updateMask")
    return paths


def _paths(mask: str) -> list[str]:
    """Return the paths of a mask in camelCase."""
    paths = (path.strip().split(".") for path in mask.split(",") if path.strip())
    return [".".join(to_camel(part) if "_" in part else part for part in path) for path in paths]


def _check_paths(paths: Sequence[str], message_type: Any, parameter: str) -> None:
    for path in paths:
        parent: Any = message_type
        for part in path.split("."):
            known = message_fields(parent) if parent is not None else {}
            if part not in known:
                text = f'{parameter}: "{path}" is not a field{did_you_mean(part, known)}'
                raise ApiError("INVALID_ARGUMENT", text, [(to_snake(parameter), f'"{path}" is not a field')])
            parent = known[part].message_type if known[part].cardinality == "one" else None
