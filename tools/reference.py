"""Writes the two pages of reference from the code: docs/reference.md from docstrings, docs/commands.md from parsers.

    python -m tools.reference [--check]

griffe reads the code without importing it: signatures as they are written, and attributes with their docstrings.
"""

import argparse
import re
from dataclasses import dataclass

import griffe
from vertex_training import cli

from tools import discovery
from tools.setup import CHECKOUT
from vertex_emulator.cli import options

DOCS = CHECKOUT / "docs"
_PACKAGES = ("vertex_training", "vertex_api", "vertex_emulator")
_OF_INSTANCES = {"instance-attribute", "property"}
"""What griffe calls the attributes of objects; those of classes alone have neither."""
_WIDTH = 100
"""Of a signature in one line."""


@dataclass(frozen=True)
class Entry:
    """A name on the page: where it is, whether programs call it, and which of its members are for them."""

    path: str
    is_called: bool = True
    shown: tuple[str, ...] = ("Attributes", "Keys", "Methods")

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def _read(path: str) -> Entry:
    """Return the entry of what programs are given and do not make."""
    return Entry(path, is_called=False)


SECTIONS: dict[str, tuple[str, list[Entry]]] = {
    "The program": (
        "What `__main__.py` calls, and what it gets.",
        [
            Entry("vertex_training.run"),
            Entry("vertex_training.TrainingStack"),
            Entry("vertex_training.TrainingStackArgs", is_called=False, shown=()),
            _read("vertex_training.stack.Images"),
            _read("vertex_training.stack.Packages"),
            _read("vertex_training.stack.Schedules"),
            _read("vertex_training.data.lock.LockedData"),
            _read("vertex_training.Settings"),
        ],
    ),
    "Jobs": (
        "Each is one run, on Vertex AI or in the emulator. [Declare jobs in a Python program](python.md) shows them.",
        [
            Entry("vertex_training.CustomJob"),
            Entry("vertex_training.HyperparameterTuningJob"),
            Entry("vertex_training.TrainingPipeline"),
            Entry("vertex_training.Completion"),
            _read("vertex_training.CustomJobArgs"),
            _read("vertex_training.HyperparameterTuningJobArgs"),
            _read("vertex_training.TrainingPipelineArgs"),
            _read("vertex_api.pipelines.TuningTaskInputs"),
        ],
    ),
    "Images and packages": (
        "What jobs run.",
        [
            Entry("vertex_training.TrainingImage"),
            _read("vertex_training.TrainingImageArgs"),
            Entry("vertex_training.PythonPackage"),
            _read("vertex_training.PythonPackageArgs"),
            Entry("vertex_api.jobspec.reduction_server_image"),
        ],
    ),
    "Schedules": (
        "Jobs that run again and again. [Schedules](schedules.md) says what a run is.",
        [
            Entry("vertex_training.Schedule"),
            _read("vertex_training.ScheduleArgs"),
            Entry("vertex_training.JobTemplate"),
        ],
    ),
    "A foundation of your own": (
        "For a program whose jobs stand on other resources than those of a stack file.",
        [
            _read("vertex_training.Foundation"),
            Entry("vertex_training.plan.programmed.Program", shown=()),
            Entry("vertex_training.plan.training.Defaults", shown=("Attributes",)),
        ],
    ),
    "Tests with the emulator": (
        "The plugin of pytest has two fixtures; elsewhere, use `run_emulator`. "
        "[Test with pytest](testing.md#test-with-pytest) has examples.",
        [
            _read("vertex_emulator.testing.pytest_plugin.vertex_emulator"),
            _read("vertex_emulator.testing.pytest_plugin.vertex_job_log"),
            Entry("vertex_emulator.testing.run_emulator"),
            _read("vertex_emulator.testing.EmulatorProject"),
        ],
    ),
}
_BEGINNING = """\
# Python reference

Look up here what each name of `vertex_training` takes and gives, and what of `vertex_api` and `vertex_emulator` is for
programs. `python -m tools.reference` writes this page from the code: edit the docstrings.

"""
_TYPES = """\
## Messages of the API

`vertex_training.args` has a TypedDict for each message that a job of a program may contain, such as `WorkerPoolSpec`
and `StudySpec`, and a `Literal` for each enum; `vertex_api.types` has them without outputs. Both are generated from the
API's discovery document. Fields have the API's names and
meanings: see its reference of
[CustomJob](https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs) and
[HyperparameterTuningJob](https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.hyperparameterTuningJobs).

"""
_ERRORS = """\
## Errors

All are in `vertex_training.errors`. Each message says what to do, and can be shown as it is.

"""


