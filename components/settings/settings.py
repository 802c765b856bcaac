"""Settings: the stack file and its declarations, parsed once, with every problem reported together."""

import json
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vertex_api import credentials
from vertex_api.emulator import SERVICES
from vertex_api.errors import first_problems, too_many
from vertex_api.estimates.prices import VARIABLE, PricesUnusable, filed_prices
from vertex_api.estimates.runs import ONE_LINE
from vertex_api.job import Job
from vertex_api.messages import KeyPath
from vertex_api.validation.check import ValidPart
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from .. import trees
from ..data.lock import Data
from ..errors import DeclarationErrors, Problem, ProjectNumberUnknown
from ..plan import guardrails, limits
from ..plan.folders import WritableFolders
from ..plan.limits import Limits, Source
from ..plan.plan import PERSISTENT_RESOURCE, Plan, resource_pools
from ..plan.shared import EXTENDS, MERGED, Shared, argument_problems, from_outside
from ..plan.training import Place, Timetable, Training
from ..runtime import state
from ..runtime.engine import defer_pulumi_gcp
from ..schema import shapes
from ..schema.source import GivenFile, checkout
from . import cloud, names
from .declarations import parse
from .entries import SECTIONS, load

NAMESPACE = "vertex-training"
"""Of all keys, also in projects that have another name."""
NUMBER = f"{NAMESPACE}:projectNumber"
RUNS = "runs"
"""The stack output with the records of earlier runs; that of a stack with a prefix begins with it."""
_CONFIG_FOLDER = re.compile(r"""^[{ ]*(?:.*, *)?stackConfigDir: *["']?([^"',#}\n]*[^"',#}\s])""", re.MULTILINE)
_SERVICE = re.compile(r"([a-z0-9-]+)\.googleapis\.com")
_PLACE = ("target", "project", "region")
_OF_PROVIDER = ("project", "region")
"""Keys that default to those of Pulumi's Google provider."""


