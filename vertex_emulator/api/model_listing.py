"""The lists of models and of their versions: filter, order and page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_snake

from vertex_api import types
from vertex_emulator.api.field_masks import apply_read_mask, parse_read_mask
from vertex_emulator.api.list_request import ListRequest, build_list_reply
from vertex_emulator.database.models import DEFAULT_ALIAS
from vertex_emulator.database.records import ModelVersion
from vertex_emulator.errors import ApiError
from vertex_emulator.filters.expression_tree import matches
from vertex_emulator.resources import model_json

_FILTERABLE_FIELDS = ("model", "display_name", "base_model_name")
_SORTABLE_FIELDS = ("display_name", "create_time", "update_time")


def build_model_list_reply(all_versions: Iterable[ModelVersion], list_request: ListRequest) -> dict[str, Any]:
    """Return a page of models, each as its default version, the newest first without `orderBy`. Raises ApiError."""
    by_id: dict[str, list[ModelVersion]] = {}
    for version in all_versions:
        by_id.setdefault(version.id, []).append(version)
    rows = [
        _ModelRow(version, tuple(versions))
        for versions in by_id.values()
        for version in versions
        if DEFAULT_ALIAS in version.aliases
    ]
    return _filter_sort_and_build_reply(rows, list_request)


def build_version_list_reply(versions: Iterable[ModelVersion], list_request: ListRequest) -> dict[str, Any]:
    """Return a page of the versions of a model, the newest first without `orderBy`. Raises ApiError."""
    versions = tuple(versions)
    return _filter_sort_and_build_reply([_ModelRow(version, versions) for version in versions], list_request)


@dataclass(frozen=True)
class _ModelRow:
    """A version of a model in a list; `siblings` are all versions of the model."""

    version: ModelVersion
    siblings: tuple[ModelVersion, ...]

    def serialize(self) -> dict[str, Any]:
        return model_json(self.version, self.siblings)

    def get_field_text_or_none(self, field: str) -> str | None:
        """Return the text that a filter or an order compares."""
        spec = self.version.spec
        match field:
            case "model":
                return self.version.id
            case "display_name":
                return str(spec["displayName"])
            case "base_model_name":
                source = spec.get("baseModelSource", {}).get("modelGardenSource", {}).get("publicModelName")
                return source.rpartition("/")[2] if source else None
            case "create_time" | "update_time":
                return str(self.serialize()["createTime" if field == "create_time" else "updateTime"])
        return spec.get("labels", {}).get(field.removeprefix("labels."))  # type: ignore[no-any-return]


def _filter_sort_and_build_reply(rows: list[_ModelRow], list_request: ListRequest) -> dict[str, Any]:
    condition = list_request.parse_and_validate_filter(_FILTERABLE_FIELDS)
    mask = parse_read_mask(list_request.mask, types.Model)
    last = list_request.decode_page_token_or_none(int)
    rows = [row for row in rows if matches(condition, row.get_field_text_or_none)]
    rows.sort(key=lambda row: row.version.sequence, reverse=True)
    for field, is_descending in reversed(_parse_order_by_fields(list_request.order)):
        rows.sort(key=lambda row: row.get_field_text_or_none(field) or "", reverse=is_descending)
    if last is not None:
        sequences = [row.version.sequence for row in rows]
        if last not in sequences:
            message = "page_token: the last model of the previous page was deleted; list again from the start"
            raise ApiError("INVALID_ARGUMENT", message, [("page_token", "outdated")])
        rows = rows[sequences.index(last) + 1 :]
    page, token = list_request.take_page_and_next_token(rows, lambda row: row.version.sequence)
    return build_list_reply("models", [apply_read_mask(row.serialize(), mask) for row in page], token)


def _parse_order_by_fields(order_by: str) -> list[tuple[str, bool]]:
    """Return the fields of `orderBy` in snake_case, each with whether it descends. Raises ApiError."""
    order = []
    for part in filter(None, map(str.strip, order_by.split(","))):
        name, _, direction = part.partition(" ")
        if to_snake(name) not in _SORTABLE_FIELDS or direction.strip() not in ("", "asc", "desc"):
            message = f'order_by: "{part}" must be one of {", ".join(_SORTABLE_FIELDS)}, with or without desc'
            raise ApiError("INVALID_ARGUMENT", message, [("order_by", f'"{part}" is unknown')])
        order.append((to_snake(name), direction.strip() == "desc"))
    return order
