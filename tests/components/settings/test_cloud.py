"""The keys of a stack file for the target gcp: their rules, and the names of what the stack creates."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import DeclarationErrors
from vertex_training.schema import shapes
from vertex_training.settings.names import role_id, with_defaults
from vertex_training.settings.offline import read_stack
from vertex_training.settings.settings import Settings

from tests.components.projects import load, problems

REQUIRED = {"project": "acme-dev", "projectNumber": "123456789012", "region": "europe-west4"}
KEY = "projects/p/locations/{}/keyRings/k/cryptoKeys/c"
ATTACHMENT = "projects/p/regions/{}/networkAttachments/a"
BOARD = "projects/p/locations/{}/tensorboards/7"
NETWORK = "projects/1/global/networks/n"
REPOSITORY = "projects/p/locations/europe-west4/repositories/r"
NO_EFFECT = "has no effect on an existing resource; remove it, or name the resource with"


def stack(**keys: Any) -> str:
    """A stack file of the target gcp; a key whose value is None is left out."""
    given = {"target": "gcp", **REQUIRED, **keys}
    lines = [f"  vertex-training:{key}: {json.dumps(value)}\n" for key, value in given.items() if value is not None]
    return f"config:\n{''.join(lines)}"


def completed(tmp_path: Path, **keys: Any) -> Any:
    """What the keys of the stack `dev` of the project `team` stand for."""
    return load(tmp_path, stack(**keys)).cloud


def problem(tmp_path: Path, **keys: Any) -> str:
    """The one problem of a stack, without its place."""
    (line,) = problems(tmp_path, stack(**keys))
    return line.partition("vertex-training:")[2]


@pytest.mark.parametrize("key", REQUIRED)
def test_what_nothing_else_can_tell_is_required(tmp_path: Path, key: str) -> None:
    assert problem(tmp_path, **{key: None}).startswith(f"{key}: is required by the target gcp")


def test_credentials_that_jobs_cannot_have_are_refused(tmp_path: Path) -> None:
    given = "  gcp:externalCredentials: {identityToken: canary}\n"
    (line,) = problems(tmp_path, stack() + given)
    assert line.startswith(
        "stacks/Pulumi.dev.yaml: gcp:externalCredentials: is taken by Pulumi's Google provider alone"
    )
    assert "canary" not in line and "set GOOGLE_APPLICATION_CREDENTIALS to the credential configuration" in line
    assert load(tmp_path, f"config:\n  vertex-training:target: local\n{given}").cloud is None


@pytest.mark.parametrize(
    ("key", "text", "is_exposed"),
    [
        ("gcp:accessToken", "ya29.canary", True),
        ("gcp:credentials", '{"type": "service_account", "private_key": "canary"}', True),
        ("gcp:credentials", "keys/canary.json", False),
        ("gcp:credentials", '{"type": "external_account"}', False),
        ("gcp:credentials", __file__, False),
        ("gcp:accessToken", __file__, False),
        ("gcp:impersonateServiceAccount", "canary", False),
    ],
)
def test_plain_credentials_in_the_config_are_refused(tmp_path: Path, key: str, text: str, is_exposed: bool) -> None:
    config = {"vertex-training:target": "gcp", key: text}

    def found(secret_keys: list[str]) -> list[str]:
        with pytest.raises(DeclarationErrors) as refused:
            Settings.load_from_config("team", "dev", tmp_path, config, secret_keys=secret_keys)
        return [line for line in str(refused.value).splitlines() if key in line]

    assert found([key]) == []
    lines = found([])
    assert len(lines) == is_exposed and "canary" not in "".join(lines)
    assert not lines or f"`pulumi config set --secret {key}`" in lines[0]


@pytest.mark.parametrize(
    "environment", ["[acme/gcp-dev]", "\n- acme/gcp-dev@stable", "{imports: [a/b], values: {pulumiConfig: {a: b}}}"]
)
def test_a_stack_file_may_name_an_environment(tmp_path: Path, environment: str) -> None:
    text = f"environment: {environment}\n{stack()}"
    assert load(tmp_path, text).cloud
    (tmp_path / "Pulumi.yaml").write_text("{name: team, runtime: python, stackConfigDir: stacks}")
    assert read_stack(tmp_path, "dev").config.keys() == {"vertex-training:target"} | {
        f"vertex-training:{key}" for key in REQUIRED
    }
    (line,) = problems(tmp_path, text + "  vertex-training:registry: {repo: x}\n")
    assert line.startswith(f"stacks/Pulumi.dev.yaml:{len(text.splitlines()) + 1}: ")


EXCLUSIVE = {
    "registry": {"existing": REPOSITORY, "url": "registry.test/team", "repository": "mine"},
    "identity": {"existing": "a@p.iam.gserviceaccount.com", "account": "trainer"},
    "bucket": {"existing": "theirs", "name": "mine"},
    "tensorboard": {"existing": BOARD.format("europe-west4"), "displayName": "mine"},
}


@pytest.mark.parametrize(
    ("key", "given"),
    [
        (key, (first, second))
        for key, choices in EXCLUSIVE.items()
        for first in choices
        for second in list(choices)[list(choices).index(first) + 1 :]
    ],
)
def test_each_thing_is_named_in_one_way(tmp_path: Path, key: str, given: tuple[str, str]) -> None:
    part = {choice: EXCLUSIVE[key][choice] for choice in given}
    expected = f"{key}: takes one of {', '.join(EXCLUSIVE[key])}, not {' and '.join(given)}"
    assert problem(tmp_path, **{key: part}) == expected


def test_scheduling_names_accounts_in_one_way_and_a_region(tmp_path: Path) -> None:
    both = {"scheduler": {"account": "starter", "existing": "a@acme-dev.iam.gserviceaccount.com"}}
    assert problem(tmp_path, scheduling=both) == "scheduling.scheduler: takes one of existing and account, not both"
    expected = 'scheduling.region: "europe" is not the name of a region, such as us-central1'
    assert problem(tmp_path, scheduling={"region": "europe"}) == expected


SETTINGS: dict[str, dict[str, Any]] = {
    "registry": {
        "project": "images",
        "location": "europe",
        "immutableTags": True,
        "keep": 3,
        "deleteUntaggedAfter": "60s",
        "kmsKey": KEY.format("europe"),
        "labels": {"a": "b"},
        "protect": True,
    },
    "identity": {"submitters": ["group:ml@example.com"], "useVertexAi": False},
    "bucket": {
        "deleteAfterDays": 3,
        "softDelete": "0s",
        "kmsKey": KEY.format("europe-west4"),
        "labels": {"a": "b"},
        "protect": True,
    },
    "tensorboard": {"labels": {"a": "b"}, "protect": True},
}


@pytest.mark.parametrize(
    ("key", "choice", "field"),
    [
        (key, choice, field)
        for key, fields in SETTINGS.items()
        for choice in list(EXCLUSIVE[key])[:-1]
        for field in fields
    ],
)
def test_what_exists_has_no_settings_here(tmp_path: Path, key: str, choice: str, field: str) -> None:
    part = {choice: EXCLUSIVE[key][choice], field: SETTINGS[key][field]}
    made = list(EXCLUSIVE[key])[-1]
    assert problem(tmp_path, **{key: part}) == f"{key}.{field}: {NO_EFFECT} {made}"


def test_all_parts_with_labels_are_tested() -> None:
    labelled = [key for key, shape in shapes.Cloud.__annotations__.items() if "labels" in fields_of(shape)]
    assert labelled == [key for key, fields in SETTINGS.items() if "labels" in fields]


def fields_of(shape: Any) -> Any:
    return getattr(shape, "__annotations__", ())


def test_what_is_made_has_them_all(tmp_path: Path) -> None:
    for key, fields in SETTINGS.items():
        assert completed(tmp_path, **{key: fields})[key].items() >= fields.items()


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({}, "network: needs exactly one of peering and attachment"),
        (
            {"peering": {"network": NETWORK}, "attachment": {"subnetwork": "s"}},
            "network: needs exactly one of peering and attachment",
        ),
        ({"attachment": {}}, "network.attachment: needs exactly one of existing and subnetwork"),
        (
            {"attachment": {"existing": ATTACHMENT.format("europe-west4"), "subnetwork": "s"}},
            "network.attachment: needs exactly one of existing and subnetwork",
        ),
        (
            {"attachment": {"existing": ATTACHMENT.format("us-east1")}},
            'network.attachment.existing: the attachment is in "us-east1"; '
            "it must be in the region of the jobs, europe-west4",
        ),
        *(
            (
                {"peering": {"network": NETWORK, "prefixLength": length}},
                f"network.peering.prefixLength: {length} is not between 8 and 24",
            )
            for length in (7, 25)
        ),
        (
            {"peering": {"network": NETWORK, "name": "mine"}},
            "network.peering.name: has no effect without prefixLength: the stack creates nothing to name",
        ),
        (
            {"attachment": {"existing": ATTACHMENT.format("europe-west4"), "name": "mine"}},
            "network.attachment.name: has no effect without subnetwork: the stack creates nothing to name",
        ),
        (
            {"attachment": {"subnetwork": "s", "name": "9lives"}},
            'network.attachment.name: "9lives" is not a name of Compute Engine: lowercase letters, digits and hyphens, '
            "at most 63, a letter first",
        ),
    ],
)
def test_an_invalid_network_is_rejected(tmp_path: Path, network: dict[str, Any], expected: str) -> None:
    assert problem(tmp_path, network=network) == expected


@pytest.mark.parametrize(
    "network",
    [
        {"peering": {"network": NETWORK}},
        {"peering": {"network": NETWORK, "prefixLength": 8}},
        {"peering": {"network": NETWORK, "prefixLength": 24}},
        {"attachment": {"subnetwork": "s"}},
        {"attachment": {"existing": ATTACHMENT.format("europe-west4")}},
    ],
)
def test_a_valid_network_is_unchanged(tmp_path: Path, network: dict[str, Any]) -> None:
    (part,) = network
    made = completed(tmp_path, network=network)["network"][part]
    assert made == {**network[part], **({"name": made["name"]} if "name" in made else {})}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"bucket": {"location": "EU"}},
            'bucket.location: "eu" must be the region of the jobs, europe-west4: Vertex AI refuses others',
        ),
        (
            {"bucket": {"existing": "theirs", "location": "us-east1"}},
            'bucket.location: "us-east1" must be the region of the jobs, europe-west4: Vertex AI refuses others',
        ),
        (
            {"kmsKey": KEY.format("us-east1")},
            'kmsKey: the key is in "us-east1"; it must be in the region of the jobs, europe-west4',
        ),
        (
            {"bucket": {"kmsKey": KEY.format("global")}},
            'bucket.kmsKey: the key is in "global"; it must be in the region of the jobs, europe-west4',
        ),
        (
            {"registry": {"kmsKey": KEY.format("europe")}},
            'registry.kmsKey: the key is in "europe"; it must be in the location of the repository, europe-west4',
        ),
        (
            {"registry": {"location": "us", "kmsKey": KEY.format("europe-west4")}},
            'registry.kmsKey: the key is in "europe-west4"; it must be in the location of the repository, us',
        ),
        *(
            (
                {"bucket": {"softDelete": seconds}},
                f'bucket.softDelete: "{seconds}" is neither "0s" nor whole seconds from "604800s" to "7776000s"',
            )
            for seconds in ("1s", "7776001s", "604800.500s", "-604800s")
        ),
        (
            {"network": {"attachment": {"existing": ATTACHMENT.format("europe-west4"), "grant": False}}},
            "network.attachment.grant: has no effect without subnetwork or dnsPeering; remove it",
        ),
        (
            {"registry": {"legacyAgent": True}},
            "registry.legacyAgent: has no effect without legacyBuckets; remove it",
        ),
        (
            {"tensorboard": {"existing": BOARD.format("us-east1")}},
            'tensorboard.existing: the TensorBoard is in "us-east1"; '
            "it must be in the region of the jobs, europe-west4",
        ),
        (
            {"tensorboard": {}, "identity": {"useVertexAi": False}},
            "identity.useVertexAi: must be true with tensorboard: the account uploads to it as a user of Vertex AI",
        ),
        (
            {"tensorboard": {}, "bucket": {"existing": "theirs"}},
            "bucket.location: is required with tensorboard, "
            "whose bucket must be in the region of the jobs, europe-west4",
        ),
    ],
)
def test_what_jobs_use_is_in_their_region(tmp_path: Path, keys: dict[str, Any], expected: str) -> None:
    assert problem(tmp_path, **keys) == expected


def test_bucket_regions_may_have_either_case(tmp_path: Path) -> None:
    made = completed(
        tmp_path,
        bucket={"location": "EUROPE-WEST4"},
        kmsKey=KEY.format("europe-west4"),
        registry={"location": "us", "kmsKey": KEY.format("us")},
    )
    assert (made["bucket"]["location"], made["registry"]["location"]) == ("EUROPE-WEST4", "us")


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"machineSpec": {"machineType": "n1-standard-3"}}, "machineSpec.machineType: Machine type n1-standard-3"),
        ({"machineSpec": {"machineType": "g2-standard-4"}}, "machineSpec.acceleratorType: g2-standard-4 needs an"),
        (
            {"machineSpec": {"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"}},
            "machineSpec.tpuTopology: is not supported for a persistent resource",
        ),
        (
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "autoscalingSpec": {"minReplicaCount": 2, "maxReplicaCount": 2},
            },
            "autoscalingSpec.minReplicaCount: 2 must be below maxReplicaCount, 2",
        ),
        (
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "autoscalingSpec": {"minReplicaCount": 2, "maxReplicaCount": 4},
                "replicaCount": 1,
            },
            "replicaCount: 1 must be from 2 to 4, the limits of autoscalingSpec",
        ),
    ],
)
def test_a_persistent_resource_rejects_unsupported_machines(
    tmp_path: Path, pool: dict[str, Any], expected: str
) -> None:
    said = problem(tmp_path, persistentResource={"name": "training", "resourcePools": [pool]})
    assert said.startswith(f"persistentResource.resourcePools[0].{expected}")


def test_problems_of_several_keys_are_told_together(tmp_path: Path) -> None:
    found = problems(tmp_path, stack(projectNumber=None, network={}, bucket={"location": "us-east1"}))
    assert len(found) == 3


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"alerts": {"channels": []}}, "alerts.channels: is required"),
        ({"alerts": {}}, "alerts.channels: is required"),
        ({"alerts": {"channels": ["ml"]}}, 'alerts.channels[0]: "ml" is not an e-mail address or a channel, projects/'),
        ({"identity": {"secrets": ["a/b"]}}, 'identity.secrets[0]: "a/b" is not a secret of Secret Manager: letters'),
    ],
)
def test_channels_and_secrets_have_names_of_their_own(tmp_path: Path, keys: dict[str, Any], expected: str) -> None:
    assert problem(tmp_path, **keys).startswith(expected)


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
        with_defaults("a" * 26, "dev", REQUIRED)["scheduling"][key]["account"] for key in ("scheduler", "workflow")
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
    assert with_defaults(project, stack_name, REQUIRED)["identity"]["account"] == account


@pytest.mark.parametrize(("project", "name"), [("team", "team-dev"), ("9lives", "train-9lives-dev")])
def test_repository_and_attachment_begin_with_a_letter(project: str, name: str) -> None:
    values = {**REQUIRED, "network": {"attachment": {"subnetwork": "sub"}}}
    made = with_defaults(project, "dev", values)
    assert made["registry"]["repository"] == made["network"]["attachment"]["name"] == name


def test_ranges_and_attachments_differ_between_stacks() -> None:
    def name(part: str, stack: str, **network: Any) -> Any:
        made = with_defaults("team", stack, {**REQUIRED, "network": {part: network}})
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
    made = with_defaults(project, stack_name, {**REQUIRED, "project": google_project})
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


@pytest.mark.parametrize(
    ("project", "folder"),
    [
        ("name: a\nstackConfigDir: config  # of stacks\n", "config"),
        ("{name: a, stackConfigDir: './b c'}", "b c"),
        ("name: a\n", "."),
        (None, "stacks"),
        ("name: a\nstackConfigDir: ../outside\n", "stacks"),
    ],
)
def test_a_stack_file_is_named_where_it_is(tmp_path: Path, project: str | None, folder: str) -> None:
    (root := tmp_path / "root").mkdir()
    if project:
        (root / "Pulumi.yaml").write_text(project)
    (root / folder).mkdir(exist_ok=True)
    file = root / folder / "Pulumi.dev.yaml"
    file.write_text("config:\n  vertex-training:target: moon\n")
    with pytest.raises(DeclarationErrors) as failure:
        Settings.load_from_config("a", "dev", root, {"vertex-training:target": "moon"})
    assert str(failure.value.problems[0]).startswith(f"{file.relative_to(root)}:2: vertex-training:target: ")