@dataclass(frozen=True)
class Settings:
    """The valid settings of a stack: what its stack file and its declarations say."""

    pulumi_project: str
    """The name of the Pulumi project."""
    stack: str
    """The name of the stack, and the `prefix` after it if there is one."""
    root: Path
    """The project's folder."""
    project: str
    """The Google Cloud project."""
    region: str
    """The region that jobs run in."""
    emulator: shapes.Emulator
    """The options of the local emulator."""
    cloud: shapes.Cloud | None
    """The keys for target `gcp`, with names for all resources that the stack creates; None for target `local`."""
    images: Mapping[str, shapes.Image]
    """The images, by name."""
    packages: Mapping[str, shapes.PythonPackage]
    """The Python packages, by name."""
    data: Mapping[str, Data]
    """The data that jobs train on, by name."""
    vars: Mapping[str, Any]
    """The values of `${vars.NAME}`."""
    secrets: Mapping[str, str]
    """The values of `${secrets.NAME}`, decrypted."""
    plan: Plan
    """All jobs that the stack declares, with what is needed to judge them."""
    prefix: str = ""
    """What the names of Pulumi resources begin with."""

    @classmethod
    def load(cls, args: Mapping[str, Any] | None = None, prefix: str = "", resource: str = "") -> "Settings":
        """Return the settings of the running Pulumi program: those of its stack, with keys of `args` in their place.

        `guardrails` among them add to those of the stack. `resource` is how messages name what has those arguments:
        `TrainingStack "west"`. A project's number that is not given is looked up, by Pulumi's Google provider. Raises
        DeclarationErrors, and ProjectNumberUnknown if that fails.
        """
        import pulumi
        from pulumi.runtime import config as runtime_config

        given = dict(args or {})
        around, problems = from_outside(os.environ)
        if problems := [*problems, *argument_problems(resource, given)]:
            raise DeclarationErrors(problems)
        argument = limits.Argument(resource, given.pop(limits.KEY)) if limits.KEY in given else None
        own = {f"{NAMESPACE}:{key}": _encode(value) for key, value in given.items()}
        # A unit test with Pulumi's mocks sets the second alone (`pulumi.runtime.set_all_config`).
        config = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get(), **own}
        if config.get(f"{NAMESPACE}:target") == "gcp" and NUMBER not in config and (project := _project(config)):
            config[NUMBER] = _look_up_number(project)
        secrets, read = runtime_config.get_config_secret_keys_env(), state.read_texts(f"{prefix}{RUNS}")
        return cls.load_from_config(
            pulumi.get_project(),
            pulumi.get_stack(),
            Path.cwd(),
            config,
            prefix,
            secrets,
            lambda: {name: record.replace(ONE_LINE, "\n") for name, record in read().items()},
            around=around,
            argument=argument,
            arguments=(resource, given.keys()),
        )

    @classmethod
    def load_from_config(
        cls,
        pulumi_project: str,
        stack: str,
        root: Path,
        config: Mapping[str, str],
        prefix: str = "",
        secret_keys: Collection[str] = credentials.CONFIG_KEYS,
        records: Callable[[], Mapping[str, str]] = dict,
        given: Collection[str] = (),
        around: Sequence[Source] = (),
        argument: limits.Argument | None = None,
        arguments: tuple[str, Collection[str]] = ("", ()),
    ) -> "Settings":
        """Return the settings of a stack's config (`{"vertex-training:target": "local", …}`) and its included files.

        `secret_keys` are the keys that are encrypted. `records` looks up those of earlier runs, by job. The vars that
        are `given` come from the option `--set`. `around` are guardrails from outside of the project. `argument` has
        those that a `TrainingStack` is given, `arguments` its name in messages and its other keys. Raises
        DeclarationErrors with all problems.
        """
        name = _file_of(root, stack)
        file = root / name
        # For its line numbers only: its values come from the engine, with secrets decrypted.
        content = b""
        with suppress(OSError):  # as without one
            content = trees.read(file, checkout(root))
        stack_file = GivenFile(name, content, f"{NAMESPACE}:", *arguments)
        shared = Shared.load(root, config.get(f"{NAMESPACE}:{EXTENDS}"), stack_file)
        values, violations = stack_values(_with_shared(config, shared.values))
        problems = shared.problems + [
            _place(stack_file, config, shared)(*violation) for violation in first_problems(violations)
        ]
        around = [*around, *shared.sources]
        if is_cloud := values.get("target") == "gcp":
            problems += _credentials(name, config, secret_keys)
            problems += _prices()
        own: list[Source] = []
        if argument:
            held = Limits.of([*around, Source(values.get(limits.KEY, {}), place=stack_file.problem)])
            problems += argument.problems(held)
            own = [argument.source]
        entries, unreadable = load(root, stack_file, values)
        problems += unreadable
        if too_many(problems):
            raise DeclarationErrors(_sorted(problems))
        stack += f"-{prefix.rstrip('-')}" if prefix else ""
        declared = parse(entries, stack_file, values, root, given)
        problems += declared.problems
        own_cloud = folders = None
        if is_cloud and "project" in values:
            own_cloud = names.with_defaults(pulumi_project, stack, values)
            specs = [each.spec for each in declared.trainings if isinstance(each.spec, Job)]
            folders = WritableFolders.of(pulumi_project, stack, own_cloud, specs)
        plan = Plan(
            values,
            tuple(declared.trainings),
            tuple(declared.timetables),
            region=values.get("region") if is_cloud else None,
            images=declared.images,
            folders=folders,
            file=stack_file.problem,
            pools=[pool for _, pool in resource_pools(values)] if is_cloud else [],
            records=lambda: _with_former(records(), declared.trainings),
            around=tuple(around),
            own=tuple(own),
            prefix=prefix,
        )
        for problem in plan.problems():
            if too_many(problems):
                break
            problems.append(problem)
        if problems:
            raise DeclarationErrors(_sorted(problems))
        return cls(
            pulumi_project=pulumi_project,
            stack=stack,
            root=root,
            project=plan.project,
            region=values.get("region", "us-central1"),
            emulator=values.get("emulator", {}),
            cloud=own_cloud,
            images=declared.images,
            packages=declared.packages,
            data=declared.data,
            vars=declared.variables,
            secrets=values.get("secrets", {}),
            plan=plan,
            prefix=prefix,
        )

    def named(self, name: str) -> str:
        """Return the name of the Pulumi resource for what has a name of its own here."""
        return f"{self.prefix}{name}"

    @property
    def granted_data(self) -> list[str]:
        """The URIs of data that the stack lets its jobs' account read. What is in the stack's own bucket, it may."""
        bucket = self.cloud["bucket"] if self.cloud else {}
        own = f"gs://{bucket.get('existing') or bucket.get('name')}/"
        return [each.uri for each in self.data.values() if each.is_granted and not each.uri.startswith(own)]

    @property
    def build_secrets(self) -> list[str]:
        """The secrets of Secret Manager that builds in Cloud Build read, `projects/P/secrets/NAME`."""
        stack = self.cloud.get("builder", {}).get("cloudBuild") if self.cloud else None
        if stack is None:
            return []
        own = (image.get("builder", {}).get("cloudBuild", {}) for image in self.images.values())
        versions = [version for options in (stack, *own) for version in options.get("secrets", {}).values()]
        return sorted({version.partition("/versions/")[0] for version in versions})

    @property
    def applied(self) -> dict[str, Any]:
        """What the providers of jobs and a review go by, an input of the stack's ledger.

        Neither knows the arguments of a `TrainingStack` otherwise, or the files that its guardrails come from.
        """
        found = {key: self.plan.stack[key] for key in (*_PLACE, *shapes.APPLIED) if key in self.plan.stack}
        if self.plan.limits:
            found |= {"guardrails": self.plan.limits.fields, "guardrailsDigest": self.plan.limits.digest}
        return {**found, "prefix": self.prefix}

    @property
    def jobs(self) -> tuple[Training, ...]:
        """The jobs that `pulumi up` submits."""
        return tuple(each for each in self.plan.trainings if not each.is_scheduled)

    @property
    def resources(self) -> tuple[Training, ...]:
        """The jobs that `pulumi up` submits, each by the name of its Pulumi resource."""
        return tuple(replace(each, name=self.named(each.name)) for each in self.jobs) if self.prefix else self.jobs

    @property
    def scheduled(self) -> Mapping[str, Training]:
        """The jobs that `schedules` submit, by name."""
        return {each.name: each for each in self.plan.trainings if each.is_scheduled}

    @property
    def schedules(self) -> tuple[Timetable, ...]:
        """When scheduled jobs run."""
        return self.plan.timetables