class Reference:
    """The page of the Python names, from what griffe has read."""

    def __init__(self) -> None:
        loader = griffe.GriffeLoader(allow_inspection=False)
        for package in _PACKAGES:
            loader.load(package)
        loader.resolve_aliases()
        self._modules = loader.modules_collection
        entries = [entry for _, entries in SECTIONS.values() for entry in entries]
        self._names = {entry.name for entry in entries}
        # A base without a public name is part of the first class that has it; the others refer to that one.
        self._bases: dict[str, griffe.Class] = {}
        for entry in entries:
            if isinstance(found := self.find(entry.path), griffe.Class):
                for base in found.mro():
                    if base.name.startswith("_") and base not in self._bases.values():
                        self._bases[entry.path] = base

    def find(self, path: str) -> griffe.Object:
        """Return what a dotted path leads to."""
        found = self._modules[path]
        return found.final_target if isinstance(found, griffe.Alias) else found

    def text(self) -> str:
        """Return the page."""
        listed = [
            f"- **{heading}**: {', '.join(f'[`{each.name}`](#{each.name.lower()})' for each in entries)}\n"
            for heading, (_, entries) in SECTIONS.items()
        ]
        written = [_BEGINNING, *listed, "- [**Messages of the API**](#messages-of-the-api), [**Errors**](#errors)\n\n"]
        for heading, (purpose, entries) in SECTIONS.items():
            written.append(f"## {heading}\n\n{purpose}\n\n")
            written += [self._entry(entry) for entry in entries]
        errors = [each for each in self.find("vertex_training.errors").classes.values() if not _is_dataclass(each)]
        rows = [self._row(each.name, each) for each in errors]
        return "".join([*written, _TYPES, _ERRORS, *rows])

    def _entry(self, entry: Entry) -> str:
        found = self.find(entry.path)
        blocks = [f"### {entry.name}"]
        if entry.is_called:
            blocks.append(f"```python\n{self._signature(entry.path, found)}\n```")
        elif isinstance(found, griffe.Function):
            blocks.append(f"```python\ndef test(…, {found.name}: {_returned(found)}): …\n```")
        blocks.append(self._markdown(_docstring(found), entry.name))
        for title, members in self.members(entry).items():
            rows = [self._row(each, member, entry.name) for each, member in members.items()]
            blocks.append(f"**{title}**\n\n{''.join(rows)}".rstrip("\n"))
        return "\n\n".join(blocks) + "\n\n"

    def members(self, entry: Entry) -> dict[str, dict[str, griffe.Object]]:
        """Return the members of a class that the page shows by their signatures, in groups with titles."""
        found = self.find(entry.path)
        if isinstance(found, griffe.Attribute) and str(found.value).startswith("pipelines."):
            found = self.find(f"vertex_api.{found.value}")
        if not isinstance(found, griffe.Class):
            return {}
        attributes, methods = dict[str, griffe.Object](), dict[str, griffe.Object]()
        own = [self._bases[entry.path]] if entry.path in self._bases else []
        for name, member in [pair for each in (*own, found) for pair in each.members.items()]:
            if name.startswith("_"):
                continue
            if isinstance(member, griffe.Function):
                methods[self._signature(name, member)] = member
            elif isinstance(member, griffe.Attribute) and member.annotation and member.labels & _OF_INSTANCES:
                attributes[f"{name}: {member.annotation}"] = member
        is_typed_dict = any(str(base).endswith("TypedDict") for base in found.bases)
        groups = {"Keys" if is_typed_dict else "Attributes": attributes, "Methods": methods}
        return {title: members for title, members in groups.items() if members and title in entry.shown}

    def _row(self, signature: str, member: griffe.Object, own_name: str = "") -> str:
        text = self._markdown(_docstring(member), own_name).replace("\n", "\n  ").replace("\n  \n", "\n\n")
        return f"- `{signature}`: {text}\n"

    def _signature(self, path: str, found: griffe.Object) -> str:
        """Return how something is called: by its path in several lines if it is long, else in one."""
        assert isinstance(found, griffe.Class | griffe.Function)
        given = _type_arguments(found) if isinstance(found, griffe.Class) else {}
        parts: list[str] = []
        for each in found.parameters:
            if each.name in ("self", "cls"):
                continue
            is_star = each.kind is griffe.ParameterKind.var_keyword
            if each.kind is griffe.ParameterKind.keyword_only and "*" not in parts:
                parts.append("*")
            annotation = str(each.annotation)
            part = f"{'**' if is_star else ''}{each.name}: {given.get(annotation, annotation)}"
            parts.append(part if each.default is None or is_star else f"{part} = {each.default}")
        returns = f" -> {_returned(found)}" if isinstance(found, griffe.Function) else ""
        line = f"{path}({', '.join(parts)}){returns}"
        if len(line) <= _WIDTH or "." not in path:
            return line
        return "\n".join([f"{path}(", *(f"    {part}," for part in parts), f"){returns}"])

    def _markdown(self, docstring: str, own_name: str) -> str:
        """Return a docstring as Markdown: its code fenced, and its names and pages linked."""
        blocks = []
        for block in docstring.split("\n\n"):
            if block.startswith("    "):
                code = re.sub("^    ", "", block, flags=re.MULTILINE)
                blocks.append(f"```python\n{code}\n```")
                continue
            linked = re.sub(r"`([A-Z]\w+)`", lambda match: self._linked(match[1], own_name), block)
            blocks.append(re.sub(r"docs/(\w+\.md)(#([\w-]+))?", _page_link, linked))
        return "\n\n".join(blocks)

    def _linked(self, name: str, own_name: str) -> str:
        return f"[`{name}`](#{name.lower()})" if name in self._names - {own_name} else f"`{name}`"


