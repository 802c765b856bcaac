"""What commands of gcloud and pulumi change in the stand-in for a project, as their references say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from tests.standins.google_project import GoogleProject

Options = dict[str, str]
_LOOKS = ("describe", "list")
_WHOLE = ("config ", "grant ", "off ", "quota ")
_INDEX = re.compile(r"([^\[\].]+)|\[(\d+)\]")


class Machine:
    """A shell beside a project, with the variables that it sets, and the stack file that pulumi writes to.

    What a permission needs comes with a role: `roles` are permissions by role. Resources that a refusal has hidden are
    seen again as they are in `whole`.
    """

    def __init__(self, project: GoogleProject, whole: GoogleProject, stack: Path, roles: dict[str, set[str]]) -> None:
        self.variables: dict[str, str | None] = {}
        self._project, self._whole, self._stack, self._roles = project, whole, stack, roles

    def run(self, remedy: str) -> None:
        """Run a line, whose upper-case words have been replaced."""
        for command in remedy.split(" && "):
            program, *words = shlex.split(command)
            if program == "export":
                name, _, value = words[0].partition("=")
                self.variables[name] = value
                self._project.resources |= {
                    path: self._whole.resources.get(path, status)
                    for path, status in self._project.resources.items()
                    if status == 401
                }
            elif program == "pulumi":
                self._configure(words)
            else:
                assert program in ("gcloud", "bq"), command
                self._gcloud([each for each in words if not each.startswith("--")], _options(words))

    def _configure(self, words: list[str]) -> None:
        """`pulumi config set` and `rm`: with --path, of one value inside of a key."""
        group, verb, *rest = words
        assert group == "config"
        rest = [each for each in rest if each not in ("--stack", "dev")]
        is_path = "--path" in rest
        key, *value = [each for each in rest if each != "--path"]
        config = (document := yaml.safe_load(self._stack.read_text()))["config"]
        steps: list[str | int] = [key]
        if is_path:
            steps = [name or int(number) for name, number in _INDEX.findall(key)]
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(config, list) and step == len(config):
                config.append(empty)
            config = config.setdefault(step, empty) if isinstance(config, dict) else config[step]
        last = steps[-1]
        if verb == "rm":
            del config[last]
        elif isinstance(config, list):
            config[last:last] = value
        else:
            config[last] = int(value[0]) if value[0].isdigit() and is_path else value[0]
        self._stack.write_text(yaml.safe_dump(document))

    def _gcloud(self, words: list[str], options: Options) -> None:
        *group, name = [each for each in words if each != "beta"]
        if (group[-1:] and group[-1] in _LOOKS) or name in _LOOKS:
            return
        project, there = self._project, self._project.resources
        at = f"projects/{options.get('project')}"
        located = f"{at}/locations/{options.get('location')}"
        match " ".join(group):
            case "add-iam-policy-binding":
                ids = zip(("projects", "datasets", "tables"), re.split("[:.]", name), strict=True)
                self._grant("/".join(word for pair in ids for word in pair), options)
            case "projects add-iam-policy-binding":
                self._grant(f"projects/{name}", options)
            case "storage buckets add-iam-policy-binding":
                self._grant(f"b/{name.removeprefix('gs://')}", options)
            case "artifacts repositories add-iam-policy-binding":
                self._grant(name if "/" in name else f"{located}/repositories/{name}", options)
            case "kms keys add-iam-policy-binding":
                self._grant(f"{located}/keyRings/{options['keyring']}/cryptoKeys/{name}", options)
            case "secrets add-iam-policy-binding":
                self._grant(f"{at}/secrets/{name}", options)
            case "iam service-accounts add-iam-policy-binding":
                self._grant(f"projects/-/serviceAccounts/{name}", options)
            case "compute networks subnets add-iam-policy-binding":
                self._grant(f"{at}/regions/{options['region']}/subnetworks/{name}", options)
            case "services enable" | "services enable cloudresourcemanager.googleapis.com":
                for api in [*group[2:], name]:
                    project.off.discard(f"{at}/services/{api}")
                    project.disabled.discard(api.partition(".")[0])
            case "billing projects link":
                there[f"cloudbilling/projects/{name}/billingInfo"] = {"billingEnabled": True}
            case "projects undelete":
                there[f"cloudresourcemanager/projects/{name}"] = self._whole.resources[
                    f"cloudresourcemanager/projects/{name}"
                ]
            case "iam service-accounts create":
                email = f"{name}@{options['project']}.iam.gserviceaccount.com"
                there[f"iam/projects/-/serviceAccounts/{email}"] = {"email": email}
            case "iam service-accounts enable":
                there[f"iam/projects/-/serviceAccounts/{name}"] = {"email": name}
            case "storage buckets create":
                uniform = {"uniformBucketLevelAccess": {"enabled": "uniform-bucket-level-access" in options}}
                bucket = {"location": options["location"].upper(), "projectNumber": "123456789012"}
                there[f"storage/b/{name.removeprefix('gs://')}"] = {**bucket, "iamConfiguration": uniform}
            case "artifacts repositories create":
                format_ = options["repository-format"].upper()
                there[f"artifactregistry/{located}/repositories/{name}"] = {"format": format_}
            case "kms keys versions enable" | "kms keys versions restore":
                key = f"cloudkms/{located}/keyRings/{options['keyring']}/cryptoKeys/{options['key']}"
                state = "ENABLED" if group[-1] == "enable" else "DISABLED"
                there[key] = {**there[key], "primary": {**there[key]["primary"], "state": state}}
            case "secrets create":
                there[f"secretmanager/{at}/secrets/{name}"] = {}
            case "compute networks create":
                there[f"compute/{at}/global/networks/{name}"] = {"autoCreateSubnetworks": False}
            case "compute networks subnets create":
                there[f"compute/{at}/regions/{options['region']}/subnetworks/{name}"] = {}
            case "compute network-attachments create":
                there[f"compute/{at}/regions/{options['region']}/networkAttachments/{name}"] = {}
            case "compute reservations update":
                path = f"compute/{at}/zones/{options['zone']}/reservations/{name}"
                there[path] = {"reservationSharingPolicy": {"serviceShareType": options["reservation-sharing-policy"]}}
            case "services vpc-peerings":
                path = f"servicenetworking/services/{options['service']}/connections"
                there[path] = {"connections": [{"reservedPeeringRanges": options["ranges"].split(",")}]}
            case "quotas preferences":  # which Google grants
                metric = options["quota-id"].removeprefix("CustomModelTraining").removesuffix("PerProjectPerRegion")
                project.quotas[metric.lower()] = int(options["preferred-value"])
            case unknown:
                raise AssertionError(f"gcloud {unknown}")

    def _grant(self, name: str, options: Options) -> None:
        role, member = options["role"], options["member"]
        self._project.grants.setdefault(name, []).append((role, member))
        if member == "user:ann@example.com":
            self._project.lacking -= self._roles.get(role, set())
            seen = [path for path, there in self._project.resources.items() if there == 403]
            self._project.resources |= {path: self._whole.resources[path] for path in seen}


def _options(words: list[str]) -> Options:
    pairs = [each.removeprefix("--").partition("=") for each in words if each.startswith("--")]
    return {name: value for name, _, value in pairs}


def state(project: GoogleProject, stack: Path) -> dict[str, str]:
    """All that commands can change in a project and in a stack file, a value a key."""
    config = yaml.safe_load(stack.read_text())["config"]
    found = {f"config {path}": value for path, value in _leaves(config, "")}
    for path, there in project.resources.items():
        found |= {f"{path}{inner}": value for inner, value in _leaves(there, " ")}
    for name, pairs in project.grants.items():
        found |= {f"grant {name} {role} {member}": "" for role, member in pairs}
    found |= {f"off {each}": "" for each in {*project.off, *project.disabled}}
    return found | {f"quota {each}": str(value) for each, value in project.quotas.items()}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path.strip() else f"{path}{key}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}[{index}]")
    else:
        yield path, str(value)


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The keys that are new or gone, or have another value, without the fields inside of a resource."""
    keys = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return {key if key.startswith(_WHOLE) else key.partition(" ")[0] for key in keys}
