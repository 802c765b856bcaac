"""Each block of code on a page is run, compared, validated or parsed, and what does not run says why."""

import ast
import contextlib
import importlib.util
import io
import re
import subprocess
import tempfile
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from vertex_training import cli
from vertex_training.schema import shapes

from tests.blocks import PAGES, ROOT, Block, blocks, calls, is_taken
from vertex_api.validation.shape import canonicalize
from vertex_emulator.cli import options

BLOCKS = [block for page in PAGES for block in blocks(page)]
NOT_RUN = {
    "asks Google Cloud, or installs from the network": r"pip install|pulumi (install|new)|prices --update"
    r"|gcloud (auth|services|projects|artifacts)|--region=REGION|gcp:|gcpkms:|--project[ =]acme|--stack[ =]dev"
    r"|gs://acme|--location=|gcloud ai .*--filter",
    "lasts for minutes: tests/engine and tests/components/rehearsal do the same": r"make (up|test|-s template)"
    r"|pulumi up|vertex-training (run|rehearse)",
    "is about a stack, a job or a file of the reader's": r"pulumi (config|stack|state|preview|import)"
    r"|vertex-training review|vertex-emulator (logs|shell|tensorboard|exec -- pytest)"
    r"|eval \"\$\(vertex-emulator env\)\"|tensorboard",
}
"""Why commands are parsed only: a reason, and the words by which a block has it."""


@cache
def takings() -> list[tuple[str, tuple[str, ...]]]:
    """Where tests call `taken`, and the arguments of each call."""
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if re.search(r"^from tests\.blocks import .*\btaken\b", text := file.read_text(), re.MULTILINE):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "taken":
                    name = f"{file.relative_to(ROOT)}:{node.lineno}"
                    is_read = all(isinstance(each, ast.Constant) for each in node.args)
                    assert is_read, f"{name}: give `taken` its arguments as literals"
                    found.append((name, tuple(ast.literal_eval(each) for each in node.args)))
    return found


def check(block: Block) -> str:
    """How a block is checked; empty if it is not."""
    for test, arguments in takings():
        if is_taken(block, *arguments):
            return f"run, or compared, by {test}"
    if block.language == "yaml":
        return "validated"
    if block.commands and not block.printed:
        return next((f"parsed: {reason}" for reason, words in NOT_RUN.items() if re.search(words, block.commands)), "")
    return ""


def test_no_block_is_missed() -> None:
    """All fences of the pages are those of blocks, also in lists and quotes."""
    for page in PAGES:
        fences = re.findall(r"^[ >]*(?:```|~~~)", (ROOT / page).read_text(), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page
    assert len(BLOCKS) > 150


def test_every_block_is_checked() -> None:
    unchecked = [str(block) for block in BLOCKS if not check(block)]
    assert unchecked == [], (
        "nothing checks these blocks: take each in a test, with tests.blocks.taken, that runs it or compares it with "
        "what is printed; commands that no test can run need a reason in NOT_RUN"
    )


def test_every_reason_is_needed() -> None:
    given = {check(block) for block in BLOCKS}
    assert [reason for reason in NOT_RUN if f"parsed: {reason}" not in given] == []


def test_stack_files_and_declarations_are_valid() -> None:
    wrong = {}
    for block in BLOCKS:
        if check(block) == "validated":
            shown = yaml.safe_load(block.text)
            shown = shown.get("config", shown)
            declared = {key: value for key, value in shown.items() if not key.startswith(("x-", "gcp:"))}
            keys = {key.removeprefix("vertex-training:"): value for key, value in declared.items()}
            if "vertex-training:secrets" in shown:
                keys["secrets"] = dict.fromkeys(keys["secrets"], "as the engine hands it over")
            _, problems = canonicalize(shapes.Stack, {"target": "gcp", **keys})
            wrong[str(block)] = [f"{each}" for each in problems]
    assert len(wrong) > 40
    assert {block: problems for block, problems in wrong.items() if problems} == {}


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Block, list[list[str]], str]]:
    return [*calls((each for each in BLOCKS if each.commands), tmp_path_factory.mktemp("shell"))]


