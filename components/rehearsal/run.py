"""The command `vertex-training run`: one declared job, with values of your own, in a throw-away local target.

Jobs whose results it uses run before it. Images and packages are built as `pulumi up` on a stack with target `local`
builds them, under the same names, so what is there already is not built again.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from vertex_api.errors import VertexError
from vertex_api.job import job_results
from vertex_api.messages import set_at, show_path, truncate
from vertex_api.names import SUCCEEDED_STATES, TERMINAL_STATES, JobJson, ResourceName, did_you_mean, location_name

from ..errors import ComponentError, DeclarationErrors, Problem
from ..images import builders, registry
from ..images.declaration import is_built_here
from ..images.resource import build_context
from ..jobs.references import levels
from ..packages import SourceDistribution
from ..plan.training import Defaults, Training, parse_spec
from ..runtime import storage, target
from ..runtime.target import LOCAL_PREFIX, Target
from ..schema import interpolation, shapes
from ..schema.formats import PACKAGE_FOLDER
from ..settings.names import slug
from ..settings.offline import SECRET, NoStack, read_stack
from ..settings.settings import NAMESPACE, Settings
from .target import follow, throw_away

VARS = "vars."
_POLL_SECONDS = 0.3
_EXIT_STATUS = re.compile(r"non-zero status of (\d+)")


class RunRefused(ComponentError):
    """A run cannot begin: the message says which argument is wrong."""


def run(name: str, stack: str | None, assignments: Sequence[str], secrets: Sequence[str], output: Path | None) -> int:
    """Run a job, print its log, and return the exit code: that of its container, 1 for another failure, 2 if refused.

    `assignments` are `vars.NAME=VALUE`, or `FIELD.PATH=VALUE` for a field of the job. `secrets` are `NAME`, for the
    value of a variable of that name, or `NAME=@FILE`. Outputs are copied to `output`.
    """
    try:
        file = read_stack(Path.cwd(), stack, "local")
        variables, fields = _split(assignments)
        config = _local(file.config, variables)
        known = _secrets(secrets)
        config[f"{NAMESPACE}:secrets"] = json.dumps({**dict.fromkeys(_declared_secrets(config), SECRET), **known})
        settings = Settings.load_from_config(file.project, file.name, file.root, config)
        chain = _chain(settings, name)
        chain[-1] = _assigned(chain[-1], fields)
        _require_secrets(chain, known)
        os.chdir(file.root)  # paths of declarations are relative to it
        with throw_away() as folder:
            return OneRun(settings, folder, known).run(chain, output)
    except (DeclarationErrors, ComponentError, NoStack, VertexError) as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2


def _split(assignments: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of vars by name, and those of fields by path."""
    variables, fields = dict[str, Any](), dict[str, Any]()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise RunRefused(f"--set: {assignment} must be vars.NAME=VALUE or FIELD=VALUE")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        if key.startswith(VARS):
            variables[key.removeprefix(VARS)] = value
        else:
            fields[key] = value
    return variables, fields