def _file_of(root: Path, stack: str) -> str:
    """Return the path of a stack's file, for messages: in the `stackConfigDir` of the project, which may have none."""
    folders = ["stacks", "."]
    with suppress(OSError, UnicodeDecodeError):
        about = trees.read(root / "Pulumi.yaml", checkout(root)).decode()
        folders = [*_CONFIG_FOLDER.findall(about), ".", "stacks"]
    paths = [posixpath.normpath(f"{folder}/Pulumi.{stack}.yaml") for folder in folders]
    return next((path for path in paths if (root / path).is_file()), paths[0])


def _with_former(records: Mapping[str, str], trainings: Iterable[Training]) -> Mapping[str, str]:
    """Return the records of earlier runs, those of jobs under their names of today."""
    former = {each.name: name for each in trainings for name in each.formerly if name in records}
    return {**records, **{name: records[old] for name, old in former.items() if name not in records}}


def stack_values(config: Mapping[str, str]) -> tuple[dict[str, Any], list[Violation]]:
    """Return the valid values of a stack's config in the shape of `shapes.Stack`, and all violations.

    Keys of other namespaces do not count. The declarations are returned as they are. A region or a persistent resource
    that breaks a rule is left out, so that nothing is checked or priced by it.
    """
    prefix = f"{NAMESPACE}:"
    own = {key.removeprefix(prefix): _decode(text) for key, text in config.items() if key.startswith(prefix)}
    own = {key: config[f"gcp:{key}"] for key in _OF_PROVIDER if f"gcp:{key}" in config} | own
    given = {key: own[key] for key in own.keys() - SECTIONS}
    values, misshapen = canonicalize(shapes.Stack, given)
    valid_part = ValidPart.of(shapes.Stack, values, misshapen)
    has_target = ("target",) not in valid_part.removed_paths
    problems = valid_part.problems(_of_target) if has_target else []
    # Messages quote values, and a secret's value must not be shown.
    violations = [(each.path, "must be a string" if _is_secret(each.path) else each.message) for each in misshapen]
    violations += [(each.path, each.message) for each in problems]
    if limits.KEY in own:
        violations += (((limits.KEY, *path), message) for path, message in guardrails.empty(own[limits.KEY]))
    invalid = {each.path[0] for each in misshapen}
    invalid |= {each.path[0] for each in problems} & {PERSISTENT_RESOURCE, "region"}
    declarations = {key: value for key, value in own.items() if key in SECTIONS}
    return {**{key: value for key, value in values.items() if key not in invalid}, **declarations}, violations


