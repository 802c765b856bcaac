"""SourceFile: a YAML or JSON file that a user wrote, which knows the line of each of its keys."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_validation import MUST_BE_OBJECT, format_path

from ..errors import Problem
from . import yaml_documents


@dataclass(frozen=True)
class SourceFile:
    """The `content` of a file, and its `name` as messages show it.

    In a stack file the keys stand under `config` and begin with a `namespace` (`vertex-training:`).
    """

    name: str
    content: bytes = b""
    namespace: str = ""

    def parse_content_and_problems(self) -> tuple[dict[str, Any], list[Problem]]:
        """Return the object that the file holds, or an empty one and the problem that prevents it from being read."""
        try:
            value = yaml_documents.parse_document_value(self.content)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            return {}, [Problem(f"{self.name}:{line}", "", error.problem or "is not valid YAML")]
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            return {}, [Problem(self.name, "", f"is not valid YAML: {str(error).splitlines()[0]}")]
        if value is not None and not isinstance(value, dict):
            return {}, [Problem(self.name, "", MUST_BE_OBJECT)]
        return value or {}, []

    def create_problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a key, with the key's line. Values are quoted as the user wrote them."""
        full_path = self._get_key_path_in_file(path)
        message = yaml_documents.improve_message_if_misread(self._root_node, full_path, message)
        return Problem(self.format_file_and_line(path), format_path(full_path[1 if self.namespace else 0 :]), message)

    def format_file_and_line(self, path: KeyPath) -> str:
        """Return `file:line` of the deepest part of `path` that the file holds, or the file alone."""
        line = yaml_documents.find_deepest_line_or_none(self._root_node, self._get_key_path_in_file(path))
        return self.name if line is None else f"{self.name}:{line}"

    def _get_key_path_in_file(self, path: KeyPath) -> KeyPath:
        if not self.namespace:
            return path
        return ("config", f"{self.namespace}{path[0]}", *path[1:]) if path else ("config",)

    @cached_property
    def _root_node(self) -> yaml.Node | None:
        return yaml_documents.compose_root_node_or_none(self.content)


def get_checkout(root: Path) -> Path:
    """Return the folder in which all files of a project must be: its git checkout, or `root` if it is in none.

    What a pull request changes are files of a checkout. If declarations could name others, an edit of a line would
    bring any file of the machine into an image, a package or a message.
    """
    root = root.resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def explain_outside(root: Path, path: str) -> str | None:
    """Return why a path, relative to the project's folder `root`, is not one of its checkout; None if it is.

    Links count as what they lead to.
    """
    checkout = get_checkout(root)
    try:
        target = (root / path).resolve()
        target.exists()
    except (OSError, RuntimeError, ValueError):  # too long, a link to itself, NUL
        return f'"{path[:100]}" is not the path of a file; correct it'
    if target.is_relative_to(checkout):
        return None
    return (
        f'"{path}" leads out of {checkout.name}/; move it there, or run `git init` in a folder that has both: files '
        "outside of a project's git checkout are not read"
    )


def load_source_file_content_and_problems(file: Path, name: str) -> tuple[SourceFile, dict[str, Any], list[Problem]]:
    """Return a file, the object that it holds, and the problem that prevents it from being read, if there is one."""
    try:
        source = SourceFile(name, file.read_bytes())
    except OSError as error:
        return SourceFile(name), {}, [Problem(name, "", f"cannot be read: {error.strerror}")]
    return source, *source.parse_content_and_problems()