def _local(config: Mapping[str, str], variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the config of a stack as one with target `local` has it, with other vars in it."""
    cloud = {f"{NAMESPACE}:{key}" for key in (*shapes.Cloud.__annotations__, "guardrails", "project")}
    kept = {key: value for key, value in config.items() if key.startswith(f"{NAMESPACE}:") and key not in cloud}
    own = json.loads(kept.get(f"{NAMESPACE}:vars") or "{}")
    return kept | {f"{NAMESPACE}:target": "local", f"{NAMESPACE}:vars": json.dumps({**own, **variables})}


def _declared_secrets(config: Mapping[str, str]) -> list[str]:
    text = config.get(f"{NAMESPACE}:secrets") or "{}"
    return [*json.loads(text)] if text.startswith("{") else []


def _secrets(arguments: Sequence[str]) -> dict[str, str]:
    found = {}
    for argument in arguments:
        name, _, source = argument.partition("=")
        try:
            found[name] = Path(source[1:]).read_text().rstrip("\n") if source.startswith("@") else os.environ[name]
        except KeyError:
            raise RunRefused(f"--secret: the variable {name} is not set; set it, or give {name}=@FILE") from None
    return found


def _chain(settings: Settings, name: str) -> list[Training]:
    """Return a job after all jobs whose results it uses, in the order in which they run. Raises RunRefused."""
    known = {each.name: each for each in settings.plan.trainings if not each.is_adopted}
    if name not in known:
        raise RunRefused(f"{name} is no job of this stack{did_you_mean(name, known)}")
    wanted, new = {name}, {name}
    while new:
        new = set().union(*(known[each].referenced for each in new)) - wanted
        wanted |= new
    level = levels({each: known[each].referenced for each in wanted})
    return [known[each] for each in sorted(wanted, key=lambda each: (level[each], each))]


def _assigned(training: Training, fields: Mapping[str, Any]) -> Training:
    """Return a job with other values in its fields. Raises DeclarationErrors if it is then invalid."""
    if not fields:
        return training
    body = json.loads(json.dumps(training.job.fields))
    for path, value in fields.items():
        try:
            set_at(body, path, value)
        except (KeyError, IndexError, TypeError):
            raise RunRefused(f"--set: {path} is not in {training.name}: a part of the path is missing") from None
    job, problems = parse_spec(training.kind, body, is_adopted=False)
    if job is None or problems:
        raise DeclarationErrors([Problem("--set", show_path(each.path), each.message) for each in problems])
    return Training(training.kind, training.name, job, training.lifecycle, training.referenced, training.place)


def _require_secrets(chain: Sequence[Training], known: Mapping[str, str]) -> None:
    needed = sorted({name for each in chain for name in each.references()["secrets"]} - known.keys())
    if needed:
        options = " ".join(f"--secret {name}" for name in needed)
        reason = "uses secrets, which only Pulumi can decrypt"
        raise RunRefused(f"{chain[-1].name} {reason}; export each as a variable, and give {options}")


class OneRun:
    """One run in a throw-away target on `folder`."""

    def __init__(self, settings: Settings, folder: Path, secrets: Mapping[str, str]) -> None:
        self._settings, self._folder, self._secrets = settings, folder, secrets
        self._bucket = f"{slug(settings.pulumi_project)}-{slug(settings.stack)}"
        self._defaults = Defaults(f"gs://{self._bucket}")
        self._tables: dict[str, dict[str, str]] = {interpolation.JOBS: {}, "images": {}, "packages": {}}

    def run(self, chain: Sequence[Training], output: Path | None) -> int:
        """Run jobs one after another, the last of which counts. Raises ComponentError and VertexError."""
        api = target.resolve(LOCAL_PREFIX + location_name(self._settings.project, self._settings.region))
        for training in chain:
            job = self._run_one(api, training)
            name, state = training.name, str(job["state"])
            if state not in SUCCEEDED_STATES:
                message = job.get("error", {}).get("message", state)
                sys.stderr.write(f"{name}: {state.rpartition('_')[2]}: {' '.join(message.split())}\n")
                match = _EXIT_STATUS.search(message)
                return int(match[1]) if match else 1
            results = job_results(job)
            for key, value in _flat(results):
                self._tables[interpolation.JOBS][f"{name}.{key}"] = value
        place = self._keep(chain[-1].name, output)
        for line in _report(chain[-1].name, results, place):
            print(line, flush=True)  # noqa: T201
        return 0

    def _run_one(self, api: Target, training: Training) -> JobJson:
        for image in sorted(training.references()["images"]):
            self._tables["images"][image] = self._image(image)
        for package in sorted(training.references()["packages"]):
            self._tables["packages"][package] = self._package(package)
        whole = self._defaults.complete(
            training.job, lambda _, declared: declared or f"gs://{self._bucket}/{training.name}"
        )
        fields = interpolation.expand(whole.fields, {**self._tables, "secrets": self._secrets})
        created = api.client.create(
            training.kind, api.parent, fields, check_before=lambda: None, find_created=lambda: None
        )
        name = ResourceName.parse(created["name"])
        print(f"{training.name}: {name.kind.type} {name.id}, {api.links.page(name)}", flush=True)  # noqa: T201
        follow(self._folder, name.id)
        while (job := api.client.require(name))["state"] not in TERMINAL_STATES:
            time.sleep(_POLL_SECONDS)
        return job

    def _image(self, name: str) -> str:
        """Return the URI of an image, which is built if this machine does not have it."""
        image: Any = self._settings.images[name]
        if not is_built_here(image):
            if "uri" not in image:
                raise RunRefused(
                    f"images.{name}: is built by the stack {image['stack']}; give --stack {image['stack']}"
                )
            return str(image["uri"])
        context = build_context(self._settings.root, image)
        uri = f"localhost/{slug(self._settings.pulumi_project)}/{name}:{context.tag}"
        if registry.Daemon().digest(uri) is None:
            values = interpolation.resolve(image.get("secrets", {}), {"secrets": self._secrets})
            builders.choose().build(context, uri, values, partial(print, f"{name}:", flush=True))
        return uri

    def _package(self, name: str) -> str:
        distribution = SourceDistribution.of(self._settings.root, name, self._settings.packages[name])
        uri = f"{self._defaults.folder}/{PACKAGE_FOLDER}/{name}-{distribution.tag}.tar.gz"
        storage.EmulatorBuckets().put(uri, BytesIO(distribution.to_bytes()))
        return uri

    def _keep(self, name: str, output: Path | None) -> Path | None:
        """Copy what a job has written, and return where to; None if it has written nothing."""
        written = self._folder / "gcs" / self._bucket / name
        if not any(path.is_file() for path in written.rglob("*")):
            return None
        place = output or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
        shutil.copytree(written, place, dirs_exist_ok=True)
        return place


def _flat(results: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(results, Mapping):
        for key, value in results.items():
            yield from _flat(value, f"{path}.{key}".removeprefix("."))
    elif not isinstance(results, list):
        yield path, interpolation.as_text(results)


def _report(name: str, results: Mapping[str, Any], place: Path | None) -> Iterator[str]:
    best = results.get("bestTrial") or {}
    if metrics := best.get("metrics"):
        shown = ", ".join(f"{key} {value:.4g}" for key, value in metrics.items())
        parameters = ", ".join(f"{key} {truncate(str(value))}" for key, value in best["parameters"].items())
        yield f"{name}: {shown} in trial {best['id']} ({parameters})"
    yield f"{name}: succeeded; {f'its outputs are in {place}' if place else 'it wrote no outputs'}"
