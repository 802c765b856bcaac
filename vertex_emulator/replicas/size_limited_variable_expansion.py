"""`$(VAR)` references in a container's env, command and args, with Kubernetes' rules and within Linux's limits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vertex_api.scalars import quote
from vertex_emulator.errors import ReplicaCannotStart

MAX_TEXT_BYTES = 128 << 10
"""The longest argument, or variable as NAME=value, that Linux starts a program with: MAX_ARG_STRLEN, with a NUL."""
MAX_TOTAL_BYTES = 2 << 20
"""All of them together, with a pointer to each: ARG_MAX with the usual stack."""

_POINTER_BYTES = 8
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
_ADVICE = "with $(NAME) references expanded; write the text to a file in a bucket and read that from /gcs"


@dataclass
class ContainerTexts:
    """The environment, command and args of a container, expanded.

    Their size is limited while they are expanded: a few variables that each repeat the last one would fill the memory.
    """

    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] | None = None
    args: list[str] | None = None
    _total_bytes: int = 0

    @classmethod
    def expand(cls, container_spec: Mapping[str, Any], service_variables: Mapping[str, str]) -> "ContainerTexts":
        """Expand a ContainerSpec. A variable sees the service's and those before it.

        Raises ReplicaCannotStart, naming the field, for what is longer than Linux takes.
        """
        texts = cls()
        for name, value in service_variables.items():
            texts._add_variable_or_raise_if_too_long(name, value)
        for variable in container_spec.get("env", []):
            name = variable["name"]
            value = expand_references(variable.get("value", ""), texts.environment, f"the variable {name}")
            texts._add_variable_or_raise_if_too_long(name, value)
        texts.command = texts._expand_words(container_spec.get("command"))
        texts.args = texts._expand_words(container_spec.get("args"))
        return texts

    def _add_variable_or_raise_if_too_long(self, name: str, value: str) -> None:
        self._add_to_total_or_raise_if_too_long(f"the variable {name}", f"{name}={value}")
        self.environment[name] = value

    def _expand_words(self, words: list[str] | None) -> list[str] | None:
        if words is None:
            return None
        expanded = []
        for word in words:
            place = f"the argument {quote(word)}"
            expanded.append(expand_references(word, self.environment, place))
            self._add_to_total_or_raise_if_too_long(place, expanded[-1])
        return expanded

    def _add_to_total_or_raise_if_too_long(self, place: str, text: str) -> None:
        size = len(text.encode()) + 1
        if size > MAX_TEXT_BYTES:
            raise _build_length_error(place)
        self._total_bytes += size + _POINTER_BYTES
        if self._total_bytes > MAX_TOTAL_BYTES:
            limit = f"{MAX_TOTAL_BYTES >> 20} MiB, the most that Linux takes"
            raise ReplicaCannotStart(f"env, command and args are together longer than {limit}, {_ADVICE}")


def expand_references(text: str, environment: Mapping[str, str], place: str = "text") -> str:
    """Expand `$(NAME)` to its value; an unknown name stays as written and `$$(NAME)` becomes `$(NAME)`.

    Kubernetes reads left to right and makes `$$` one `$` wherever it stands
    (its documentation on dependent environment variables; Vertex's containers run under it).
    Raises ReplicaCannotStart, naming `place`, as soon as the result is too long for Linux.
    """
    parts, end, size = list[str](), 0, 0
    for match in _REFERENCE.finditer(text):
        value = "$" if match[1] is None else environment.get(match[1], match[0])
        parts += text[end : match.start()], value
        size += match.start() - end + len(value)
        if size >= MAX_TEXT_BYTES:
            raise _build_length_error(place)
        end = match.end()
    return "".join([*parts, text[end:]])


def escape_references(text: str) -> str:
    """Escape text so that `expand_references` returns it unchanged."""
    return text.replace("$", "$$")


def _build_length_error(place: str) -> ReplicaCannotStart:
    limit = f"{MAX_TEXT_BYTES >> 10} KiB, the most that Linux takes for one"
    return ReplicaCannotStart(f"{place} is longer than {limit}, {_ADVICE}")