def _docstring(found: griffe.Object) -> str:
    return found.docstring.value if found.docstring else ""


def _page_link(match: re.Match[str]) -> str:
    """Return a link to a page, named by its heading or by that of the section."""
    file, _, anchor = match.groups()
    title = (DOCS / file).read_text().partition("\n")[0].removeprefix("# ")
    return f"[{anchor.replace('-', ' ').capitalize()}]({file}#{anchor})" if anchor else f"[{title}]({file})"


def _type_arguments(found: griffe.Class) -> dict[str, str]:
    """Return what stands in a class for the type variable of its generic base."""
    subscripts = [each for each in found.bases if isinstance(each, griffe.ExprSubscript)]
    inherited = [each for base in found.mro() for each in base.bases if isinstance(each, griffe.ExprSubscript)]
    variables = [each for each in inherited if str(each.left) == "Generic"]
    return {str(variable.slice): str(each.slice) for each, variable in zip(subscripts, variables, strict=True)}


def _is_dataclass(found: griffe.Class) -> bool:
    return "dataclass" in found.labels


def _returned(function: griffe.Function) -> str:
    """Return the type of what a call gives: of a fixture what a test gets, of a context manager the manager."""
    decorators = {each.callable_path.rpartition(".")[2] for each in function.decorators}
    returned = str(function.returns)
    if not decorators & {"contextmanager", "fixture"}:
        return returned
    yielded = re.sub(r"^Iterator\[(.*)\]$", r"\1", returned)
    return yielded if "fixture" in decorators else f"AbstractContextManager[{yielded}]"


