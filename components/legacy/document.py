"""Fields of a declaration with comments, and their YAML."""

import textwrap
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import yaml

_WIDTH = 110


class CommentedFields(dict[str, Any]):
    """Fields of a declaration. `comments` are by key; those of missing keys are written after all fields."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.comments: dict[str, list[str]] = {}

    def comment(self, key: str, *texts: str) -> None:
        """Add comments to a key, which may be missing."""
        if texts:
            self.comments.setdefault(key, []).extend(texts)


def to_yaml(fields: CommentedFields) -> str:
    """Return fields as YAML: short values on one line, and comments above their fields."""
    return "".join(f"{line}\n" for line in _mapping_lines(fields, 0))


def comment_lines(text: str, indent: int) -> list[str]:
    """Return the lines of a comment. Characters that are not printable become spaces, so that none ends a line."""
    mark = f"{' ' * indent}# "
    text = "".join(character if character.isprintable() else " " for character in text)
    wrapper = textwrap.TextWrapper(_WIDTH, mark, f"{mark}  ", break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


def _mapping_lines(fields: Mapping[str, Any], indent: int) -> Iterator[str]:
    pad, comments = " " * indent, _comments(fields)
    for key, value in fields.items():
        for text in comments.get(key, ()):
            yield from comment_lines(text, indent)
        line = f"{pad}{_inline(key)}: {_inline(value)}" if _is_inline(value) else ""
        if line and (len(line) <= _WIDTH or not isinstance(value, Mapping | list)):
            yield line
        else:
            yield f"{pad}{_inline(key)}:"
            yield from (_list_lines if isinstance(value, list) else _mapping_lines)(value, indent + 2)
    for text in (text for key in comments if key not in fields for text in comments[key]):
        yield from comment_lines(text, indent)


def _list_lines(values: list[Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    for value in values:
        if _is_inline(value):
            yield f"{pad}- {_inline(value)}"
            continue
        lines = list(_mapping_lines(value, indent + 2))
        comments = list(takewhile(lambda line: line.lstrip().startswith("#"), lines))
        yield from (line[2:] for line in comments)
        first, *others = lines[len(comments) :] or [f"{pad}  {{}}"]
        yield f"{pad}- {first.lstrip()}"
        yield from others


def _comments(fields: Mapping[str, Any]) -> Mapping[str, list[str]]:
    return fields.comments if isinstance(fields, CommentedFields) else {}


def _is_inline(value: Any) -> bool:
    """Whether a value is a scalar, a list of scalars, or a mapping of scalars or of one such list."""
    if not isinstance(value, Mapping):
        return not isinstance(value, list) or not any(isinstance(each, Mapping | list) for each in value)
    parts = list(value.values())
    if len(parts) == 1 and isinstance(parts[0], list):
        return not _comments(value) and _is_inline(parts[0])
    return not _comments(value) and not any(isinstance(part, Mapping | list) for part in parts)


class _Dumper(yaml.SafeDumper):
    """Quotes with " where quotes are needed."""

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def _inline(value: Any) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    text = yaml.dump(
        plain,
        Dumper=_Dumper,
        default_flow_style=True,
        width=10**9,
        sort_keys=False,
        allow_unicode=True,
    )
    return text.removesuffix("\n").removesuffix("\n...")
