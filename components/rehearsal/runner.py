"""Runner: declared jobs, run one after another in a throw-away local target; and what a stack file declares for one.

Images and packages are built as `pulumi up` on a stack with target `local` builds them, under the same names, so what
is there already is not built again.
"""

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from vertex_api.errors import visible
from vertex_api.job import TUNING_JOB, Job, job_results
from vertex_api.messages import show_path, truncate, value_at
from vertex_api.names import (
    KINDS,
    SUCCEEDED_STATES,
    TERMINAL_STATES,
    JobJson,
    ResourceName,
    closest_name,
    did_you_mean,
    join_names,
    location_name,
)

from .. import trees
from ..errors import BuildFailed, ComponentError, DeclarationErrors, Problem
from ..images import builders, registry
from ..images.declaration import is_built_here
from ..images.image import build_context
from ..jobs import lookup, metrics
from ..jobs.failures import failure_report, success_notes
from ..jobs.references import levels, referenced_results
from ..packages import SourceDistribution
from ..plan.job_rules import ADOPTED_IS_NOT_RUN
from ..plan.training import LIFECYCLE, Defaults, Training, parse_spec
from ..runtime import emulator, storage, target
from ..runtime.target import LOCAL_PREFIX, Target
from ..schema import interpolation
from ..schema.formats import PACKAGE_FOLDER
from ..schema.source import SourceFile
from ..settings.entries import included
from ..settings.names import slug
from ..settings.offline import SECRET, StackFile, read_stack
from ..settings.settings import NAMESPACE, Settings
from .access import Access, Needs
from .acting import Actor
from .target import follow

VARS = "vars."
_MAX_SEARCHED, _MAX_BYTES = 2_000, 1 << 20
"""How many files of a project are searched for a job, and of which size."""
_POLL_SECONDS = 0.3
_MAX_RECORDED = 20
"""How many metrics, and how many parameters, of a run of an experiment are told."""
_MAX_SECRET_BYTES = 64 << 10
"""Of a version (Secret Manager, "Quotas and limits")."""
# An object in an argument or a variable, as a URI or as the path of the mounted bucket, alone or in a list of several.
_NAMED = re.compile(r"(?:gs://|(?<![\w./-])/gcs/)([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])((?:/[^\s,;'\"`|<>()$]*)?)")


_EXPERIMENTS = {"experiment", "experimentRun"}
_LOCATION = re.compile("^projects/[^/]+/locations/[^/]+")


class RunRefused(ComponentError):
    """A run cannot begin: the message says which argument is wrong, or what is missing."""


