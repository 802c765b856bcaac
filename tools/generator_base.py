"""What the generators share: the discovery document that they read, and their command line."""

import argparse
import importlib.resources
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCHEMA_ID_PREFIX = "GoogleCloudAiplatformV1"
"""The prefix of the ids of the schemas in the discovery document."""
Schema = dict[str, Any]


def load_installed_discovery_document(version: str = "v1") -> Schema:
    """Return the API's discovery document that the installed google-api-python-client ships."""
    documents = importlib.resources.files("googleapiclient") / "discovery_cache" / "documents"
    document: Schema = json.loads((documents / f"aiplatform.{version}.json").read_text())
    return document


def run_generator_command(module: str, description: str | None, render_files: Callable[[], dict[Path, str]]) -> int:
    """Parse the command line of a generator, write its files or, with `--check`, name those that are out of date.

    Returns the exit code.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    check, exit_code = parser.parse_args().check, 0
    for file, text in render_files().items():
        if not check:
            file.write_text(text)
            print(f"{file.name}: {len(text) // 1000} kB")
        elif not file.is_file() or file.read_text() != text:
            print(f"{file} is out of date: run python -m {module}", file=sys.stderr)
            exit_code = 1
    return exit_code
