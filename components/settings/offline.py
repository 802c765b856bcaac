"""A stack file as Pulumi reads it, without an engine: for commands that run before any `pulumi` word."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .. import trees
from ..schema import shapes
from ..schema.source import checkout, explain_outside, parse

SECRET = "[secret]"
"""Stands for a value that only Pulumi can decrypt."""


class NoStack(Exception):
    """There is no stack file to read. The message is one line."""


class StackFile(NamedTuple):
    """What the file of a stack says: its project's folder and name, its own name, and its config without secrets.

    `key` is that of Cloud KMS which encrypts its secrets, if one does.
    """

    root: Path
    project: str
    name: str
    config: dict[str, str]
    key: str | None

    @property
    def cloud_project(self) -> str:
        """The Google Cloud project of a stack with target `gcp`, "" if it names none."""
        if self.config.get("vertex-training:target") != "gcp":
            return ""
        return self.config.get("vertex-training:project") or self.config.get("gcp:project") or ""

    def as_local(self) -> dict[str, str]:
        """Return this package's keys as a stack with target `local` has them, without those for Google Cloud alone."""
        own = "vertex-training:"
        cloud = {f"{own}{key}" for key in (*shapes.Cloud.__annotations__, "extends", "guardrails", "project")}
        kept = {key: text for key, text in self.config.items() if key.startswith(own) and key not in cloud}
        return {**kept, f"{own}target": "local"}


def read_stack(folder: Path, stack: str | None, target: str = "gcp") -> StackFile:
    """Return what the file of a stack says, in the project that a folder is in. Raises NoStack.

    `stack` may be None: the variable PULUMI_STACK, or the only stack with the `target`.
    """
    root = next((each for each in (folder, *folder.parents) if (each / "Pulumi.yaml").is_file()), None)
    if root is None:
        raise NoStack(f"there is no Pulumi.yaml in {folder} or above; run this in the folder of a project")
    top = checkout(root)
    about = _read(root / "Pulumi.yaml", top)
    project, named = str(about.get("name")), str(about.get("stackConfigDir") or ".")
    if message := explain_outside(root, named):
        raise NoStack(f"{root / 'Pulumi.yaml'}: stackConfigDir: {message}")
    directory = root / named
    files = {file.name.removeprefix("Pulumi.").rpartition(".")[0]: file for file in directory.glob("Pulumi.*.yaml")}
    name = (stack or os.environ.get("PULUMI_STACK") or "").rpartition("/")[2]
    contents = {each: _read(file, top) for each, file in files.items() if name in ("", each)}
    configs = {each: _config(project, about, content) for each, content in contents.items()}
    fitting = [each for each, config in configs.items() if config.get("vertex-training:target") == target]
    name = name or (fitting[0] if len(fitting) == 1 else "")
    if name not in configs:
        known = ", ".join(sorted(files)) or "none"
        problem = f'there is no stack file of "{name}"' if name else "it is not clear which stack is meant"
        raise NoStack(f"{problem} in {directory}; set --stack to one that has a file there ({known})")
    provider = str(contents[name].get("secretsprovider"))
    key = provider.removeprefix("gcpkms://").partition("?")[0] if provider.startswith("gcpkms://") else None
    return StackFile(root, project, name, configs[name], key)


def _read(file: Path, top: Path) -> dict[str, Any]:
    try:
        content = parse(trees.read(file, top))
    except (OSError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        reason = said or str(error).strip().partition("\n")[0]
        raise NoStack(f"{file} cannot be read ({reason}); correct it") from error
    return _mapping(content)


def _mapping(value: Any) -> dict[str, Any]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _config(project: str, about: Mapping[str, Any], stack_file: Mapping[str, Any]) -> dict[str, str]:
    """Return the config as the engine hands it to a program: texts as they are, everything else as JSON.

    The config of the project file has defaults, whose keys may go without its name (page "Project file reference").
    """
    found: dict[str, Any] = {}
    for key, value in _mapping(about.get("config")).items():
        default = value.get("value", value.get("default")) if isinstance(value, dict) else value
        if default is not None:
            found[key if ":" in key else f"{project}:{key}"] = default
    found |= _mapping(stack_file.get("config"))
    return {key: _text(_without_secrets(value)) for key, value in found.items()}


def _text(value: Any) -> str:
    # A date, which YAML reads without quotes, is a text to the engine.
    return json.dumps(value, default=str) if isinstance(value, dict | list | bool) else str(value)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return SECRET if value.keys() == {"secure"} else {key: _without_secrets(each) for key, each in value.items()}
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value
