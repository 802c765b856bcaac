"""Shared files: what stacks have in common, and limits from outside of a project; what is wrong has its line."""

import os
from pathlib import Path

import pytest
from vertex_training.plan.limits import Limits
from vertex_training.plan.shared import VARIABLE, from_outside

from tests.components.projects import CLOUD, LOCAL, load, problems, write

JOBS = """\
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-8}
          containerSpec: {imageUri: "registry.test/team/trainer:1"}
"""
EXTENDING = CLOUD + "  vertex-training:include: [jobs.yaml]\n  vertex-training:extends: platform/train.yaml\n"
SHARED = """\
extends: base.yaml
labels: {team: vision, cost: "1"}
registry: {url: registry.test/team}
guardrails: {maxReplicas: 2, machineTypes: [n1-*]}
"""
BASE = """\
labels: {cost: "2", owner: platform}
prices: {asOf: "2026-11-01", source: our contract, vcpu: {N1: {us-central1: 1}}}
guardrails: {maxReplicas: 9, maxTimeout: 604800s}
"""
FILES = {"platform/train.yaml": SHARED, "platform/base.yaml": BASE}


def test_a_stack_s_own_keys_win_but_for_guardrails(tmp_path: Path) -> None:
    own = "  vertex-training:labels: {team: speech}\n  vertex-training:guardrails: {maxReplicas: 5}\n"
    plan = load(tmp_path, EXTENDING + own, jobs=JOBS, **FILES).plan
    assert plan.labels == {"team": "speech", "cost": "1", "owner": "platform"}
    assert (plan.stack["prices"]["source"], plan.stack["registry"]) == (
        "our contract",
        {"url": "registry.test/team"},
    )
    assert plan.guardrails == {"maxReplicas": 2, "machineTypes": ["n1-*"], "maxTimeout": "604800s"}
    assert [each.name for each in plan.limits.sources] == ["platform/train.yaml", "platform/base.yaml"]
    replaced = load(tmp_path, EXTENDING + "  vertex-training:registry: {keep: 5}\n", jobs=JOBS, **FILES)
    assert replaced.plan.stack["registry"] == {"keep": 5}


def test_a_local_stack_takes_the_guardrails_alone(tmp_path: Path) -> None:
    local = EXTENDING.replace(CLOUD, LOCAL)
    plan = load(tmp_path, local, jobs=JOBS, **FILES).plan
    assert plan.labels == {} and "registry" not in plan.stack
    assert plan.guardrails["maxReplicas"] == 2


def test_a_message_names_the_shared_file(tmp_path: Path) -> None:
    stricter = FILES | {"platform/train.yaml": SHARED.replace("n1-*", "g2-*"), "platform/base.yaml": "labels: {}"}
    assert problems(tmp_path, EXTENDING, jobs=JOBS, **stricter) == [
        "jobs.yaml:5: customJobs.train.jobSpec.workerPoolSpecs[0].machineSpec.machineType: guardrails.machineTypes "
        '(platform/train.yaml): "n1-standard-8" is not allowed here; allowed: g2-*'
    ]
    costly = FILES | {"platform/base.yaml": "guardrails: {maxHourlyCost: 0.1}"}
    (said,) = problems(tmp_path, EXTENDING, jobs=JOBS, **costly)
    assert said.startswith("jobs.yaml:2: customJobs.train: guardrails.maxHourlyCost (platform/base.yaml): 0.")


LOOP = {"platform/train.yaml": "extends: b.yaml\n", "platform/b.yaml": "\nextends: train.yaml\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "extends: train.yaml",
            "1: extends: platform/train.yaml extends platform/train.yaml, without an end; take one",
        ),
        ("guardrail: {maxReplicas: 1}", "1: guardrail: unknown field; did you mean guardrails?"),
        ("labels:\n  a: 1", '2: labels.a: 1 is not a string; write "1" in quotes'),
        ("guardrails: {}", "1: guardrails: is empty, so it limits nothing"),
        ("labels: {Team: a}", '1: labels: the key "Team" may hold lower-case letters'),
        ("extends: ../../../../etc/passwd", '1: extends: "../../../etc/passwd" leads out of'),
        ("extends: package:no_such", '1: extends: "no_such" is not an installed package'),
        ("extends: package:yaml/../pulumi/x", '1: extends: "package:yaml/../pulumi/x" leads out of the package yaml'),
        ("extends: /etc/passwd", '1: extends: "/etc/passwd" leads out of'),
    ],
)
def test_a_slip_in_a_shared_file_has_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / ".git").mkdir()
    (found,) = problems(tmp_path, EXTENDING, jobs=JOBS, **{"platform/train.yaml": f"{text}\n"})
    assert found.startswith(f"platform/train.yaml:{said}")


