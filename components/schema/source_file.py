"""Files that a user writes: read strictly, and asked for line numbers only when there is something to report."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import MUST_BE_OBJECT, format_path

from ..errors import Problem
from . import yaml_documents


@dataclass(frozen=True)
class Source:
    """A file of declarations. `name` is its path as shown to the user.

    In a stack file the declarations stand below `config`, and their keys carry a namespace (`vertex-training:images`).
    """

    file: Path
    name: str
    namespace: str = ""

    def read(self) -> tuple[dict[str, Any], list[Problem]]:
        """What the file holds, or why it cannot be read."""
        try:
            content = yaml_documents.loaded(self.file.read_bytes())
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            return {}, [Problem(f"{self.name}:{line}", "", error.problem or "is not valid YAML")]
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            return {}, [Problem(self.name, "", f"is not valid YAML: {str(error).splitlines()[0]}")]
        except OSError as error:
            return {}, [Problem(self.name, "", f"cannot be read: {error.strerror}")]
        if content is not None and not isinstance(content, dict):
            return {}, [Problem(self.name, "", MUST_BE_OBJECT)]
        return content or {}, []

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at a key of the declarations, with the line where it stands."""
        said = yaml_documents.as_written(self._root, self._in_file(path), message)
        return Problem(self.place(path), format_path(self._spelled(path)), said)

    def place(self, path: KeyPath) -> str:
        """`file:line` of the deepest part of `path` that the file holds."""
        line = yaml_documents.line_of(self._root, self._in_file(path))
        return self.name if line is None else f"{self.name}:{line}"

    def _in_file(self, path: KeyPath) -> KeyPath:
        return (("config",) if self.namespace else ()) + self._spelled(path)

    def _spelled(self, path: KeyPath) -> KeyPath:
        return (f"{self.namespace}{path[0]}", *path[1:]) if self.namespace and path else path

    @cached_property
    def _root(self) -> yaml.Node | None:
        try:
            return yaml_documents.composed(self.file.read_bytes())
        except (OSError, yaml.YAMLError):
            return None


def included(root: Path, patterns: list[str], stack: Source) -> tuple[list[Source], list[Problem]]:
    """What a stack's `include` names: files, folders (their YAML and JSON files) or globs, relative to `root`."""
    files: dict[Path, None] = {}
    problems = []
    for index, pattern in enumerate(patterns):
        found = _matching(root, pattern)
        if not found:
            problems.append(stack.problem(("include", index), f'"{pattern}" names no file in {root.name}/'))
        files |= dict.fromkeys(found)
    return [Source(file, _shown(file, root)) for file in files], problems


def _matching(root: Path, pattern: str) -> list[Path]:
    path = root / pattern
    if path.is_file():
        return [path]
    candidates = path.iterdir() if path.is_dir() else root.glob(pattern) if not Path(pattern).is_absolute() else []
    return sorted(file for file in candidates if file.suffix in (".yaml", ".yml", ".json") and file.is_file())


def _shown(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