def _with_shared(config: Mapping[str, str], shared: Mapping[str, Any]) -> dict[str, str]:
    """Return a stack's config with what it takes from shared files. All of that is for the target `gcp`."""
    merged = dict(config)
    if config.get(f"{NAMESPACE}:target") == "gcp":
        for key, value in shared.items():
            own = _decode(config.get(name := f"{NAMESPACE}:{key}", ""))
            if key in MERGED and isinstance(own, dict):
                merged[name] = _encode({**value, **own})
            elif name not in config:
                merged[name] = _encode(value)
    return merged


def _place(stack_file: GivenFile, config: Mapping[str, str], shared: Shared) -> Place:
    """Return the place of a key: in the stack file, or in the shared file that it comes from."""

    def place(path: KeyPath, message: str) -> Problem:
        is_own = not path or path[0] not in shared.places or f"{NAMESPACE}:{path[0]}" in config
        return stack_file.problem(path, message) if is_own else shared.places[str(path[0])](path, message)

    return place


def _encode(value: Any) -> str:
    """Return a value as the engine passes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _project(config: Mapping[str, str]) -> str | None:
    return config.get(f"{NAMESPACE}:project") or config.get("gcp:project")


def _look_up_number(project: str) -> str:
    """Return the number of a project. Raises ProjectNumberUnknown."""
    try:
        return _ask_number(project)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ProjectNumberUnknown(
            f"{NUMBER}: is not given, and Google Cloud does not tell that of {project} ({reason}); "
            f"`gcloud projects describe {project}` shows it"
        ) from error


def _ask_number(project: str) -> str:
    """Ask Google Cloud, by Pulumi's provider and with its credentials."""
    defer_pulumi_gcp()
    from pulumi_gcp.organizations.get_project import get_project

    return str(get_project(project_id=project).number)


def _decode(text: str) -> Any:
    """The engine passes texts as they are, and lists and objects as JSON."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text


def _of_target(values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find what is wrong with the values of a stack file for the target that it chooses."""
    if values["target"] == "gcp":
        yield from cloud.violations(values)
    else:
        message = "is for the target gcp, and the target here is local"
        yield from (((key,), message) for key in shapes.Cloud.__annotations__ if key in values)
    for host in values.get("emulator", {}).get("endpoints", {}):
        path, service = ("emulator", "endpoints", host), _SERVICE.fullmatch(host)
        if service is None:
            yield path, f'"{host}" is no host of a service of Google Cloud, such as bigquery.googleapis.com'
        elif service[1] in SERVICES or service[1].endswith("-aiplatform"):
            yield path, "is a service that the emulator has itself; leave it out"


def _is_secret(path: KeyPath) -> bool:
    return (path[:1] == ("secrets",) and len(path) > 1) or (path[:2] == ("emulator", "secrets") and len(path) > 2)


def _prices() -> Iterator[Problem]:
    """Find why the prices that a variable names cannot be read."""
    try:
        filed_prices()
    except PricesUnusable as error:
        yield Problem(VARIABLE, "", str(error))


def _credentials(place: str, config: Mapping[str, str], secret_keys: Collection[str]) -> Iterator[Problem]:
    """Find credentials in a stack's whole config that others would read, or that jobs would not be submitted with."""
    for key in credentials.exposed(config, secret_keys):
        message = "is not encrypted, so Pulumi shows and stores it as it is; set it again by "
        yield Problem(place, key, f"{message}`pulumi config set --secret {key}`, and revoke what others may have read")
    if "gcp:externalCredentials" in config:
        message = (
            "is taken by Pulumi's Google provider alone, and not for jobs, images and packages; set "
            "GOOGLE_APPLICATION_CREDENTIALS to the credential configuration file of the identity pool instead"
        )
        yield Problem(place, "gcp:externalCredentials", message)


def _sorted(problems: list[Problem]) -> list[Problem]:
    """Return problems in the order of files and lines."""

    def key(problem: Problem) -> tuple[str, int]:
        file, _, line = problem.place.rpartition(":")
        return (file, int(line)) if line.isdecimal() else (problem.place, 0)

    return sorted(problems, key=key)