def test_the_shell_reads_every_command(called: list[tuple[Block, list[list[str]], str]]) -> None:
    """An unknown program is an error here too."""
    assert {str(block): error for block, _, error in called if error} == {}
    assert [str(block) for block, started, _ in called if not started] == []


def test_every_command_takes_its_options(called: list[tuple[Block, list[list[str]], str]]) -> None:
    started = [(block, command) for block, commands, _ in called for command in commands]
    refused = {f"{block.page}:{block.line}: {' '.join(command)}": refusal(*command) for block, command in started}
    assert {command: said for command, said in refused.items() if said} == {}


@cache
def refusal(program: str, *arguments: str) -> str:
    """What is wrong with a command line; empty if nothing is. tests/clients/test_remedies.py has those of gcloud."""
    match program:
        case "vertex-training":
            return parsed(cli.build().parse_args, arguments)
        case "vertex-emulator":
            return parsed(options.build().parse_args, arguments)
        case "make":
            done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
            return done.stderr if done.returncode else ""
        case "python" | "python3" if arguments[0] == "-m":
            return "" if importlib.util.find_spec(arguments[1]) else f"there is no module {arguments[1]}"
        case "python" | "python3" if arguments[0] == "-c":
            compile(arguments[1], "-c", "exec")
        case "pip":
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            named = {name for each in arguments for name in re.findall(r"^vertex-training\[(\w+)\]", each)}
            return f"no extra of the package: {named - extras.keys()}" if named - extras.keys() else ""
        case "pulumi" | "docker":
            return unknown_option(program, arguments)
    return ""


def parsed(parse: object, arguments: tuple[str, ...]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        parse([*arguments])  # type: ignore[operator]
    return said.getvalue()


@cache
def usage(*command: str) -> str:
    """What a program of the Cobra kind prints with --help; for an unknown sub-command, that of what is above it."""
    if command[0] == "pulumi":
        name = "_".join(command)
        return pulumi_pages()[name] if name in pulumi_pages() else usage(*command[:-1])
    return subprocess.run([*command, "--help"], capture_output=True, text=True).stdout


@cache
def pulumi_pages() -> dict[str, str]:
    """What matters of `--help` of each of its commands, by words joined with `_`: written by one process for all."""
    pages: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["pulumi", "gen-markdown", folder], check=True, capture_output=True)
        for file in Path(folder).iterdir():
            head, _, options = file.read_text().partition("\n## Options\n")
            has_more = any(Path(folder).glob(f"{file.stem}_*.md"))
            for name in {file.stem, *re.findall(r"^  - /docs/.*/([\w-]+)/$", head, re.MULTILINE)}:
                pages[name] = f"{name}\n{'Available Commands:' if has_more else ''}\n{options}"
    return pages


def unknown_option(program: str, arguments: tuple[str, ...]) -> str:
    """What `--help` of a sub-command does not list of its arguments: a sub-command or an option."""
    command, rest = [program], [*arguments]
    while re.search(r"^[\w ]*Commands:$", usage(*command), re.MULTILINE) and rest and not rest[0].startswith("-"):
        if usage(*command, rest[0]) in ("", usage(*command)):
            return f"{' '.join(command)} has no command {rest[0]}"
        command.append(rest.pop(0))
    found = re.findall(r"^ +(?:(-\w), )?(--[\w-]+)(?: (\w\S*))?(?: {2,}|\[|$)", usage(*command), re.MULTILINE)
    # What may stand without its value is `--refresh string[="true"]`.
    takes_value = {name: bool(value) and "[=" not in value for *names, value in found for name in names if name}
    while rest:
        option, equals, _ = rest.pop(0).partition("=")
        if option == "--" or (not option.startswith("-") and command[1:] in (["run"], ["exec"])):
            break  # what follows is the container's
        if option.startswith("-"):
            if option not in takes_value:
                return f"{' '.join(command)} has no option {option}"
            if takes_value[option] and not equals:
                del rest[:1]
    return ""
