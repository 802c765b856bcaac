"""Which statements that say what is wrong were reached while code ran."""

import ast
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
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


_real_path = functools.cache(os.path.realpath)  # a room is imported through a link


@functools.cache
def _lines_of(code: CodeType) -> set[tuple[str, int]]:
    file = _real_path(code.co_filename)
    return {(file, line) for _, _, line in code.co_lines() if line is not None}


@contextmanager
def reached(wanted: set[tuple[str, int]]) -> Iterator[None]:
    """Takes out of the `(file, line)`s those that are run meanwhile. Functions without one run as fast as ever."""

    def line(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        wanted.discard((_real_path(frame.f_code.co_filename), frame.f_lineno))
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        return None if wanted.isdisjoint(_lines_of(frame.f_code)) else line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
