"""The pages of docs/ on a terminal: messages name them, and a project that uses this package has no folder of them."""

import re
import sys
from pathlib import Path

from vertex_api.names import did_you_mean

_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "pages", _HERE.parent / "docs")
"""Those of an installed package, and of a checkout."""
_HEADING = re.compile(r"(#+) (.*)\n?$")


def show(asked: str | None) -> int:
    """Print a page, or a section of one (`PAGE#SECTION`); without a name, print what there is. Return the exit code."""
    pages = {file.stem: file for folder in _FOLDERS for file in sorted(folder.glob("*.md")) if file.stem != "README"}
    if asked is None:
        width = max(map(len, pages))
        for name, file in pages.items():
            title = file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
            print(f"{name:<{width}}  {title}")  # noqa: T201
        return 0
    name, _, section = asked.removeprefix("docs/").partition("#")
    name = name.removesuffix(".md")
    if name not in pages:
        sys.stderr.write(f"vertex-training: docs has no page {name}{did_you_mean(name, pages)}\n")
        return 2
    text = pages[name].read_text("utf-8")
    if section:
        sections = _sections(text)
        if section not in sections:
            sys.stderr.write(f"vertex-training: {name} has no section {section}{did_you_mean(section, sections)}\n")
            return 2
        text = sections[section]
    print(text, end="")  # noqa: T201
    return 0


def _sections(text: str) -> dict[str, str]:
    """Return the sections of a page by their anchors, as GitHub makes them, each with those below it."""
    found: dict[str, str] = {}
    open_sections: list[tuple[int, str]] = []
    is_code = False
    for line in text.splitlines(keepends=True):
        is_code ^= line.startswith("```")
        if not is_code and (heading := _HEADING.match(line)):
            level = len(heading[1])
            anchor = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
            open_sections = [*(each for each in open_sections if each[0] < level), (level, anchor)]
            found.setdefault(anchor, "")
        for _, anchor in open_sections:
            found[anchor] += line
    return found
