"""Expressions of Workflows, and those functions of the standard library that are used; all others are refused.

Semantics: Google's pages "Expressions", "Data types, functions, and operators" (precedence, and what `+` makes of which
types) and those of the functions.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

MAX_LENGTH = 400
_TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)'
    r"|(?P<sign>==|!=|<=|>=|[-+*/<>()\[\].,]))"
)
_JOINED = {str, int, float, bool}
"""Types that `+` makes a text of, if one side is a text."""
_WORDS = {"null": None, "true": True, "false": False}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
    "in": lambda left, right: left in right,
}
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "double",
    str: "string",
    list: "list",
    dict: "map",
    type(None): "null",
}


class WorkflowError(Exception):
    """What a workflow raises and can catch: `value` is a map, or a text."""

    def __init__(self, value: Any) -> None:
        super().__init__(str(value))
        self.value = value


def evaluate(value: Any, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """A value of a step with every expression in it evaluated. An expression is a whole text."""
    if isinstance(value, dict):
        return {key: evaluate(child, variables, functions) for key, child in value.items()}
    if isinstance(value, list):
        return [evaluate(child, variables, functions) for child in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    assert value.startswith("${") and value.endswith("}"), f"an expression among other text: {value}"
    assert len(value) <= MAX_LENGTH, f"an expression of {len(value)} characters: {value}"
    return _Parser(value[2:-1], variables, {**FUNCTIONS, **functions}).run()


class _Parser:
    """Parses and evaluates at once. Both sides of `and` and `or` are evaluated, as it is safe to count on no less."""

    def __init__(self, text: str, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> None:
        self.text, self.variables, self.functions = text, variables, functions
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            assert match and match.lastgroup, f"no expression: {text} at {at}"
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.tokens.append(("end", ""))

    def run(self) -> Any:
        value = self.disjunction()
        assert self.tokens[0][0] == "end", f"no expression: {self.text}"
        return value

    def take(self, *texts: str) -> str | None:
        """The next token if it is one of these signs or words."""
        kind, text = self.tokens[0]
        return self.tokens.pop(0)[1] if kind in ("sign", "name") and text in texts else None

    def disjunction(self) -> Any:
        value = self.conjunction()
        while self.take("or"):
            other = self.conjunction()
            value = _boolean(value) or _boolean(other)
        return value

    def conjunction(self) -> Any:
        value = self.comparison()
        while self.take("and"):
            other = self.comparison()
            value = _boolean(value) and _boolean(other)
        return value

    def comparison(self) -> Any:
        value = self.sum()
        if sign := self.take(*_COMPARISONS):
            other = self.sum()
            if sign in ("<", ">", "<=", ">="):
                self.require_numbers(value, other)
            elif sign == "in" and type(other) not in (list, dict):
                raise WorkflowError({"message": f"{self.text}: in {other!r}", "tags": ["TypeError"]})
            value = _COMPARISONS[sign](value, other)
        return value

    def sum(self) -> Any:
        value = self.product()
        while sign := self.take("+", "-"):
            other = self.product()
            if sign == "+" and str in (type(value), type(other)) and {type(value), type(other)} <= _JOINED:
                value = _join(value, other)
                continue
            self.require_numbers(value, other)
            value = value + other if sign == "+" else value - other
        return value

    def product(self) -> Any:
        value = self.operand()
        while self.take("*"):
            other = self.operand()
            self.require_numbers(value, other)
            value = value * other
        return value

    def require_numbers(self, *values: Any) -> None:
        if not all(type(value) in (int, float) for value in values):
            raise WorkflowError({"message": f"{self.text}: no numbers: {values!r}", "tags": ["TypeError"]})

    def operand(self) -> Any:
        if self.take("-"):
            return -self.operand()
        if self.take("("):
            value = self.disjunction()
            assert self.take(")")
            return value
        kind, text = self.tokens.pop(0)
        if kind in ("text", "number"):
            return ast.literal_eval(text)
        assert kind == "name", f"no expression: {self.text}"
        return self.reference(text)

    def reference(self, name: str) -> Any:
        assert name.lower() not in ("not", "and", "or"), f"no expression: {self.text}"
        while self.is_function_prefix(name) and self.take("."):
            name += f".{self.tokens.pop(0)[1]}"
        if self.take("("):
            arguments = []
            while not self.take(")"):
                arguments.append(self.disjunction())
                self.take(",")
            return self.functions[name](*arguments)
        if name in self.functions:
            return self.functions[name]  # as a predicate of retries
        if name not in self.variables and name not in _WORDS:
            raise WorkflowError({"message": f"no variable {name}", "tags": ["KeyError"]})
        value: Any = self.variables[name] if name in self.variables else _WORDS[name]
        while sign := self.take(".", "["):
            key = self.tokens.pop(0)[1] if sign == "." else self.disjunction()
            assert sign == "." or self.take("]")
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError) as error:
                raise WorkflowError({"message": f"{self.text}: no {key!r}", "tags": ["KeyError"]}) from error
        return value

    def is_function_prefix(self, name: str) -> bool:
        return name not in self.variables and any(function.startswith(f"{name}.") for function in self.functions)


def _boolean(value: Any) -> bool:
    assert isinstance(value, bool), f"{value!r} is no condition"
    return value


def _join(left: Any, right: Any) -> str:
    """Two values as one text; a double is written as `string` writes it."""
    return "".join(each if isinstance(each, str) else json.dumps(each) for each in (left, right))


def _int(value: Any) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise WorkflowError({"message": f"int({value!r})", "tags": ["ValueError"]}) from error


def _get(found: Any, key: str) -> Any:
    assert isinstance(found, dict), f"map.get of {found!r}"
    return found.get(key)


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _string(value: Any) -> str:
    assert isinstance(value, int | float), value
    return str(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "default": lambda value, other: other if value is None else value,
    "get_type": lambda value: _TYPES[type(value)],
    "int": _int,
    "len": len,
    "map.get": _get,
    "math.min": min,
    "string": _string,
    "text.replace_all": lambda text, old, new: text.replace(old, new),
    "text.substring": lambda text, start, end: text[start:end],
    "time.format": _format_time,
}
