"""Which statements that say what is wrong were reached while code ran."""

import ast
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeGuard

ROOT = Path(__file__).parents[2]
REFUSALS = ("_refuse", "PydanticCustomError", "ValueError")
"""What is raised with a message."""


def statements(file: Path) -> set[tuple[str, int]]:
    """`(file, line)` of each statement that gives a finding, a problem, or an error with a message."""
    return {(str(file), line) for line in _lines(ast.parse(file.read_text()))}


def _lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if _is_finding(node) or _is_refusal(node) or _is_message(node):
            yield node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name == "_message":
            yield from (part.lineno for part in ast.walk(node) if isinstance(part, ast.Return))


def _is_finding(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and isinstance(node.value.value, ast.Tuple)


def _is_refusal(node: ast.AST) -> TypeGuard[ast.stmt]:
    called = node.exc.func if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in REFUSALS


def _is_message(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("message", "missing")


@contextmanager
def reached(files: set[str]) -> Iterator[set[tuple[str, int]]]:
    """The `(file, line)`s of some files that are run meanwhile."""
    found: set[tuple[str, int]] = set()
    real_path = functools.cache(os.path.realpath)  # a room is imported through a link

    def line(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        found.add((real_path(frame.f_code.co_filename), frame.f_lineno))
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        return line if real_path(frame.f_code.co_filename) in files else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield found
    finally:
        sys.settrace(before)