def split_assignments(assignments: Sequence[str], forms: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return of `--set` arguments the values of vars by name, and all others by key. Raises RunRefused."""
    variables, others = dict[str, Any](), dict[str, Any]()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise RunRefused(f"--set: {assignment} must be {forms}")
        try:
            value = yaml.safe_load(text)
            json.dumps(value)
        except (yaml.YAMLError, TypeError, ValueError, RecursionError):  # what is a date in YAML is a text in JSON
            value = text
        if key.startswith(VARS):
            variables[key.removeprefix(VARS)] = value
        else:
            others[key] = value
    return variables, others


def refuse_bare_vars(fields: Iterable[str], known: Collection[str], variables: Collection[str]) -> None:
    """Raise RunRefused for a path that begins with a var and not with a known field: `lr` in place of `vars.lr`."""
    for path in fields:
        name = re.split(r"[.\[]", path)[0]
        if to_camel(name) in known or (closest_name(name, known) and name not in variables):
            continue
        if variable := closest_name(name, variables):
            raise RunRefused(f"--set: {name}: unknown field; did you mean {VARS}{variable}?")


class Source:
    """What a stack file declares, with values for its secrets; as a stack with target `local` has it.

    Paths of declarations are relative to its `root`, which must be the current folder of whoever uses its settings.
    With an `actor`, jobs know the stack's own project.
    """

    def __init__(self, file: StackFile, secrets: Mapping[str, str], actor: Actor | None = None) -> None:
        self.root, self.stack, self.secrets, self.actor = file.root, file.name, secrets, actor
        self.file = file
        self._project = file.project
        text = file.config.get(f"{NAMESPACE}:secrets") or "{}"
        declared = [*json.loads(text)] if text.startswith("{") else []
        values = json.dumps({**dict.fromkeys(declared, SECRET), **secrets})
        self._config = {**file.as_local(), f"{NAMESPACE}:secrets": values}
        if actor and file.cloud_project:
            self._config[f"{NAMESPACE}:project"] = file.cloud_project

    @classmethod
    def read(
        cls,
        folder: Path,
        stack: str | None,
        secrets: Sequence[str],
        acting: str | None = None,
        write: Sequence[str] = (),
        fetch_gb: int | None = None,
    ) -> "Source":
        """Read that of a stack, or of the one with target `local`, in the project that a folder is in.

        `secrets` are `NAME`, for the value of a variable of that name, or `NAME=@FILE`; `acting`, `write` and
        `fetch_gb` are those of `Actor.of`. Raises NoStack, RunRefused, ActingRefused and DeclarationErrors.
        """
        found = {}
        for argument in secrets:
            name, _, source = argument.partition("=")
            try:
                found[name] = _secret_of(source[1:]) if source.startswith("@") else os.environ[name]
            except KeyError:
                reason = f"the variable {name} is not set; set it, or give {name}=@FILE"
                raise RunRefused(f"--secret: {reason}") from None
        file = read_stack(folder, stack, "local")
        return cls(file, found, Actor.of(acting, write, file, fetch_gb))

    def of(self, root: Path) -> "Source":
        """Return that of the same stack in another checkout of the project. Raises NoStack."""
        return Source(read_stack(root, self.stack), self.secrets, self.actor)

    def settings(self, variables: Mapping[str, Any], given: Collection[str] = ()) -> Settings:
        """Return the settings with other values of vars; `--set` has those `given`. Raises DeclarationErrors."""
        own = json.loads(self._config.get(f"{NAMESPACE}:vars") or "{}")
        config = {**self._config, f"{NAMESPACE}:vars": json.dumps({**own, **variables})}
        return Settings.load_from_config(self._project, self.stack, self.root, config, given=given)

    def not_runnable(self, name: str, trainings: Sequence[Training]) -> str:
        """Say why a name is no job that can run: it is adopted, in a file that is not included, or nowhere."""
        known = {each.name for each in trainings if not each.is_adopted}
        for training in trainings:
            if training.name == name and training.is_adopted:
                return str(training.place((LIFECYCLE, "adopt"), ADOPTED_IS_NOT_RUN))
        files, _ = included(self.root, SourceFile(""), json.loads(self._config.get(f"{NAMESPACE}:include") or "[]"))
        includes, place = join_names([*files]) or "no files", f"{NAMESPACE}:include of the stack {self.stack}"
        if declaring := next(self._declaring(name, files), ""):
            return f"{name} is no job of this stack: {declaring} declares it; add that file to {place} ({includes})"
        message = f"{name} is no job of this stack{did_you_mean(name, known)}"
        if closest_name(name, known):
            return message
        return f"{message}; name the file that declares it in {place}, which has {includes}"

    def _declaring(self, name: str, included: Collection[str]) -> Iterator[str]:
        """Yield the files of the project that declare a job and are not included."""
        for file in islice(_documents(self.root), _MAX_SEARCHED):
            shown, content = str(file.relative_to(self.root)), b""
            with suppress(OSError):
                content = trees.read(file, self.root, _MAX_BYTES)
            if shown not in included and name.encode() in content:
                declared, _ = SourceFile(shown, content).parse()
                if any(isinstance(jobs := declared.get(section), dict) and name in jobs for section in KINDS):
                    yield shown

    def missing_secrets(self, trainings: Iterable[Training]) -> str:
        """Say which secrets jobs use that have no value, and how to give them; "" if there are none."""
        return self.missing({name for each in trainings for name in each.references()["secrets"]})

    def missing(self, secrets: Iterable[str]) -> str:
        """Say which of some secrets have no value, and how to give them; "" if there are none."""
        needed = sorted({*secrets} - self.secrets.keys())
        if not needed:
            return ""
        options = " ".join(f"--secret {name}" for name in needed)
        return f"uses secrets, which only Pulumi can decrypt; export each as a variable, and give {options}"


def _documents(root: Path) -> Iterator[Path]:
    """Yield the YAML and JSON files of a project, without hidden folders and what is installed."""
    for folder, folders, files in os.walk(root):
        visible = (each for each in sorted(folders) if each[0] != "." and each != "node_modules")
        folders[:] = [each for each in visible if not (Path(folder) / each / "pyvenv.cfg").is_file()]
        yield from (Path(folder) / each for each in sorted(files) if each.endswith((".yaml", ".yml", ".json")))


def in_order(known: Mapping[str, Training], names: Iterable[str]) -> list[Training]:
    """Return jobs and all jobs whose results they use, each after those and after what its `lifecycle.after` names."""
    used = {name: references(each, known) for name, each in known.items()}
    wanted = new = set(names)
    while new:
        new = set().union(*(used[each] for each in new)) - wanted
        wanted = wanted | new
    level = levels({each: used[each] | (known[each].upstream & wanted) for each in wanted})
    return [known[each] for each in sorted(wanted, key=lambda each: (level[each], each))]


def references(training: Training, known: Mapping[str, Training]) -> set[str]:
    """Return the jobs among those known whose results a job uses, also in a run of a schedule."""
    named = {interpolation.split_result(each, known)[0] for each in referenced_results(training.job)}
    return {*named, *training.referenced} & known.keys()


def changed(training: Training, fields: Mapping[str, Any], option: str) -> Training:
    """Return a job with other fields. Raises DeclarationErrors, which name the `option`, if it is then invalid."""
    job, problems = parse_spec(training.kind, fields, training.lifecycle)
    if job is None or problems:
        raise DeclarationErrors([Problem(option, show_path(each.path), each.message) for each in problems])
    return replace(training, spec=job)


@dataclass(frozen=True)
class Ended:
    """A job that has ended, with the tuning job of a pipeline; `submitted` has its fields, `outputs` what it wrote.

    `earlier` are the files that were there before, with time and size: the stack's own runs may have left them.
    `metrics` are by name. In `submitted` are stand-ins for secrets. `used` is what the emulator tells of its replicas;
    `buckets` are those that it touched, without the run's own. `written` are places whose objects are no inputs from
    here: the output folders of the jobs that have run so far, and buckets of Google's. `notes` are what is to be said
    of a success, `needs` the permissions of its calls.
    """

    job: JobJson
    submitted: Job
    outputs: Path
    failure: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    used: Sequence[Mapping[str, Any]] = ()
    buckets: Sequence[str] = ()
    written: Sequence[str] = ()
    notes: Sequence[str] = ()
    earlier: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)

    @property
    def succeeded(self) -> bool:
        """Whether it has succeeded."""
        return self.job["state"] in SUCCEEDED_STATES

    @cached_property
    def results(self) -> dict[str, Any]:
        """Its results."""
        return job_results(self.job)

    @cached_property
    def tree(self) -> trees.Tree:
        """The files that it has written, and what else it left beside them."""
        files, others = trees.walk(self.outputs)
        return trees.Tree([file for file in files if self.earlier.get(file) != _stamp(file)], others)


def _stamp(file: Path) -> tuple[int, int]:
    found = file.lstat()
    return found.st_mtime_ns, found.st_size


class Runner:
    """Runs jobs in a throw-away target on `folder`, with its `buckets`; `say` takes lines on what goes on.

    `access` is what they may do.

    Raises ComponentError and VertexError: RunRefused for what cannot be run here.
    """

    def __init__(self, source: Source, folder: Path, say: Callable[[str], None], access: Access | None = None) -> None:
        self._source, self.folder, self.say, self._access = source, folder, say, access or Access()
        self.buckets = folder / "gcs"
        self._broken: dict[str, BuildFailed] = {}
        """Images that cannot be built, by URI: jobs share them."""
        self._warned: set[str] = set()
        self._results: dict[str, str] = {}
        self._written: list[str] = []
        self._real: set[str] = set()
        """The buckets that are Google's, of those that jobs name."""
        self._fetched: set[str] = set()

    def run(
        self,
        settings: Settings,
        training: Training,
        *,
        follow_log: bool,
        place: str = "",
        during: Callable[[JobJson], object] = lambda _: None,
    ) -> Ended:
        """Run a job of settings, after those whose results it uses, and wait for it; print its log if wanted.

        With a `place` of the bucket for its outputs, other jobs do not use them. `during` gets the job again and again.
        """
        emulator.replace_secrets(settings.project, self._source.secrets)
        emulator.replace_stand_ins(settings.project, settings.emulator.get("endpoints", {}))
        api = target.resolve(LOCAL_PREFIX + location_name(settings.project, settings.region))
        if self._source.actor:
            self._source.actor.require_door()
        job, shown = (_at_home(each, api.parent) for each in self._submitted(settings, training, place))
        if (experiment := job.job_spec.get("experiment")) and emulator.make_experiment(experiment, training.name):
            self.say(
                f"{training.name}: the experiment {experiment.rpartition('/')[2]} is made for this run, and goes with "
                "it; on Vertex AI it has to be there"
            )
        buckets = {uri.removeprefix("gs://").partition("/")[0] for uri in named(job.job_spec["workerPoolSpecs"])}
        if actor := self._source.actor:
            asked = buckets - self._real - {_bucket(settings)}
            unknown = sorted(each for each in asked if not (self.buckets / each).is_dir())
            self._real |= actor.real(unknown, job, self.say)
            emulator.replace_identity(settings.project, actor.entry(self._real))
        self._access.apply(settings, training.name, job, _bucket(settings))
        # Nobody knows here which buckets there are on Vertex AI: a job may write to those that it names.
        for each in sorted(buckets):
            bucket = self.buckets / each
            bucket.mkdir(parents=True, exist_ok=True)
            bucket.chmod(0o777)
        if actor:
            new = sorted(training.data - self._fetched)
            actor.fetch([settings.data[each] for each in new], self._real, self.buckets, job, self.say)
            self._fetched |= training.data
        earlier = {file: _stamp(file) for file in trees.walk(self._outputs(job)).files}
        emulator.request("POST", "buckets/remember", {}, training.name)
        created = api.client.create(
            training.kind,
            api.parent,
            job.fields,
            check_before=lambda: None,
            find_created=lambda: None,
            allowed=training.allowed,
        )
        name = ResourceName.parse(created["name"])
        self.say(f"{training.name}: {name.kind.type} {name.id}, while it runs: {api.links.page(name)}")
        if follow_log:
            follow(self.folder, name.id)
        while (found := api.client.require(name))["state"] not in TERMINAL_STATES:
            during(found)
            time.sleep(_POLL_SECONDS)
        ended = self._ended(api, settings, training, shown, found, earlier)
        if ended.succeeded and not place:
            for key, value in _flat({"name": found["name"], **ended.results}):
                self._results[f"{training.name}.{key}"] = value
        return ended

    def _submitted(self, settings: Settings, training: Training, place: str) -> tuple[Job, Job]:
        """Return a job with all that it leaves out, and without references; and the same with stand-ins for secrets."""
        bucket = f"gs://{_bucket(settings)}"
        names = training.references()
        tables = {
            interpolation.JOBS: self._results,
            "images": {each: self._image(settings, each) for each in sorted(names["images"])},
            "packages": {each: self._package(settings, each, bucket) for each in sorted(names["packages"])},
        }
        own = f"{bucket}/{place}" if place else ""
        whole = Defaults(bucket, self._source.actor.job_spec if self._source.actor else {}).complete(
            training.job, lambda _, declared: own or declared or f"{bucket}/{training.name}"
        )
        secrets = self._source.secrets
        both = ({**tables, "secrets": values} for values in (secrets, dict.fromkeys(secrets, SECRET)))
        job, shown = (whole.replace(interpolation.expand(whole.fields, each)) for each in both)
        return job, shown

    def _image(self, settings: Settings, name: str) -> str:
        """Return the URI of an image, which is built if this machine does not have it."""
        image: Any = settings.images[name]
        if not is_built_here(image):
            if "uri" not in image:
                raise RunRefused(
                    f"images.{name}: is built by the stack {image['stack']}; give --stack {image['stack']}"
                )
            return str(image["uri"])
        context = build_context(settings.root, image)
        uri = f"localhost/{slug(settings.pulumi_project)}/{name}:{context.tag}"
        if uri in self._broken:
            raise self._broken[uri]
        if context.warning and uri not in self._warned:
            self._warned.add(uri)
            self.say(f"{name}: {context.warning}")
        if registry.Daemon().digest(uri) is None:
            declared = image.get("secrets", {})
            # Unresolved, a reference would become the secret.
            used = (reference.partition(".")[2] for _, reference in interpolation.references(declared))
            if missing := self._source.missing(used):
                raise RunRefused(f"images.{name} {missing}")
            values = interpolation.resolve(declared, {"secrets": self._source.secrets})
            try:
                builders.build(context, uri, values, lambda line: self.say(f"{name}: {line}"))
            except BuildFailed as error:
                self._broken[uri] = error
                raise
        return uri

    def _package(self, settings: Settings, name: str, bucket: str) -> str:
        distribution = SourceDistribution.of(settings.root, name, settings.packages[name])
        uri = f"{bucket}/{PACKAGE_FOLDER}/{name}-{distribution.tag}.tar.gz"
        storage.EmulatorBuckets().put(uri, BytesIO(distribution.to_bytes()))
        return uri

    def _outputs(self, job: Job) -> Path:
        return self.buckets / _output_uri(job).removeprefix("gs://").rstrip("/")

    def _ended(
        self,
        api: Target,
        settings: Settings,
        training: Training,
        job: Job,
        found: JobJson,
        earlier: Mapping[Path, tuple[int, int]],
    ) -> Ended:
        tuning = lookup.tuning_job(api, found)
        whole = found if tuning is found else {**found, TUNING_JOB: tuning}
        self._written.append(_output_uri(job))
        usage = emulator.request("GET", f"jobs/{ResourceName.parse(found['name']).id}/usage", None, training.name) or {}
        touched = [each for each in usage.get("buckets", ()) if each != _bucket(settings)]
        has_failed = whole["state"] not in SUCCEEDED_STATES
        failure = failure_report(api, training.name, whole) if has_failed else ""
        measured, lines = metrics.read(LOCAL_PREFIX + api.parent, {training.name: whole})
        for line in () if has_failed else lines:
            self.say(line)
        empty = () if has_failed else metrics.without_model(LOCAL_PREFIX + api.parent, {training.name: whole})
        notes = [] if has_failed else success_notes(api, whole, is_empty=bool(empty))
        notes += _recorded(training.name, job, whole)
        values, replicas = measured.get(training.name, {}), usage.get("replicas", ())
        outputs, written = self._outputs(job), [*self._written, *(f"gs://{bucket}" for bucket in sorted(self._real))]
        needs = self._access.needs(usage.get("permissions", ()), job, _bucket(settings))
        return Ended(whole, job, outputs, failure, values, replicas, touched, written, notes, earlier, needs)


def _at_home(job: Job, parent: str) -> Job:
    """Return a job whose experiment, and its run, are of a project and region of the emulator, and not of Google's."""
    fields = json.loads(json.dumps(job.fields))
    job_spec = value_at(fields, job.job_spec_path)
    for key in _EXPERIMENTS & job_spec.keys():
        job_spec[key] = _LOCATION.sub(parent, job_spec[key], count=1)
    return job.replace(fields)


def _recorded(name: str, job: Job, found: JobJson) -> Iterator[str]:
    """Yield what a job has recorded of its run of an experiment, which goes with the emulator."""
    experiment = job.job_spec.get("experiment", "")
    run = job.job_spec.get("experimentRun") or f"{experiment}-{ResourceName.parse(found['name']).id}"
    recorded = emulator.recorded(run, name) if experiment else {}
    shown = [
        f"{key} {truncate(f'{value:.4g}' if isinstance(value, float) else str(value))}"
        for values in (recorded.get("_metrics"), recorded.get("_params"))
        for key, value in islice((values or {}).items(), _MAX_RECORDED)
    ]
    if shown:
        yield visible(f"in {run.rpartition('/')[2]} of its experiment: {', '.join(shown)}")


def _output_uri(job: Job) -> str:
    return str(job.job_spec["baseOutputDirectory"]["outputUriPrefix"])


def _secret_of(file: str) -> str:
    """Return the text of a file or pipe. Raises RunRefused for what is no text or without an end, and OSError."""
    with Path(file).open("rb") as stream:
        content = stream.read(_MAX_SECRET_BYTES + 1)
    if len(content) > _MAX_SECRET_BYTES:
        raise RunRefused(f"--secret: {file} has more than {_MAX_SECRET_BYTES >> 10} KiB, the most of Secret Manager")
    try:
        return content.decode().rstrip("\n")
    except UnicodeDecodeError:
        raise RunRefused(
            f"--secret: {file} is no UTF-8, as the values of variables are; encode it, as by base64"
        ) from None


def named(value: Any) -> Iterator[str]:
    """Yield the URIs in all texts of a value, without what follows a wildcard's folder and without `/` at the end."""
    if isinstance(value, str):
        for match in _NAMED.finditer(value):
            yield f"gs://{match[1]}{match[2].rstrip('/.')}"
    else:
        for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
            yield from named(each)


def _bucket(settings: Settings) -> str:
    return f"{slug(settings.pulumi_project)}-{slug(settings.stack)}"


def _flat(results: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(results, Mapping):
        for key, value in results.items():
            yield from _flat(value, f"{path}.{key}".removeprefix("."))
    elif not isinstance(results, list):
        yield path, interpolation.as_text(results)
