"""Writes the table of docs/refusals.md: each rule of the service that refuses or warns, from the code, with its source.

    python -m tools.rules [--check]

A rule is a function that yields a path with a message. Its docstring says where the rule comes from.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools import discovery
from tools.setup import CHECKOUT

REFUSING = ("validation/formats", "validation/pools", "validation/study", "validation/model", "mistakes")
"""The modules of `vertex_api` with what is refused."""
WARNING = ("advice",)
"""Those with what is only warned of."""
PAGE = "docs/refusals.md"
_FIXED = "\0"
"""Ends the messages of rules that a job cannot lift."""
_BEGIN, _END = "<!-- rules -->\n", "<!-- end of rules -->\n"


@dataclass(frozen=True)
class Rule:
    """The rules of one function: its `name` with its module, the `messages` that it yields, and their `source`."""

    name: str
    messages: tuple[str, ...]
    source: str
    is_refusal: bool


def rules() -> Iterator[Rule]:
    """Yield all rules, in the order of the code."""
    for module in (*REFUSING, *WARNING):
        tree = ast.parse((CHECKOUT / "vertex_api" / f"{module}.py").read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and (messages := tuple(dict.fromkeys(_messages(function, tree)))):
                source = " ".join((ast.get_docstring(function) or "").split())
                yield Rule(f"{module}.{function.name}", messages, source, module in REFUSING)


def _messages(function: ast.FunctionDef, module: ast.Module) -> Iterator[str]:
    """Yield the messages of a function, with … for what differs."""
    texts = {
        target.id: node.value
        for node in (*module.body, *ast.walk(function))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            yield _text(node.value.elts[1], texts)


def _text(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Structure":
        return f"{_text(node.args[0], texts)}{_FIXED}"
    if isinstance(node, ast.Name) and node.id in texts:
        node = texts[node.id]
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        return "".join(map(str, parts))
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts) + _text(node.right, texts)
    return "…"


def table() -> str:
    """Return the table of all rules."""
    lines = ["| What is said | Verdict | Source |", "| --- | --- | --- |"]
    for rule in rules():
        said = "<br>".join(map(_said, rule.messages))
        source = rule.source.replace("|", "\\|")
        lines.append(f"| {said} | {'refused' if rule.is_refusal else 'warned of'} | {source} |")
    return "\n".join(lines) + "\n"


def _said(message: str) -> str:
    text = re.sub("…+", "…", message.removesuffix(_FIXED))
    shown = "a text of another form" if text == "…" else f"`{text}`"
    return f"{shown} (not lifted)" if message.endswith(_FIXED) else shown


def text() -> str:
    """Return the page with the table as it should be."""
    page = (CHECKOUT / PAGE).read_text()
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"


def main() -> int:
    """Write the page or, with `--check`, say whether it is out of date; return the exit code."""
    return discovery.run("tools.rules", __doc__, lambda: {CHECKOUT / PAGE: text()})


if __name__ == "__main__":
    raise SystemExit(main())
