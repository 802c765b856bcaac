"""One fault, one problem: its field, its rule, and nothing else."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import DeclarationErrors
from vertex_training.images.declaration import built_violations
from vertex_training.settings.settings import Settings

from tests.corpus.faults import Base, Case, bases, cases
from tests.corpus.reached import ROOT, reached, statements
from tests.corpus.specs import converted
from vertex_api.messages import KeyPath
from vertex_api.validation.formats import Violation

RULES = (
    "vertex_api/validation/formats.py",
    "vertex_api/mistakes.py",
    "vertex_api/validation/model.py",
    "vertex_api/validation/pools.py",
    "vertex_api/validation/shape.py",
    "vertex_api/validation/study.py",
    "vertex_api/scalars.py",
    "vertex_api/pipelines.py",
    "components/legacy/validation.py",
    "components/images/declaration.py",
    "components/images/autopackage.py",
    "components/jobs/references.py",
    "components/packages.py",
    "components/plan/guardrails.py",
    "components/plan/job_rules.py",
    "components/schema/formats.py",
    "components/settings/cloud.py",
    "components/settings/declarations.py",
    "components/settings/entries.py",
    "components/settings/settings.py",
)
"""Where faults are found, beside the types of messages, declarations and stack files."""
_LINK = "-> "
"""What the content of a symbolic link begins with in bases."""


@cache
def tried() -> tuple[Case, ...]:
    """All cases."""
    return tuple(cases())


def said(files: dict[str, Any], base: Base, root: Path) -> list[str]:
    """What is said of a project: `file: field: message`, without the lines."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith(_LINK):
            (root / name).symlink_to(content.removeprefix(_LINK))
            continue
        # JSON is YAML too, and written faster.
        (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    if base.is_legacy:
        text, problems = converted(root / base.file)
        assert bool(text) != bool(problems)
        return [f"{base.file}: {problem}" for problem in problems]
    stack = files["stacks/Pulumi.dev.yaml"]["config"]
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in stack.items()}
    try:
        Settings.load_from_config("team", "dev", root, config, secret_keys=())
    except DeclarationErrors as errors:
        return [f"{each.place.partition(':')[0]}: {each.path}: {each.message}" for each in errors.problems]
    return []


@pytest.mark.parametrize("base", bases().values(), ids=lambda base: base.name)
def test_a_base_has_no_fault(base: Base, tmp_path: Path) -> None:
    assert said(base.files, base, tmp_path) == []


class Verdicts:
    """What is said of each case, which is asked once, and the statements of RULES that none has reached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unreached = {place for name in RULES for file in ROOT.glob(name) for place in statements(file)}
        assert len(self.unreached) > 100
        self._said: dict[int, list[str]] = {}

    def said(self, case: Case) -> list[str]:
        number = id(case)  # of one in tried(); two may have the same name
        if number not in self._said:
            folder = self.folder / str(number)
            folder.mkdir()
            with reached(self.unreached):
                self._said[number] = said(case.files(), case.base, folder)
        return self._said[number]

    def built(self, image: Any) -> list[Violation]:
        """What is said of an image that a program makes, which no file declares."""
        with reached(self.unreached):
            return [*built_violations(self.folder, image)]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return Verdicts(tmp_path_factory.mktemp("cases"))


def test_a_single_fault_is_named_and_nothing_else(verdicts: Verdicts) -> None:
    wrong = {}
    for case in tried():
        found = verdicts.said(case)
        _, field, message = found[0].split(": ", 2) if len(found) == 1 else ("", "", "")
        if (field, case.words in message) != (case.field, True):
            wrong[case.name] = found
    assert wrong == {}


def test_there_are_enough_of_them() -> None:
    assert len(tried()) >= 200


@pytest.mark.parametrize(("image", "at"), [({"uri": "i:1"}, ("uri",)), ({"context": "gone"}, ("context",))])
def test_an_image_of_a_program_is_built_here(image: Any, at: KeyPath, verdicts: Verdicts) -> None:
    ((path, _),) = verdicts.built(image)
    assert path == at


def test_every_rule_has_a_case(verdicts: Verdicts) -> None:
    for case in tried():
        verdicts.said(case)
    for image in ({"uri": "i:1"}, {"context": "gone"}):
        verdicts.built(image)
    missing = [f"{Path(file).name}:{line}" for file, line in sorted(verdicts.unreached)]
    assert not missing, missing
