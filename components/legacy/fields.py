"""A mapping with comments to its keys, and the YAML that is written of it."""

import textwrap
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import yaml

_WIDTH = 110


class Fields(dict[str, Any]):
    """Fields of a declaration. `comments` are by key; those to keys that are not there come after all others."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.comments: dict[str, list[str]] = {}

    def comment(self, key: str, *texts: str) -> None:
        """Say something of a key, which may be one that is missing."""
        if texts:
            self.comments.setdefault(key, []).extend(texts)


def written(fields: Fields) -> str:
    """The YAML of a mapping: what is short on one line, as a person writes it, and comments above their fields."""
    return "".join(f"{line}\n" for line in _entries(fields, 0))


def comment_lines(text: str, indent: int) -> list[str]:
    """A comment, broken into lines. Whatever else could end one of them is taken out."""
    mark = f"{' ' * indent}# "
    return textwrap.wrap(
        "".join(character if character.isprintable() else " " for character in text),
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=f"{mark}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entries(fields: Mapping[str, Any], indent: int) -> Iterator[str]:
    pad, comments = " " * indent, _comments(fields)
    for key, value in fields.items():
        for text in comments.get(key, ()):
            yield from comment_lines(text, indent)
        line = f"{pad}{_inline(key)}: {_inline(value)}" if _is_short(value) else ""
        if line and (len(line) <= _WIDTH or not _is_collection(value)):
            yield line
        else:
            yield f"{pad}{_inline(key)}:"
            yield from _items(value, indent + 2) if isinstance(value, list) else _entries(value, indent + 2)
    for text in (text for key in comments if key not in fields for text in comments[key]):
        yield from comment_lines(text, indent)


def _items(values: list[Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    for value in values:
        if _is_short(value):
            yield f"{pad}- {_inline(value)}"
            continue
        lines = list(_entries(value, indent + 2))
        above = list(takewhile(lambda line: line.lstrip().startswith("#"), lines))
        yield from (line[2:] for line in above)
        first, *others = lines[len(above) :] or [f"{pad}  {{}}"]
        yield f"{pad}- {first.lstrip()}"
        yield from others


def _comments(fields: Mapping[str, Any]) -> Mapping[str, list[str]]:
    return fields.comments if isinstance(fields, Fields) else {}


def _is_short(value: Any) -> bool:
    """Whether a value can stand on one line: a scalar, a list of them, a mapping of them or of one such list."""
    if isinstance(value, Mapping):
        parts = list(value.values())
        return not _comments(value) and (
            not any(map(_is_collection, parts))
            or (len(parts) == 1 and isinstance(parts[0], list) and _is_short(parts[0]))
        )
    return not isinstance(value, list) or not any(map(_is_collection, value))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Mapping | list)


class _Dumper(yaml.SafeDumper):
    """Quotes with " where quotes are needed."""

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def _inline(value: Any) -> str:
    """A value as YAML on one line."""
    plain = dict(value) if isinstance(value, Mapping) else value
    text = yaml.dump(plain, Dumper=_Dumper, default_flow_style=True, width=10**9, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
