"""The messages of a preview: its problems one by one, without prefixes of the engine and paths of the machine."""

import re
from collections.abc import Iterable, Iterator

from .preview_document import Diagnostic

_CONSEQUENTIAL_ERROR = re.compile(r"an unhandled error occurred: program exited|^update failed$|^preview failed$")
_SEVERITY_PREFIX = re.compile(r"^(error|warning): ")
_TRACEBACK_FRAME = re.compile(r'^\s+(File "|\^+$|~+|\| )|^Traceback \(most recent call last\)|^\s{4,}')
_LIST_HEADING = re.compile(r"^\d+ problems? in what is declared:$")
_COLOR = re.compile(r"\x1b\[[0-9;]*m|<\{%.*?%\}>")
_MACHINE_PATH = re.compile(r"(?<![\w/:.}\]])(?!/gcs/)(?:/[\w.@+~ -]*[\w.@+~-]){2,}|\b[A-Za-z]:\\[\w.\\@+~-]+")


def list_unique_root_error_messages(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Return the errors of a preview, each once; a list of problems in declarations is taken apart."""
    problems = dict.fromkeys(_iterate_cleaned_messages(diagnostics, "error"))
    own = [each for each in problems if not _CONSEQUENTIAL_ERROR.search(each)]
    return own or list(problems)


def list_unique_warning_messages(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Return the warnings of a preview, each once."""
    return list(dict.fromkeys(_iterate_cleaned_messages(diagnostics, "warning")))


def shorten_absolute_paths(text: str) -> str:
    """Return a text with the last part only of each absolute path."""
    return _MACHINE_PATH.sub(lambda found: "…/" + re.split(r"[/\\]", found[0])[-1], text)


def _iterate_cleaned_messages(diagnostics: Iterable[Diagnostic], severity: str) -> Iterator[str]:
    for each in diagnostics:
        if each.severity != severity:
            continue
        lines = _SEVERITY_PREFIX.sub("", _COLOR.sub("", each.message).strip()).splitlines()
        place = f"{each.name}: " if each.name else ""
        lines = [line for line in lines if line.strip() and not _TRACEBACK_FRAME.search(line)]
        lines = [shorten_absolute_paths(line) for line in lines]
        if lines and _LIST_HEADING.match(lines[0]):
            yield from (line.strip() for line in lines[1:])
        elif lines:
            yield place + " ".join(line.strip() for line in lines)
