"""The specs of the folder `accepted`, each taken the way that its user would take it.

The folder says the way. `gcloud`: a file for `--config`, named by `spec: {file: …}`. `rest` and `sdk`: a body or a
dict, pasted into a declaration. `pipelines`: the same for training pipelines. `legacy`: a job of AI Platform Training,
through `vertex-training convert-legacy`. A file's first comment says what it stands for. `# refused: FIELD: WORDS` says
that it is to be refused there, in words that begin so; a file without such a line is to preview clean.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from vertex_training.cli import convert_legacy
from vertex_training.settings.settings import Settings

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

FOLDER = Path(__file__).parent / "accepted"
_REFUSED = "# refused: "
CLOUD: dict[str, Any] = {
    "vertex-training:target": "gcp",
    "vertex-training:project": "acme-dev",
    "vertex-training:projectNumber": "123456789012",
    "vertex-training:region": "us-central1",
    "vertex-training:include": ["training"],
}


@dataclass(frozen=True)
class Spec:
    """One file: `shape` is what it stands for, `refused` the beginnings of the problems that it is to have."""

    file: Path
    shape: str
    refused: tuple[str, ...]

    @property
    def way(self) -> str:
        """The folder, which says how a user takes it."""
        return self.file.parent.name

    @property
    def name(self) -> str:
        return f"{self.way}-{self.file.stem}"

    def declare(self, root: Path) -> list[str]:
        """Puts the spec into a project at `root`, as its user would; what a converter refuses there."""
        (root / "training").mkdir(exist_ok=True)
        text, place = self.file.read_text(), root / "training" / f"{self.name}.yaml"
        if self.way == "gcloud":
            (root / "config").mkdir(exist_ok=True)
            (root / "config" / place.name).write_text(text)
            tunes = yaml.safe_load(text).keys() & {"studySpec", "study_spec"}
            kind = HYPERPARAMETER_TUNING_JOB if tunes else CUSTOM_JOB
            text = yaml.safe_dump({kind.collection: {self.name: {"spec": {"file": f"config/{place.name}"}}}})
        elif self.way == "legacy":
            text, said = converted(self.file)
            if said:
                return said
        place.write_text(text)
        return []


def specs() -> Iterator[Spec]:
    """Every spec, by the names of folders and files."""
    for file in sorted(FOLDER.glob("*/*.yaml")):
        comments = [line for line in file.read_text().splitlines() if line.startswith("# ")]
        refused = tuple(line.removeprefix(_REFUSED) for line in comments if line.startswith(_REFUSED))
        yield Spec(file, comments[0].removeprefix("# "), refused)


def converted(file: Path) -> tuple[str, list[str]]:
    """What `vertex-training convert-legacy` prints of a file, and the lines in which it says why it does not."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = convert_legacy(file)
    assert (code == 0) == (not err.getvalue())
    said = [line.removeprefix(f"{file}:") for line in err.getvalue().splitlines()]
    return out.getvalue(), [re.sub(r"^[0-9]*:? ", "", line) for line in said]


def settings(root: Path, stack: Mapping[str, Any] = CLOUD) -> Settings:
    """What a preview reads of the project at `root`: the stack `dev`."""
    (root / "stacks").mkdir(exist_ok=True)
    (root / "stacks" / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": dict(stack)}))
    # As the engine hands it over: texts as they are, everything else as JSON.
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in stack.items()}
    return Settings.load_from_config("team", "dev", root, config)