def test_files_that_are_missing_or_go_round_are_named(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, EXTENDING, jobs=JOBS)
    where = 'stacks/Pulumi.dev.yaml:7: vertex-training:extends: "platform/train.yaml" is not a file; correct the name'
    assert found.startswith(where)
    (found,) = problems(tmp_path, EXTENDING, jobs=JOBS, **LOOP)
    around = "platform/train.yaml extends platform/b.yaml extends platform/train.yaml"
    assert found == f"platform/b.yaml:2: extends: {around}, without an end; take one out"


def test_an_installed_package_has_a_shared_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "site", {"acme_limits/__init__.py": "raise SystemExit\n", "acme_limits/train.yaml": SHARED})
    write(tmp_path / "site", {"acme_limits/base.yaml": BASE})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    stack = EXTENDING.replace("platform/train.yaml", "package:acme_limits/train.yaml")
    plan = load(tmp_path / "project", stack, jobs=JOBS).plan
    assert [each.name for each in plan.limits.sources] == [
        "package:acme_limits/train.yaml",
        "package:acme_limits/base.yaml",
    ]


@pytest.mark.parametrize("text", ["guardrails: {maxReplicas: 1}", "maxReplicas: 1", '{"maxReplicas": 1}'])
def test_a_file_from_outside_has_guardrails_with_their_key_or_without(tmp_path: Path, text: str) -> None:
    (tmp_path / "limits.yaml").write_text(text)
    (tmp_path / "more.yaml").write_text("maxTrials: 2")
    sources, wrong = from_outside({VARIABLE: f"{tmp_path}/limits.yaml:{tmp_path}/more.yaml"})
    assert wrong == [] and Limits.of(sources).rules == {"maxReplicas": 1, "maxTrials": 2}
    # Its folder differs from machine to machine.
    assert [each.name for each in sources] == ["limits.yaml", "more.yaml"]
    assert str(sources[0].place(("guardrails", "maxReplicas"), "x")).startswith(f"{tmp_path}/limits.yaml:1: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "limits.yaml: cannot be read: No such file or directory"),
        ("", "limits.yaml: is empty, so it limits nothing"),
        ("guardrails: {}", "limits.yaml:1: guardrails: is empty, so it limits nothing"),
        ("maxReplica: 1", "limits.yaml:1: maxReplica: unknown field; did you mean maxReplicas?"),
        ("guardrails: {maxTrials: 1}\nlabels: {}", "limits.yaml:2: labels: unknown field"),
        ("- a", "limits.yaml: must be an object"),
        ("a: [", "limits.yaml:"),
    ],
)
def test_a_slip_in_a_file_from_outside_has_its_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "limits.yaml").write_text(text)
    _, (problem,) = from_outside({VARIABLE: str(tmp_path / "limits.yaml")})
    assert str(problem).removeprefix(f"{tmp_path}/").startswith(said)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device without end", "bytes", "long name"])
def test_hostile_files_from_outside_are_a_line_each(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "limits"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "bytes":
        file.write_bytes(bytes(range(256)))
    named = {"device without end": "/dev/zero", "long name": "x" * 5000}.get(kind, str(file))
    _, (problem,) = from_outside({VARIABLE: named})
    assert "\n" not in str(problem) and "Traceback" not in str(problem)


@pytest.mark.parametrize(("environment", "count"), [({}, 0), ({VARIABLE: ""}, 1), ({VARIABLE: ":"}, 2)])
def test_a_variable_that_names_no_file_is_refused(environment: dict[str, str], count: int) -> None:
    sources, wrong = from_outside(environment)
    assert sources == [] and len(wrong) == count
    assert {str(each) for each in wrong} <= {f"{VARIABLE}: has an empty path; name a file, or unset it"}
