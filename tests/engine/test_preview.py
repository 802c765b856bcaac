"""A preview reads files and does nothing else."""

import json
from pathlib import Path
from typing import Any

from tests.engine.project import Project

WITNESS = Path(__file__).parent / "witness"


def record_processes(project: Project, reports: Path) -> list[dict[str, Any]]:
    """Run a preview without Docker, and return what each Python process reports."""
    reports.mkdir()
    project.environment |= {"PYTHONPATH": str(WITNESS), "WITNESS": str(reports), "DOCKER_HOST": "unix:///nonexistent"}
    project.pulumi("preview", "--stack", "local")
    return [json.loads(file.read_text()) for file in reports.iterdir()]


def test_the_program_awaits_each_registration_once(project: Project, tmp_path: Path) -> None:
    (program,) = [report for report in record_processes(project, tmp_path / "reports") if report["argv"] == ["."]]
    assert program["waited_for"] == 0


def test_a_preview_uses_neither_docker_nor_network(project: Project, tmp_path: Path) -> None:
    seen = record_processes(project, tmp_path / "reports")
    program = [report for report in seen if report["argv"] == ["."]]
    provider = [report for report in seen if report["argv"][0].endswith("pulumi/dynamic/__main__.py")]
    assert len(program) == len(provider) == 1
    engine = provider[0]["argv"][1].rpartition(":")
    assert program[0]["connected"] == []
    assert set(provider[0]["connected"]) <= {str((engine[0], int(engine[2])))}
    for report in program + provider:
        heavy = [name for name in report["modules"] if name.split(".")[0] in ("docker", "requests", "vertex_emulator")]
        assert heavy + [name for name in report["modules"] if name.startswith("google.cloud.")] == []
    assert not project.data.exists()


def test_the_first_preview_has_no_avoidable_unknowns(project: Project) -> None:
    preview = project.pulumi("preview", "--stack", "local", "--diff")
    spec = preview[preview.index("CustomJob: (create)") : preview.index("Completion: (create)")]
    assert "[unknown]" not in spec
    assert 'outputUriPrefix: "gs://vertex-training-local/train/' in spec
    assert 'imageUri: "localhost/vertex-training/trainer:' in spec


def test_a_stack_may_have_no_jobs(project: Project) -> None:
    project.declarations = {"images": {"trainer": {"uri": "registry.test/team/trainer:1"}}}
    project.declare()
    project.pulumi("preview", "--stack", "local")
    project.up()
    assert project.outputs() == {
        "images": {"trainer": "registry.test/team/trainer:1"},
        "pinnedImages": {"trainer": "registry.test/team/trainer:1"},
        "jobs": {},
        "results": {},
    }


def test_debug_messages_are_sent_only_on_request(project: Project, tmp_path: Path) -> None:
    """An event log has every message that the engine gets, printed or not."""
    project.environment["PULUMI_DEBUG_COMMANDS"] = "true"
    for option in ("--non-interactive", "--debug", "-d"):
        events = tmp_path / f"events{option}.jsonl"
        output = project.pulumi("preview", "--stack", "local", "--event-log", str(events), option)
        messages = [text for text in (output, events.read_text()) if "resource registration prepared" in text]
        assert len(messages) == (0 if option == "--non-interactive" else 2)
