"""PreviewDocument: the output of `pulumi preview --json`, parsed into values with types, and its messages.

The form is the one of Pulumi's engine 3.259 (`pkg/backend/display/json.go`). Secrets are `[secret]` there already.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import KNOWN_HERE, ComponentError
from ..settings.settings import RUNS, stack_values

NOT_A_PREVIEW = (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError, RecursionError)
"""What values raise that are not those of a preview."""
_STACK_TYPE = "pulumi:pulumi:Stack"
_PARTS_OF_REPLACEMENTS = ("create-replacement", "delete-replaced")
"""Operations that the engine lists beside the `replace` of the same resource if it creates before it deletes."""
_OPERATION = re.compile(r"[a-z-]{1,30}")


class PreviewUnreadable(ComponentError):
    """A file is not the output of `pulumi preview --json`."""


@dataclass(frozen=True)
class Step:
    """What a preview would do with one resource.

    `op` is `create`, `update`, `replace`, `delete`, `same` or another operation of Pulumi. `old_inputs` and
    `new_inputs` are None if the resource does not exist before or after. `reasons` are the inputs that changed by the
    provider's word: those of secrets do not show otherwise. A component (`is_component`) only groups others. `id` is
    what the provider calls the resource that exists before.
    """

    op: str
    urn: str
    type: str
    name: str
    old_inputs: Mapping[str, Any] | None
    new_inputs: Mapping[str, Any] | None
    reasons: frozenset[str]
    is_component: bool
    is_retained: bool
    id: str = ""

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> "Step":
        """Parse a step. Raises one of `NOT_A_PREVIEW`."""
        urn = str(fields["urn"])
        _, _, types, name = urn.split("::", 3)
        if not _OPERATION.fullmatch(str(fields["op"])):
            raise ValueError("an operation is a word")
        old, new = fields.get("oldState"), fields.get("newState")
        return cls(
            op=str(fields["op"]),
            urn=urn,
            type=types.rpartition("$")[2],
            name=name,
            old_inputs=_inputs(old),
            new_inputs=_inputs(new),
            reasons=frozenset(map(str, [*(fields.get("diffReasons") or []), *(fields.get("replaceReasons") or [])])),
            is_component=not (new or old or {}).get("custom"),
            is_retained=bool((old or {}).get("retainOnDelete")),
            id=str((old or {}).get("id", "")),
        )

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs after the update, or before it if the resource is deleted."""
        return self.new_inputs if self.new_inputs is not None else self.old_inputs or {}


def _inputs(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the inputs of a resource without Pulumi's own."""
    if not state:
        return None
    return {str(key): value for key, value in (state.get("inputs") or {}).items() if not str(key).startswith("__")}


@dataclass(frozen=True)
class Diagnostic:
    """A message of a preview: its `severity`, `message`, and the `name` of its resource, empty if it has none."""

    severity: str
    message: str
    name: str


@dataclass(frozen=True)
class PreviewDocument:
    """A preview of the stack `stack` of the Pulumi project `project`.

    `steps` are those of all resources that the preview lists. `unlisted_count` is how many unchanged resources it does
    not list: without `--show-sames`, all of them. `records` are those of earlier runs that the stack's state has, by
    the names of jobs as resources (`vertex_api.estimates.runs`).
    """

    project: str
    stack: str
    config: Mapping[str, str]
    steps: tuple[Step, ...]
    diagnostics: tuple[Diagnostic, ...]
    unlisted_count: int
    records: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, origin: str) -> "PreviewDocument":
        """Parse a preview. `origin` names it in errors. Raises PreviewUnreadable."""
        if not text.strip():
            raise PreviewUnreadable(
                f"{origin}: is empty; `pulumi preview --json` failed before it began, and says why on standard error"
            )
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict) or not fields.keys() & {"steps", "diagnostics", "changeSummary"}:
                raise PreviewUnreadable(f"{origin}: is not the output of `pulumi preview --json`")
            steps = [Step.parse(step) for step in fields.get("steps") or []]
            diagnostics = tuple(
                Diagnostic(str(each["severity"]), str(each["message"]), str(each.get("urn") or "").rpartition("::")[2])
                for each in fields.get("diagnostics") or []
            )
            config = {str(key): str(value) for key, value in (fields.get("config") or {}).items()}
            records = dict(record for step in fields.get("steps") or [] for record in _records(step))
            unchanged_count = int((fields.get("changeSummary") or {}).get("same", 0))
        except NOT_A_PREVIEW as error:
            reason = f": {error}" if isinstance(error, json.JSONDecodeError) else ""
            message = f"{origin}: is not the output of `pulumi preview --json`{reason}; write only its standard output"
            raise PreviewUnreadable(message) from error
        # URNs are `urn:pulumi:STACK::PROJECT::TYPES::NAME`.
        stack, project, *_ = steps[0].urn.split("::") if steps else ("", "")
        return cls(
            project=project,
            stack=stack.removeprefix("urn:pulumi:"),
            config=config,
            steps=_in_order(steps),
            diagnostics=diagnostics,
            unlisted_count=max(0, unchanged_count - sum(step.op == "same" for step in steps)),
            records=records,
        )

    @property
    def has_failed(self) -> bool:
        """Whether the preview reports an error, so that its steps are not complete."""
        return any(each.severity == "error" for each in self.diagnostics)

    @cached_property
    def stack_values(self) -> Mapping[str, Any]:
        """The valid values of the stack's config, in the shape of `shapes.Stack`."""
        values, _ = stack_values(self.config)
        return values


