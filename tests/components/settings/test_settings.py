"""Settings: a stack's config, parsed once."""

from pathlib import Path

import pytest
from vertex_training.plan.plan import Plan
from vertex_training.settings.settings import Settings

from tests.components.projects import LOCAL, load, problems

ROOT = Path(__file__).parents[3]
STACK = "stacks/Pulumi.dev.yaml"


def test_a_stack_requires_only_its_target(tmp_path: Path) -> None:
    assert load(tmp_path, LOCAL) == Settings(
        pulumi_project="team",
        stack="dev",
        root=tmp_path,
        project="local",
        region="us-central1",
        emulator={},
        cloud=None,
        images={},
        packages={},
        secrets={},
        plan=Plan({"target": "local"}, pools=[]),
    )


def test_what_a_stack_says_is_in_its_settings(tmp_path: Path) -> None:
    stack = f"""{LOCAL}\
  vertex-training:project: my-project
  vertex-training:region: europe-west4
  vertex-training:emulator: {{port: 8080, egress: false}}
  vertex-training:secrets: {{hfToken: hidden}}
"""
    settings = load(tmp_path, stack)
    assert (settings.project, settings.region) == ("my-project", "europe-west4")
    assert settings.emulator == {"port": 8080, "egress": False}
    assert settings.secrets == {"hfToken": "hidden"}


def test_config_of_other_namespaces_is_ignored(tmp_path: Path) -> None:
    settings = load(tmp_path, f"{LOCAL}  gcp:project: other\n  team:regon: x\n")
    assert (settings.project, settings.region) == ("local", "us-central1")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("regon: x", ":3: vertex-training:regon: unknown field; did you mean region?"),
        ("custom_jobs: {}", ":3: vertex-training:custom_jobs: unknown field; did you mean customJobs?"),
        ("include: training", ":3: vertex-training:include: must be a list"),
        ("include: [1]", ':3: vertex-training:include[0]: 1 is not a string; write "1" in quotes'),
        ("vars: [a]", ":3: vertex-training:vars: must be an object with named fields"),
        ("emulator: 8080", ":3: vertex-training:emulator: must be an object with named fields"),
        ("emulator: {prt: 1}", ":3: vertex-training:emulator.prt: unknown field; did you mean port?"),
        ("emulator: {pidsLimit: 0}", ":3: vertex-training:emulator.pidsLimit: 0 is not above zero"),
        ("emulator: {port: http}", ':3: vertex-training:emulator.port: "http" is not a whole number'),
    ],
)
def test_a_stack_problem_names_line_key_and_remedy(tmp_path: Path, line: str, problem: str) -> None:
    assert problems(tmp_path, f"{LOCAL}  vertex-training:{line}\n") == [STACK + problem]


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_refused(tmp_path: Path, port: int) -> None:
    (problem,) = problems(tmp_path, f"{LOCAL}  vertex-training:emulator: {{port: {port}}}\n")
    assert problem.startswith(f"{STACK}:3: vertex-training:emulator.port: {port} ")


def test_a_missing_or_unknown_target_is_rejected(tmp_path: Path) -> None:
    assert problems(tmp_path, "config:\n  vertex-training:region: r\n") == [
        f"{STACK}:1: vertex-training:target: is required"
    ]
    (problem,) = problems(tmp_path, LOCAL.replace("local", "lokal"))
    assert problem.startswith(f'{STACK}:2: vertex-training:target: "lokal" is not one of ')
    assert "local" in problem


def test_problems_of_a_stack_are_ordered_by_line(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:vars: 3\n  vertex-training:emulator: 4\n  vertex-training:a: 5\n"
    found = problems(tmp_path, stack)
    assert [line.split(":")[1] for line in found] == ["3", "4", "5"]


@pytest.mark.parametrize("text", ["{unfinished", "[eu]west"])
def test_broken_json_text_names_its_key(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, f"{LOCAL}  vertex-training:vars: '{text}'\n")
    assert problem.startswith(f"{STACK}:3: vertex-training:vars: ")


def test_a_problem_does_not_show_the_secret(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"{LOCAL}  vertex-training:secrets: {{pin: {{a: '4711'}}}}\n")
    assert problem.startswith(f"{STACK}:3: vertex-training:secrets.pin: ")
    assert "4711" not in problem


def test_problems_without_a_stack_file_have_no_line(tmp_path: Path) -> None:
    from vertex_training.errors import DeclarationErrors

    with pytest.raises(DeclarationErrors) as failure:
        Settings.load_from_config(
            "team", "dev", tmp_path, {"vertex-training:target": "local", "vertex-training:regon": "x"}
        )
    assert [str(problem) for problem in failure.value.problems] == [
        f"{STACK}: vertex-training:regon: unknown field; did you mean region?"
    ]


def test_the_errors_need_no_traceback_in_pulumi() -> None:
    import pulumi
    from vertex_training.errors import DeclarationErrors

    assert issubclass(DeclarationErrors, pulumi.RunError)


def test_the_project_s_example_is_valid() -> None:
    config = {"vertex-training:target": "local", "vertex-training:include": '["training"]'}
    settings = Settings.load_from_config("vertex-training", "local", ROOT, config)
    assert {"digits", "digits-search"} <= {job.name for job in settings.jobs}
    assert all(image.keys() & {"context", "package"} for image in settings.images.values())


def test_problems_of_all_keys_are_reported_together(tmp_path: Path) -> None:
    stack = """config:
  vertex-training:target: gcp
  vertex-training:project: acme-dev
  vertex-training:region: us-central1
  vertex-training:bucket: {location: US}
  vertex-training:prices: {asOf: yesterday, source: contract, vcpu: {N5: {us-central1: -1}}, disk: {pd-ssd: 0.2}}
"""
    assert [line.split(": ")[1].removeprefix("vertex-training:") for line in problems(tmp_path, stack)] == [
        "projectNumber",
        "bucket.location",
        "prices.disk.pd-ssd",
        "prices.asOf",
        "prices.vcpu.N5",
        "prices.vcpu.N5.us-central1",
    ]


@pytest.mark.parametrize("target", ["aws", "5"])
def test_an_invalid_target_is_the_only_problem(tmp_path: Path, target: str) -> None:
    stack = f"config:\n  vertex-training:target: {target}\n  vertex-training:labels: {{a: b}}\n"
    (problem,) = problems(tmp_path, stack)
    assert "vertex-training:target: " in problem
