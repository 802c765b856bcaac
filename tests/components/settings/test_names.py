"""What a stack creates in its Google Cloud project is named after the stack and has its labels."""

from pathlib import Path
from typing import Any

import pytest
from vertex_training.settings.names import complete, role_id

from tests.components.settings.test_cloud import EXCLUSIVE, REQUIRED, completed


def test_created_resources_are_named_after_the_stack(tmp_path: Path) -> None:
    made = completed(tmp_path)
    assert made["registry"] == {"repository": "team-dev"}
    assert made["identity"] == {"account": "team-dev"}
    assert made["bucket"] == {"name": "acme-dev-team-dev"}


def test_accounts_of_schedules_are_named_after_the_stack(tmp_path: Path) -> None:
    existing = {"existing": "w@acme-dev.iam.gserviceaccount.com"}
    made = completed(tmp_path, scheduling={"workflow": existing, "scheduler": {}})
    assert made["scheduling"] == {"workflow": existing, "scheduler": {"account": "team-dev-scheduler"}}
    (long, other) = (
        complete("a" * 26, "dev", REQUIRED)["scheduling"][key]["account"] for key in ("scheduler", "workflow")
    )
    assert len(long) == len(other) == 30 and long != other


def test_existing_and_named_resources_keep_their_names(tmp_path: Path) -> None:
    for choices in ({key: next(iter(parts)) for key, parts in EXCLUSIVE.items()}, {"registry": "url"}):
        parts = {key: {choice: EXCLUSIVE[key][choice]} for key, choice in choices.items()}
        # An existing bucket needs it beside a TensorBoard.
        parts |= {"bucket": {**parts["bucket"], "location": "europe-west4"}} if "bucket" in parts else {}
        made = completed(tmp_path, labels={"team": "vision"}, **parts)
        assert {key: made[key] for key in parts} == parts
    named = {key: {list(parts)[-1]: list(parts.values())[-1]} for key, parts in EXCLUSIVE.items()}
    made = completed(tmp_path, **named)
    assert {key: made[key] for key in named} == named


def test_own_labels_override_those_of_the_stack(tmp_path: Path) -> None:
    made = completed(tmp_path, labels={"team": "vision", "env": "dev"}, bucket={"labels": {"env": "own"}})
    assert made["registry"]["labels"] == {"team": "vision", "env": "dev"}
    assert made["bucket"]["labels"] == {"team": "vision", "env": "own"}


@pytest.mark.parametrize(
    ("project", "stack_name", "account"),
    [
        ("team", "dev", "team-dev"),
        ("Team_One", "Dev.EU", "team-one-dev-eu"),
        ("a", "b", "train-a-b"),  # of at least six characters
        ("9lives", "prod", "train-9lives-prod"),  # beginning with a letter
        ("a" * 26, "dev", f"{'a' * 26}-dev"),  # of at most 30
        ("a" * 27, "dev", f"{'a' * 21}-bb26a938"),
        ("a" * 20 + "-b" * 8, "dev", f"{'a' * 20}-29056910"),  # no two hyphens
        ("1" + "a" * 40, "dev", f"train-1{'a' * 14}-b26ab54e"),
    ],
)
def test_the_account_id_is_valid(project: str, stack_name: str, account: str) -> None:
    assert complete(project, stack_name, REQUIRED)["identity"]["account"] == account


@pytest.mark.parametrize(("project", "name"), [("team", "team-dev"), ("9lives", "train-9lives-dev")])
def test_repository_and_attachment_begin_with_a_letter(project: str, name: str) -> None:
    values = {**REQUIRED, "network": {"attachment": {"subnetwork": "sub"}}}
    made = complete(project, "dev", values)
    assert made["registry"]["repository"] == made["network"]["attachment"]["name"] == name


def test_ranges_and_attachments_differ_between_stacks() -> None:
    def name(part: str, stack: str, **network: Any) -> Any:
        made = complete("team", stack, {**REQUIRED, "network": {part: network}})
        return dict(made["network"])[part].get("name")

    peering = {"network": "projects/1/global/networks/n", "prefixLength": 16}
    # A network of another project is shared by several.
    names = [name("peering", stack, **peering) for stack in ("dev", "prod")]
    assert names == ["acme-dev-team-dev", "acme-dev-team-prod"]
    assert name("peering", "dev", **peering, name="mine") == "mine"
    assert name("peering", "dev", network=peering["network"]) is None
    assert [name("attachment", stack, subnetwork="s") for stack in ("dev", "prod")] == ["team-dev", "team-prod"]


def test_the_role_of_a_stack_has_a_valid_id() -> None:
    role = role_id("acme-dev", "Team.One", "dev")
    assert role == "vertex_training_acme_dev_team_one_dev"
    assert len(role_id("acme-dev", "t" * 80, "dev")) <= 64


LONGEST = {
    "repository": ("t" * 52, "production"),
    "bucket": ("t" * 43, "production"),
    "account": ("t" * 19, "production"),
}
"""The longest names of a project and a stack that still make a name of its own, in acme-dev."""


def names(project: str, stack_name: str, google_project: str = "acme-dev") -> dict[str, str]:
    """What is made is called."""
    made = complete(project, stack_name, {**REQUIRED, "project": google_project})
    return {
        "repository": made["registry"]["repository"],
        "bucket": made["bucket"]["name"],
        "account": made["identity"]["account"],
    }


@pytest.mark.parametrize("kind", LONGEST)
def test_long_names_are_cut_and_stay_different(kind: str) -> None:
    most = 30 if kind == "account" else 63
    project, stack_name = LONGEST[kind]
    whole = f"{'acme-dev-' if kind == 'bucket' else ''}{project}-{stack_name}"
    assert names(project, stack_name)[kind] == whole and len(whole) == most
    # Cut, they would be the same: another end, another stack, another place where the one name ends.
    long = project + "-t" * 20
    alike = [(long, "dev"), (long, "prod"), (long + "t", "dev"), (f"{long}-dev", "prod"), (long, "dev-prod")]
    found = [names(*each)[kind] for each in alike]
    assert {len(name) for name in found} == {most}
    assert len({whole, *found}) == len(alike) + 1
    assert found == [names(*each)[kind] for each in alike]


def test_buckets_of_long_project_names_differ() -> None:
    project = "p" * 29
    assert len({names("t" * 60, "dev", f"{project}{end}")["bucket"] for end in "ab"}) == 2
