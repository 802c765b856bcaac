"""Explanations of libyaml's parse errors: what is wrong in the text, and how to fix it."""

import re

import yaml

_QUOTED = "write it in quotes"
_EXPLANATIONS = {
    "but found another document": "a second document begins here; write one document a file",
    "mapping values are not allowed": 'a ":" stands where no key ends; write a text with ": " in quotes, and indent '
    "keys alike",
    "block sequence entries are not allowed": f'a "-" cannot stand here: if it belongs to a text, {_QUOTED}; '
    "if it begins an entry, put it on a line of its own",
    "found unknown escape character": 'a "\\" in double quotes begins an escape; write the text in single quotes',
    "found undefined alias": f'a "*" begins the name of an anchor, and there is none of this name; if it is a text, '
    f"{_QUOTED}",
    "did not find expected alphabetic or numeric": f'a "*" or "&" begins the name of an anchor; if it is a text, '
    f"{_QUOTED}",
    "found unexpected end of stream": "the text in quotes that begins in line {line} has no end",
    "did not find expected ',' or": "the bracket that opens in line {line} is not closed, or a comma is missing here",
    "did not find expected node content": "a value is missing here, or a bracket is not closed",
    "did not find expected key": "is not indented as the keys from line {line} on are",
    "did not find expected '-' indicator": "is indented as the list from line {line} on is, and is no entry of it",
    "could not find expected ':'": 'the key that begins in line {line} has no ":" behind it',
}
_UNOPENED = ("did not find expected key", "did not find expected node content")
_REFERENCE = re.compile(r"\$\{[^}]*\}[^\s,\]}]*")
_BEGINNING = re.compile(r"[^\s,\[{]*$")


def explain_parse_error(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return a whole sentence that says why a text is not valid YAML and how to fix it, for a parser's error."""
    problem, mark = error.problem or "is not valid YAML", error.problem_mark
    line = (text.split("\n")[mark.line : mark.line + 1] if mark else []) or [""]
    before, after = (line[0][: mark.column], line[0][mark.column :]) if mark else ("", "")
    if after.startswith("\t") or "tab character" in problem:
        return "a tab stands here; indent with spaces"
    if problem.startswith("found character that cannot start"):
        return f'"{after[:1]}" cannot begin a value; write the text in quotes'
    if after.startswith("{") and before.endswith("$"):
        reference = _REFERENCE.match("$" + after)
        whole = _BEGINNING.findall(before[:-1])[0] + (reference.group() if reference else "${…}")
        return f'in brackets a reference needs quotes; write "{whole}"'
    if after[:1] in ("}", "]") and problem in _UNOPENED:
        return f'the "{after[0]}" closes no bracket'
    start = error.context_mark.line + 1 if error.context_mark else 1
    for prefix, explanation in _EXPLANATIONS.items():
        if problem.startswith(prefix):
            return explanation.format(line=start)
    return f"{error.context}, {problem}" if error.context else problem