def _records(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the records of runs among the outputs that the step of the stack itself has in the state."""
    if not str(fields["urn"]).rpartition("::")[0].endswith(f"::{_STACK_TYPE}"):
        return
    for output, found in ((fields.get("oldState") or {}).get("outputs") or {}).items():
        if output.endswith(RUNS) and isinstance(found, Mapping):
            prefix = output.removesuffix(RUNS)
            yield from ((f"{prefix}{name}", each) for name, each in found.items() if isinstance(each, str))


def _in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps of single resources in an order that is the same in each preview: the engine's is not."""
    selected = (step for step in steps if step.type != _STACK_TYPE and step.op not in _PARTS_OF_REPLACEMENTS)
    return tuple(sorted(selected, key=lambda step: (step.type.rpartition(":")[2], step.name, step.urn)))


_CONSEQUENTIAL = re.compile(r"an unhandled error occurred: program exited|^update failed$|^preview failed$")
_SEVERITY_PREFIX = re.compile(r"^(error|warning): ")
_TRACEBACK_FRAME = re.compile(r'^\s+(File "|\^+$|~+|\| )|^Traceback \(most recent call last\)|^\s{4,}')
_LIST_HEADING = re.compile(r"^\d+ problems? in what is declared:$")
_COLOR = re.compile(r"\x1b\[[0-9;]*m|<\{%.*?%\}>")
_MACHINE_PATH = re.compile(r"(?<![\w/:.}\]])(?!/gcs/)(?:/[\w.@+~ -]*[\w.@+~-]){2,}|\b[A-Za-z]:\\[\w.\\@+~-]+")


def errors(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return the errors of a preview, each once; a list of problems in declarations is taken apart."""
    problems = dict.fromkeys(_messages(diagnostics, "error"))
    own = [each for each in problems if not _CONSEQUENTIAL.search(each)]
    return own or list(problems)


def warnings(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return the warnings of a preview, each once."""
    return list(dict.fromkeys(_messages(diagnostics, "warning")))


def _messages(diagnostics: Iterable[Diagnostic], severity: str) -> Iterator[str]:
    """Yield messages one by one, without prefixes of the engine and paths of the machine."""
    for each in diagnostics:
        if each.severity != severity:
            continue
        lines = _SEVERITY_PREFIX.sub("", _COLOR.sub("", each.message).strip()).splitlines()
        place = f"{each.name}: " if each.name else ""
        lines = [line for line in lines if line.strip() and not _TRACEBACK_FRAME.search(line)]
        lines = [shorten_paths(line) for line in lines]
        if lines and _LIST_HEADING.match(lines[0]):
            yield from (line.strip() for line in lines[1:] if not line.strip().startswith(KNOWN_HERE))
        elif lines:
            yield place + " ".join(line.strip() for line in lines)


def shorten_paths(text: str) -> str:
    """Return a text with the last part only of each absolute path."""
    return _MACHINE_PATH.sub(lambda found: "…/" + re.split(r"[/\\]", found[0])[-1], text)
