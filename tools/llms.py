"""Write llms.txt, the index that coding assistants read, from that of the docs: `python -m tools.llms`."""

import re

from tools.setup import CHECKOUT

FILE = CHECKOUT / "llms.txt"
_INDEX = CHECKOUT / "docs" / "README.md"
_BEGINNING = """\
# vertex-training

> Vertex AI custom training as code: a Pulumi (Python) module that declares training images, CustomJobs,
> HyperparameterTuningJobs, TrainingPipelines and schedules in the API's own fields, reviews every change in
> `pulumi preview`, and runs the same declarations on this machine, in Docker, against an emulator of the training API.

Declarations are YAML files below `training/`, stacks are files below `stacks/`. `pulumi preview --stack local` checks
all of it without a cloud account.

## For assistants

- [Skill](skills/vertex-training/SKILL.md): write declarations that preview without a problem
"""


def text() -> str:
    """Return llms.txt: the sections and pages of docs/README.md, each page once, with paths of the checkout."""
    written, seen = _BEGINNING, set()
    for section in re.split(r"^## ", _INDEX.read_text(), flags=re.MULTILINE)[1:]:
        rows = []
        for title, path, purpose in re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \| (.*) \|$", section, re.MULTILINE):
            if path not in seen:
                seen.add(path)
                rows.append(
                    f"- [{title}]({path.removeprefix('../') if '../' in path else f'docs/{path}'}): {purpose}\n"
                )
        if rows:
            written += f"\n## {section.partition(chr(10))[0]}\n\n{''.join(rows)}"
    return written


if __name__ == "__main__":
    FILE.write_text(text())
