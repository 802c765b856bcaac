"""The shape of Python code in numbers: modules, their lines, the words of names. `python -m tools.shape [FOLDER …]`.

A folder is a package's, or the name of an installed one to compare with. Tests and generated files do not count. Words
are what underscores and capitals separate; dunder names and lambdas do not count.
"""

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOMS = ("components", "vertex_api", "vertex_emulator")
_GENERATED = "do not edit"
_LONG = 5
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


class Shape(NamedTuple):
    """Averages over modules and functions; `long` is the share of function names of five words or more."""

    modules: int
    lines: float
    module_words: float
    function_words: float
    long: float


def measure(files: Iterator[Path]) -> Shape:
    """Measure the modules in these files."""
    lines, modules, functions = 0, [], list[int]()
    for file in files:
        text = file.read_text()
        if _GENERATED in text[:500]:
            continue
        lines += text.count("\n")
        modules.append(len(_WORD.findall(file.parent.name if file.stem == "__init__" else file.stem)))
        functions += [
            len(_WORD.findall(node.name))
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.endswith("__")
        ]
    return Shape(
        len(modules),
        lines / len(modules),
        sum(modules) / len(modules),
        sum(functions) / len(functions),
        sum(words >= _LONG for words in functions) / len(functions),
    )


def find_modules(folder: str) -> Iterator[Path]:
    """Find the modules of a folder or of an installed package, without tests. Raises SystemExit if there is none."""
    root = Path(folder)
    if not root.is_dir():
        spec = importlib.util.find_spec(folder)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{folder}: is neither a folder nor an installed package")
        root = Path(spec.submodule_search_locations[0])
    return (file for file in sorted(root.rglob("*.py")) if not {"test", "tests", "_vendor"} & {*file.parts})


def main(folders: list[str]) -> None:
    """Print a line for each folder, and one for all rooms together if none is named."""
    named = [(folder, [folder]) for folder in folders or ROOMS]
    if not folders:
        named.append(("all", [*ROOMS]))
    print(f"{'':20} modules  lines a module  words a module  words a function  of {_LONG} words or more")
    for name, parts in named:
        shape = measure(file for part in parts for file in find_modules(part))
        print(
            f"{name:20} {shape.modules:7} {shape.lines:15.0f} {shape.module_words:15.2f}"
            f" {shape.function_words:17.2f} {shape.long:18.1%}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
