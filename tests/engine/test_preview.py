"""A preview reads files and does nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.project import Project, create_project

WITNESS = Path(__file__).parent / "witness"


class FirstPreview(NamedTuple):
    """What the first preview of a project prints, and what each of its Python processes reports."""

    project: Project
    output: str
    events: str
    program: dict[str, Any]
    provider: dict[str, Any]


@pytest.fixture(scope="class")
def preview(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstPreview]:
    """A preview without Docker."""
    folder = tmp_path_factory.mktemp("preview")
    (reports := folder / "reports").mkdir()
    with create_project(folder) as project:
        witnessed = {"PYTHONPATH": str(WITNESS), "WITNESS": str(reports), "DOCKER_HOST": "unix:///nonexistent"}
        project.environment |= {**witnessed, "PULUMI_DEBUG_COMMANDS": "true"}
        output, events = _preview_with_events(project, "--diff")
        seen = [json.loads(file.read_text()) for file in reports.iterdir()]
        (program,) = [report for report in seen if report["argv"] == ["."]]
        (provider,) = [report for report in seen if report["argv"][0].endswith("pulumi/dynamic/__main__.py")]
        yield FirstPreview(project, output, events, program, provider)


class TestFirstPreview:
    """The first preview of a project."""

    def test_the_program_awaits_each_registration_once(self, preview: FirstPreview) -> None:
        assert preview.program["waited_for"] == 0

    def test_a_preview_uses_neither_docker_nor_network(self, preview: FirstPreview) -> None:
        engine = preview.provider["argv"][1].rpartition(":")
        assert preview.program["connected"] == []
        assert set(preview.provider["connected"]) <= {str((engine[0], int(engine[2])))}
        for report in (preview.program, preview.provider):
            heavy = [
                name for name in report["modules"] if name.split(".")[0] in ("docker", "requests", "vertex_emulator")
            ]
            assert heavy + [name for name in report["modules"] if name.startswith("google.cloud.")] == []
        assert not preview.project.data.exists()

    def test_the_first_preview_has_no_avoidable_unknowns(self, preview: FirstPreview) -> None:
        spec = preview.output[
            preview.output.index("CustomJob: (create)") : preview.output.index("Completion: (create)")
        ]
        assert "[unknown]" not in spec
        assert 'outputUriPrefix: "gs://vertex-training-local/train/' in spec
        assert 'imageUri: "localhost/vertex-training/trainer:' in spec

    def test_debug_messages_are_sent_only_on_request(self, preview: FirstPreview) -> None:
        message = "resource registration prepared"
        assert message not in preview.output + preview.events
        assert all(message in text for text in _preview_with_events(preview.project, "--debug"))


def test_a_stack_may_have_no_jobs(project: Project) -> None:
    project.declarations = {"images": {"trainer": {"uri": "registry.test/team/trainer:1"}}}
    project.declare()
    project.pulumi("up", "--yes", "--stack", "local")  # with its preview
    assert project.outputs() == {
        "images": {"trainer": "registry.test/team/trainer:1"},
        "pinnedImages": {"trainer": "registry.test/team/trainer:1"},
        "jobs": {},
        "results": {},
    }


def _preview_with_events(project: Project, option: str) -> tuple[str, str]:
    """Return what a preview prints, and its event log: that has every message that the engine gets, printed or not."""
    events = project.root.parent / "events.jsonl"
    output = project.pulumi("preview", "--stack", "local", "--event-log", str(events), option)
    return output, events.read_text()