def commands() -> str:
    """Return docs/commands.md: each command of both programs, with all that it takes."""
    programs = (cli.build(), options.build())
    rows = [
        f"| [`{each.prog}`](#{each.prog.replace(' ', '-')}) | {summary} |\n"
        for program in programs
        for each, summary in _subcommands(program)
    ]
    return "".join([_COMMANDS, "| Command | |\n|---|---|\n", *rows, "\n", *map(_command, programs)])


_COMMANDS = """\
# Command line

Look up here every command and option of `vertex-training` and `vertex-emulator`; `--help` prints the same.
`python -m tools.reference` writes this page from the parsers.

"""


def _subcommands(parser: argparse.ArgumentParser) -> list[tuple[argparse.ArgumentParser, str]]:
    """Return the commands of a parser, each with what it is for in one line."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            return [(each, helps[name]) for name, each in action.choices.items()]
    return []


def _command(parser: argparse.ArgumentParser, summary: str = "", above: argparse.ArgumentParser | None = None) -> str:
    """Return the section of a command, and those of the commands below it."""
    below = _subcommands(parser)
    blocks = [f"{'###' if above else '##'} {parser.prog}"]
    if not below:
        blocks.append(f"```\n{_usage(parser)}\n```")
    description = parser.description or f"{summary[:1].upper()}{summary[1:]}."
    if not (above and description == above.description):
        blocks.append(description.strip())
    arguments = [each for each in parser._actions if not isinstance(each, _NOT_LISTED)]
    if arguments:
        rows = [f"| {_names(each)} | {_help(parser, each)} |" for each in arguments]
        blocks.append("\n".join(["| Argument | |", "|---|---|", *rows]))
    if parser.epilog and not (above and parser.epilog == above.epilog):
        blocks += map(_epilog, re.split(r"\n\n(?! )", parser.epilog.strip("\n")))
    return "\n\n".join(blocks) + "\n\n" + "".join(_command(each, text, parser) for each, text in below)


_NOT_LISTED = (argparse._HelpAction, argparse._SubParsersAction)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return how a command is used, in a form that is the same in each version of Python."""
    if parser.usage:
        return parser.usage
    words = [parser.prog]
    has_options = False
    for each in parser._actions:
        if isinstance(each, argparse._HelpAction):
            continue
        if each.option_strings and each.required:
            words.append(f"{each.option_strings[0]} {each.metavar}")
        elif each.option_strings:
            has_options = True
    words += ["[options]"] if has_options else []
    form = {argparse.OPTIONAL: "[{}]", argparse.ZERO_OR_MORE: "[{} ...]"}
    words += [
        form.get(str(each.nargs), "{}").format(_value(each)) for each in parser._actions if not each.option_strings
    ]
    return " ".join(words)


def _value(action: argparse.Action) -> str:
    """Return what stands for the value of an argument."""
    if action.metavar is None and action.choices:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _names(action: argparse.Action) -> str:
    names = action.option_strings or [_value(action)]
    value = f" {_value(action)}" if action.option_strings and action.nargs != 0 else ""
    return ", ".join(f"`{name}{value}`".replace("|", "\\|") for name in names)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = "print the version" if isinstance(action, argparse._VersionAction) else action.help or ""
    return (text % {**vars(action), "prog": parser.prog}).replace("|", "\\|")


def _epilog(block: str) -> str:
    """Return a paragraph of an epilog: a list of examples as code, other text as it is."""
    first, _, rest = block.partition("\n")
    title = f"{first[:1].upper()}{first[1:]}"
    if rest.startswith("  "):
        code = re.sub("^  ", "", rest, flags=re.MULTILINE)
        return f"{title}\n\n```\n{code}\n```"
    return f"{title}\n{rest}" if rest else title


def main() -> int:
    """Write the pages or, with `--check`, name those that are out of date; return the exit code."""
    render = lambda: {DOCS / "reference.md": Reference().text(), DOCS / "commands.md": commands()}  # noqa: E731
    return discovery.run("tools.reference", __doc__, render)


if __name__ == "__main__":
    raise SystemExit(main())
