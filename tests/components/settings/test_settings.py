"""Settings: a stack's config, parsed once, with at most a hundred problems, and nothing read from elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest
from vertex_training.errors import ContextUnusable, DeclarationErrors
from vertex_training.images.image import build_context
from vertex_training.packages import SourceDistribution
from vertex_training.plan.plan import Plan
from vertex_training.settings.settings import Settings

from tests.components.projects import INCLUDING, LOCAL, load, problems
from vertex_api.errors import MAX_PROBLEMS, MORE_PROBLEMS

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
        data={},
        vars={},
        secrets={},
        plan=Plan({"target": "local"}, pools=[]),
    )


def test_what_a_stack_says_is_in_its_settings(tmp_path: Path) -> None:
    stack = f"""{LOCAL}\
  vertex-training:project: my-project
  vertex-training:region: europe-west4
  vertex-training:emulator: {{port: 8080, egress: false, endpoints: {{bigquery.googleapis.com: http://h:1}}}}
  vertex-training:secrets: {{hfToken: hidden}}
"""
    settings = load(tmp_path, stack)
    assert (settings.project, settings.region) == ("my-project", "europe-west4")
    endpoints = {"bigquery.googleapis.com": "http://h:1"}
    assert settings.emulator == {"port": 8080, "egress": False, "endpoints": endpoints}
    assert settings.secrets == {"hfToken": "hidden"}


def test_config_of_other_namespaces_is_ignored(tmp_path: Path) -> None:
    settings = load(tmp_path, f"{LOCAL}  gcp:projekt: other\n  team:regon: x\n")
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
        (
            "emulator: {endpoints: {bigquery.googleapis.com: localhost}}",
            ':3: vertex-training:emulator.endpoints.bigquery.googleapis.com: "localhost" is not an address, such as '
            "http://127.0.0.1:9050",
        ),
        (
            "emulator: {endpoints: {bigquery: http://127.0.0.1:9050}}",
            ':3: vertex-training:emulator.endpoints.bigquery: "bigquery" is no host of a service of Google Cloud, '
            "such as bigquery.googleapis.com",
        ),
        (
            "emulator: {endpoints: {us-east1-aiplatform.googleapis.com: http://127.0.0.1:9050}}",
            ":3: vertex-training:emulator.endpoints.us-east1-aiplatform.googleapis.com: is a service that the emulator "
            "has itself; leave it out",
        ),
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


COUNT = 4_000
JOB = """\
customJobs:
  {name}:
    jobSpec:
      workerPoolSpecs:
      - machineSpec: {{machineType: n1-standard-4}}
"""


def unknown_keys(number: int) -> str:
    return JOB.format(name=f"job{number}") + "".join(f"        key{i}: 1\n" for i in range(COUNT))


def bad_names(number: int) -> str:
    return "images:\n" + "".join(f"  BAD_{number}_{i}: {{uri: x}}\n" for i in range(COUNT))


def unknown_sections(number: int) -> str:
    return "".join(f"section{number}x{i}: {{}}\n" for i in range(COUNT))


def unknown_references(number: int) -> str:
    args = "\n".join(f"          - ${{vars.a{i}}}" for i in range(COUNT))
    return f"{JOB.format(name=f'job{number}')}        containerSpec:\n          imageUri: x\n          args:\n{args}\n"


def bad_labels(number: int) -> str:
    labels = "".join(f"      K{i}: V\n" for i in range(COUNT))
    return f"{JOB.format(name=f'job{number}')}        containerSpec: {{imageUri: x}}\n    labels:\n{labels}"


def forbidden_vars(number: int) -> str:
    return "vars:\n" + "".join(f"  v{number}x{i}: ${{vars.other}}\n" for i in range(COUNT))


@pytest.mark.parametrize(
    "write", [unknown_keys, bad_names, unknown_sections, unknown_references, bad_labels, forbidden_vars]
)
def test_a_preview_stops_at_a_hundred_problems(tmp_path: Path, write: Callable[[int], str]) -> None:
    for number in range(2):
        (tmp_path / f"{number}.yaml").write_text(write(number))
    config = {"vertex-training:target": "local", "vertex-training:include": '["0.yaml", "1.yaml"]'}
    with pytest.raises(DeclarationErrors) as caught:
        Settings.load_from_config("vertex-training", "dev", tmp_path, config)
    heading, *lines, last = str(caught.value).splitlines()
    assert heading == f"{MAX_PROBLEMS} problems in what is declared:"
    assert len(lines) == MAX_PROBLEMS == len(set(lines))
    assert last == f"  {MORE_PROBLEMS}"
    assert all(line.startswith("  0.yaml:") for line in lines)


def test_a_hundred_problems_of_several_files_are_all(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("".join(f"section{number}x{i}: {{}}\n" for i in range(25)))
    config = {"vertex-training:target": "local", "vertex-training:include": '["."]'}
    with pytest.raises(DeclarationErrors) as caught:
        Settings.load_from_config("vertex-training", "dev", tmp_path, config)
    assert len(str(caught.value).splitlines()) == 1 + MAX_PROBLEMS


CANARY = "canary-0f3b7c"
OUTSIDE = ": files outside of a project's git checkout are not read"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with files of somebody's home, whose lines hold the canary, and a link to that."""
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    for name in ("Dockerfile", "pyproject.toml", "train.py", ".config/credentials.yaml", ".netrc"):
        (home / name).write_text(f"FROM {CANARY}\nmachine [{CANARY}\n")
    checkout = home / "team"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "home").symlink_to("..")
    return checkout


DECLARED = {
    "a context above": "images: {digits: {context: ..}}",
    "a context by a link": "images: {digits: {context: home/.config}}",
    "a context that is a link": "images: {digits: {context: home}}",
    "a context at an absolute path": "images: {digits: {context: '{home}'}}",
    "a package above": "images: {digits: {package: {path: .., script: train.py, baseImage: b:1}}}",
    "a package by a link": "images: {digits: {package: {path: home, script: train.py, baseImage: b:1}}}",
    "a Python package above": "packages: {digits: {path: ../}}",
    "a Python package by a link": "packages: {digits: {path: home}}",
    "a script above": "packages: {digits: {script: ../train.py}}",
    "a script by a link": "packages: {digits: {script: home/train.py}}",
    "a Dockerfile by a linked folder": "images: {digits: {context: trainer, dockerfile: link/Dockerfile}}",
    "a Dockerfile that is a link": "images: {digits: {context: trainer, dockerfile: Dockerfile.link}}",
    "a spec above": "customJobs: {train: {spec: {file: ../.config/credentials.yaml}}}",
    "a spec by a link": "customJobs: {train: {spec: {file: home/.config/credentials.yaml}}}",
    "a secret that names a file": "images: {digits: {context: trainer, secrets: {'a,src=/x': '${secrets.a}'}}}",
    "a path that is too long": f"images: {{digits: {{context: {'x' * 5000}}}}}",
    "a path with NUL": 'images: {digits: {context: "a\\0b"}}',
    "a link to itself": "packages: {digits: {path: loop}}",
}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=list(DECLARED))
def test_declarations_lead_nowhere_else(checkout: Path, declared: str) -> None:
    trainer = checkout / "trainer"
    trainer.mkdir()
    (trainer / "Dockerfile").write_text("FROM scratch\n")
    (trainer / "link").symlink_to("../..")
    (trainer / "Dockerfile.link").symlink_to("../../Dockerfile")
    (checkout / "loop").symlink_to("loop")
    jobs = declared.replace("{home}", str(checkout.parent))
    (problem,) = problems(checkout, INCLUDING + "  vertex-training:secrets: {a: hidden}\n", jobs=jobs)
    assert problem.startswith("jobs.yaml:1: ") and CANARY not in problem and str(checkout.parent) not in problem[:40]


@pytest.mark.parametrize(
    "pattern",
    [
        "../.config/credentials.yaml",
        "../.config",
        "../**/*.yaml",
        "home/.config/*.yaml",
        "home/.config/credentials.yaml",
        "training/../../.config/*.yaml",
        "/etc",
        "/proc/self/environ",
        "*/../../.config/*.yaml",
    ],
)
def test_include_leads_nowhere_else(checkout: Path, pattern: str) -> None:
    (problem,) = problems(checkout, f'{LOCAL}  vertex-training:include: ["{pattern}"]\n')
    assert problem.startswith('stacks/Pulumi.dev.yaml:3: vertex-training:include[0]: "')
    assert CANARY not in problem


def test_a_wildcard_follows_no_link_outwards(checkout: Path) -> None:
    (checkout / "jobs.yaml").symlink_to("../.config/credentials.yaml")
    (problem,) = problems(checkout, f'{LOCAL}  vertex-training:include: ["*.yaml"]\n')
    assert problem.startswith('jobs.yaml: "jobs.yaml" leads out of team/; ') and problem.endswith(OUTSIDE[1:])


def test_a_nested_project_reaches_its_whole_checkout(checkout: Path) -> None:
    (checkout / "trainer").mkdir()
    (checkout / "trainer" / "Dockerfile").write_text("FROM scratch\n")
    settings = load(checkout / "infrastructure", INCLUDING, jobs="images: {digits: {context: ../trainer}}")
    assert settings.images["digits"]["context"] == "../trainer"


def test_an_ignore_file_by_a_link_is_not_read(checkout: Path) -> None:
    (checkout / "Dockerfile").write_text("FROM scratch\n")
    (checkout / ".dockerignore").symlink_to("../.netrc")
    with pytest.raises(ContextUnusable, match="is a link that leads out of the folder") as failure:
        build_context(checkout, {"context": "."}).digest  # noqa: B018
    assert CANARY not in str(failure.value)


def test_links_are_sent_as_links(checkout: Path) -> None:
    """Neither a digest nor an archive depends on what a link leads to."""
    (checkout / "Dockerfile").write_text("FROM scratch\n")
    (checkout / "setup.py").symlink_to("../train.py")
    context = build_context(checkout, {"context": "."})
    package = SourceDistribution.of(checkout, "digits", {"path": "."})
    digests = context.digest, package.tag
    with context.open() as archive:
        assert CANARY.encode() not in archive.read()
    (checkout / ".." / "train.py").write_text("changed")
    again = build_context(checkout, {"context": "."})
    assert (again.digest, SourceDistribution.of(checkout, "digits", {"path": "."}).tag) == digests


def test_names_act_on_no_terminal(checkout: Path) -> None:
    (checkout / "a:b.yaml").write_text('"\\e]0;owned\\a\\n  stacks/Pulumi.dev.yaml: fine": 1\nvars: []\n')
    (first, second) = problems(checkout, f'{LOCAL}  vertex-training:include: ["a:b.yaml"]\n')
    assert first.startswith("a:b.yaml:1: ") and "\\u001b]0;owned\\u0007\\n  stacks" in first
    assert second.startswith("a:b.yaml:2: vars: ")


def test_the_folder_of_git_is_found_upwards_only(checkout: Path) -> None:
    (checkout / ".git").rmdir()
    (problem,) = problems(checkout, INCLUDING, jobs="images: {digits: {context: ..}}")
    assert problem.endswith(OUTSIDE[1:])
