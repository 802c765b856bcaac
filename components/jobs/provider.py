"""The work of the providers of jobs: a job is submitted once or adopted, found again, compared, and removed."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from pulumi import dynamic
from pulumi.output import Unknown

from vertex_api.errors import NotFound, without_log_link
from vertex_api.job import TUNING_JOB, stored_job
from vertex_api.messages import KeyPath, show_path, value_at
from vertex_api.names import (
    CUSTOM_JOB,
    HYPERPARAMETER_TUNING_JOB,
    TRAINING_PIPELINE,
    JobJson,
    Kind,
    ResourceName,
    short_state,
)
from vertex_api.pipelines import backing_job_name
from vertex_api.scalars import quote
from vertex_api.studies import count_ended, find_best

from ..errors import SubmitFailed, closed
from ..plan import job_rules
from ..plan.training import deletion_policy, parse_spec
from ..runtime import engine, holders, pacing, target
from ..runtime.resource import Provider
from ..runtime.target import Target, one_line_errors
from ..schema import interpolation
from ..schema.interpolation import Tables
from . import enforcement, lookup, moves, runs, submission
from .inputs import REPLACING, REPLACING_ADOPTED, Inputs
from .removal import FOUND_REASON, reason_to_stay, remove, stays, submitting_stack, was_declared

_MOST_ADVISED = 20


class JobProvider(Provider):
    """Jobs are immutable: a new spec is a new job. Only `delete` may take a while, until a cancelled job has ended."""

    kind: ClassVar[Kind]
    input_names = (
        "owner",
        "parent",
        "spec",
        "secrets",
        "jobs",
        "tensorboard",
        "data",
        "verify",
        "rerun",
        "adopt",
        "lifecycle",
        moves.NEXT_RUN,
    )

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in self.input_names if news.get(name) is not None}
        urn = engine.requested_urn()
        if olds:
            holders.current().see(urn)
        elif holders.current().is_new(urn):
            submission.submitted().want(urn, _key(self.kind, inputs))
        inputs.pop(moves.NEXT_RUN, None)
        derived = news.get(moves.DERIVED) or {}
        if "spec" not in inputs:
            # With --continue-on-error, it has outputs of a resource that has failed: the engine skips this job.
            return dynamic.CheckResult(inputs, [])
        adopt, declared = inputs.get("adopt"), inputs["spec"]
        lifecycle = {**(inputs.get("lifecycle") or {}), **({"adopt": adopt} if adopt else {})}
        spec, problems = parse_spec(self.kind, declared, lifecycle)
        failures = [
            dynamic.CheckFailure(f"spec.{problem.place}", problem.message)
            for problem in problems
            if not isinstance(value_at(declared, problem.path), Unknown)
        ]
        if adopt:
            project, _, region = inputs["parent"].split("/")[-3:]
            messages = job_rules.adoption_problems(self.kind, adopt, project, None, region)
            failures += [dynamic.CheckFailure("adopt", message) for message in messages]
            if inputs.get("rerun"):
                failures.append(dynamic.CheckFailure("rerun", job_rules.ADOPTED_IS_NOT_RUN))
        elif spec:
            for path, message in job_rules.labels(spec.fields.get("labels", {})):
                failures.append(dynamic.CheckFailure(".".join(("spec.labels", *map(str, path))), message))
            for path, message in enforcement.violations(spec, inputs["parent"], _name(inputs)):
                # A limit of cost is the program's to report, with the jobs beside it; the submission keeps it again.
                if path:
                    failures.append(dynamic.CheckFailure(show_path(("spec", *path)), message))
        if spec:
            inputs["spec"] = moves.placed(spec, derived).fields
            inputs = moves.carried(self.kind, olds, inputs, derived)
        if not olds:
            is_declared = pacing.current().count.expects(_name(inputs))
            _count_submissions(inputs, None, is_replaced=False)
            if holders.current().is_new(urn) and not _announce(self.kind, inputs, urn) and not is_declared:
                _advise(self.kind, inputs, urn, derived)
        shown, last = closed(failures, [failure.reason for failure in failures])
        return dynamic.CheckResult(inputs, [*shown, *(dynamic.CheckFailure("spec", line) for line in last)])

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Leave differences to Pulumi. A job is replaced by one to adopt, unless that is the job itself."""
        is_other_job = bool(news.get("adopt")) and not _is_same_job(news["adopt"], id_)
        replacing = REPLACING_ADOPTED if news.get("adopt") else REPLACING
        is_edited = any(olds.get(name) != news.get(name) for name in replacing)
        if is_edited and engine.leaves_out(engine.requested_urn()):
            # The engine replaces with a job what depends on it, by the inputs that the state has of that.
            raise SubmitFailed(
                f"{_name(news)}: would run again with the inputs of its last run, as `--target` or `--exclude` leaves "
                "it out and what it uses is replaced; add --target-dependents, or leave out both"
            )
        moves.waiting().add(_name(news), news)
        _count_submissions(news, olds, is_replaced=is_other_job or is_edited)
        return dynamic.DiffResult(replaces=["adopt"] if is_other_job else None)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        outputs = self._outputs(props)
        return dynamic.CreateResult(str(outputs["run"]["name"]), outputs)

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        if news.get("adopt"):
            return dynamic.UpdateResult(self._outputs(news))
        return dynamic.UpdateResult({**news, **_kept(olds), "run": olds["run"]})

    def _outputs(self, props: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a resource once its job exists: adopted by name, found again, or submitted."""
        inputs = Inputs.parse(self.kind, props)
        with one_line_errors(inputs.error_prefix):
            api = target.resolve(inputs.parent)
            results = lookup.referenced_values(api, inputs)
            tables = inputs.tables(results)
            urn, is_found = engine.requested_urn(), False
            if inputs.adopt:
                job = _adopt(api, inputs, tables)
            else:
                job, is_found = submission.submit(api, inputs, tables, urn)
            holders.current().take(urn, job["name"])
            submission.submitted().got(urn)
            kept = _kept({"results": results, holders.FOUND: is_found})
            return {**props, **kept, "run": _run(api, job, inputs.parent)}

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        inputs = Inputs.parse(self.kind, props)
        with one_line_errors(f"{inputs.name}: not read"):
            api = target.resolve(inputs.parent)
            try:
                job = api.client.require(ResourceName.parse(id_), is_whole=bool(inputs.allowed))
            except NotFound:
                return dynamic.ReadResult(None, {})
            run = _run(api, job, inputs.parent, (props.get("run") or {}).get(runs.TOOK))
        if change := run_change(inputs.name, props.get("run") or {}, run):
            # A refresh shows changes of inputs only.
            print(change, flush=True)  # noqa: T201
        tables = inputs.tables(props.get("results") or {})
        actual = stored_job(self.kind, job).fields
        spec = drifted_spec(inputs.spec.fields, actual, tables)
        return self.read_result(id_, {**props, "spec": spec}, **_kept(props), run=run)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Delete the job, cancel it, or leave it as it is, as `lifecycle.onDelete` says."""
        inputs, name = Inputs.parse(self.kind, props), ResourceName.parse(id_)
        urn = engine.requested_urn()
        if other := submission.submitted().wanted_by(urn, id_, inputs.token, _place(self.kind, inputs.owner)):
            shown = holders.tail(other)
            raise SubmitFailed(
                f"{inputs.name}: not deleted: {shown} goes on with it, once it is created; run this again"
            )
        submission.submitted().settle(id_)
        others = holders.current().release(urn, id_)
        if inputs.on_delete == "keep":
            return
        if others.holder:
            holders.current().goes_on(inputs.name, others.holder)
            return
        with one_line_errors(f"{inputs.name}: not deleted"):
            api = target.resolve(inputs.parent)

            def is_spared(job: JobJson) -> bool:
                if not others.is_known:
                    reason: str | None = "the state cannot be read, and may have it under another URN"
                else:
                    reason = FOUND_REASON if props.get(holders.FOUND) else reason_to_stay(job, urn)
                if reason:
                    print(stays(api, name, inputs.name, reason), flush=True)  # noqa: T201
                return reason is not None

            remove(api.client, name, inputs.name, keep_record=inputs.on_delete == "cancel", is_spared=is_spared)


class CustomJobProvider(JobProvider):
    """CustomJob: one run of a container or a Python package, on one machine or several."""

    kind = CUSTOM_JOB


class HyperparameterTuningJobProvider(JobProvider):
    """HyperparameterTuningJob: many runs, each with other parameters."""

    kind = HYPERPARAMETER_TUNING_JOB


class TrainingPipelineProvider(JobProvider):
    """TrainingPipeline: runs one of the two others, and may upload the model that it trains."""

    kind = TRAINING_PIPELINE


def _count_submissions(news: Mapping[str, Any], olds: Mapping[str, Any] | None, *, is_replaced: bool) -> None:
    """Count the submissions for a job with the inputs `news`; `olds` is None for a new one.

    The last job of a run also prints their total, if it exceeds the pace, and the jobs that wait for new labels. Of
    the jobs of a program none is known to be the last one.
    """
    submissions = 0
    if olds is None or is_replaced:
        submissions += not news.get("adopt")
    if olds is not None and is_replaced:
        submissions += deletion_policy(olds.get("lifecycle") or {}, is_adopted=bool(olds.get("adopt"))) == "delete"
    name, is_declared = _name(news), pacing.current().count.expects(_name(news))
    is_last = pacing.current().decide(name, submissions, target.pace(news["parent"]))
    if (is_last or not is_declared) and (line := moves.waiting().take_line(is_last=is_last)):
        print(line, flush=True)  # noqa: T201


def _name(inputs: Mapping[str, Any]) -> str:
    """Return the name of the resource."""
    return str(inputs["owner"].rpartition("/")[2])


def _key(kind: Kind, news: Mapping[str, Any]) -> str:
    """Return what tells which job a new resource is to have; of one that is not known, what the resource is."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        return news.get("adopt") or Inputs.parse(kind, news).token
    return _place(kind, str(news.get("owner")))


def _place(kind: Kind, owner: str) -> str:
    return f"{kind.type}/{owner}"


def _announce(kind: Kind, news: Mapping[str, Any], urn: str) -> bool:
    """Print that the state has the job of a new resource under another URN, and return whether it has."""
    state = holders.current().own_state(urn)
    if state is None or urn in state.inputs:
        return False
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # unknown yet, or misshapen
        inputs = Inputs.parse(kind, news)
        is_had = inputs.adopt in state.ids or any(
            type_ == kind.type and was_declared(inputs, given) for type_, given in state.inputs.values()
        )
        if is_had:
            holders.current().goes_on(inputs.name, urn)
        return is_had
    return False


def _advise(kind: Kind, news: dict[str, Any], urn: str, derived: Mapping[str, Any]) -> None:
    """Print that a new job of a program runs what another one has run that this run has not come to, if so.

    It may come yet: nothing tells a provider what is gone. The ledger knows that of declared jobs (`identity.renamed`).
    """
    held, (place, _, name) = holders.current(), urn.rpartition("::")
    if len(held.advised) == _MOST_ADVISED:  # each looks at all jobs of the state
        return
    held.advised.add(urn)
    state = held.own_state(urn)
    for other, (type_, given) in state.inputs.items() if state and urn not in state.inputs else ():
        former_place, _, former = other.rpartition("::")
        if type_ != kind.type or former_place != place or held.has_seen(other):
            continue
        with suppress(KeyError, TypeError, ValueError, AttributeError):  # unknown yet, or misshapen
            if moves.carried(kind, given, news, derived) is not news:
                key = f'aliases=[pulumi.Alias(name="{former}")]'
                print(f"{name}: runs what {former} has run; if that is gone, go on with its run by {key}", flush=True)  # noqa: T201
                return


def _is_same_job(name: str, other_name: str) -> bool:
    """Return whether two resource names mean one job, though one may have the project's number in place of its ID."""
    one, other = ResourceName.parse(name), ResourceName.parse(other_name)
    same_project = one.project == other.project or one.project.isdigit() != other.project.isdigit()
    return same_project and one[1:] == other[1:]


def _adopt(api: Target, inputs: Inputs, tables: Tables) -> JobJson:
    """Return the job to adopt. Raises VertexError, and SubmitFailed if it differs from what is declared."""
    job = api.client.require(ResourceName.parse(inputs.adopt or ""), is_whole=bool(inputs.allowed))
    if submitter := submitting_stack(job, inputs.stack):
        advice = "set `onDelete: keep` there before it leaves that stack"
        print(f"{inputs.name}: stack {submitter} has submitted {inputs.adopt}; {advice}", flush=True)  # noqa: T201
    actual = stored_job(inputs.spec.kind, job).fields
    if lines := list(_differences(inputs.spec.fields, actual, tables)):
        advice = "declare what it has, or take lifecycle.adopt out to run what is declared"
        headline = f"{inputs.error_prefix}, as it is not the job that is declared:"
        raise SubmitFailed("\n".join([headline, *lines, advice]))
    return job


def _differences(declared: Any, actual: Any, tables: Tables, path: KeyPath = ()) -> Iterator[str]:
    """Yield a line for each declared field in which a job differs, with both values. Other fields may be anything."""
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        for key, value in declared.items():
            # A message that the job lacks equals an empty one.
            empty: Any = {} if isinstance(value, Mapping) else None
            yield from _differences(value, actual.get(key, empty), tables, (*path, key))
    elif isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        for index, pair in enumerate(zip(declared, actual, strict=True)):
            yield from _differences(*pair, tables, (*path, index))
    elif not _is_equal(declared, actual, tables):
        yield f"  {show_path(path)}: {_describe_difference(declared, actual, tables)}"


def _describe_difference(declared: Any, actual: Any, tables: Tables) -> str:
    """Return both values, without secrets."""
    if any(reference.startswith("secrets.") for _, reference in interpolation.references(declared)):
        return f"the job has another value than {quote(declared)}"  # which may be a secret too
    if isinstance(declared, list) and isinstance(actual, list) and isinstance(declared[0], Mapping):
        return f"{len(declared)} declared, and the job has {len(actual)}"
    shown = "nothing" if actual is None else quote(_hide_secrets(actual, tables))
    return f"{quote(declared)} declared, and the job has {shown}"


def drifted_spec(declared: Any, actual: Any, tables: Tables) -> Any:
    """Return the declared fields as the service holds them: equal to `declared` unless something in it differs.

    Fields that only the service has (its defaults) are left out. References in `declared` stay where the service holds
    their values, which `tables` has by table (`secrets`, `jobs`) and name.
    """
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        fields = {key: drifted_spec(value, actual.get(key), tables) for key, value in declared.items()}
        return {key: value for key, value in fields.items() if value is not None}
    if isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        return [drifted_spec(*pair, tables) for pair in zip(declared, actual, strict=True)]
    return declared if _is_equal(declared, actual, tables) else _hide_secrets(actual, tables)


def _is_equal(declared: Any, actual: Any, tables: Tables) -> bool:
    """Return whether a declared value equals, as a whole, the service's: defaults inside it count as differences."""
    if actual is None:
        # Proto JSON leaves zeros out; the zero of an enum is its name for "not specified".
        return not declared or str(declared).endswith("_UNSPECIFIED")
    submitted = interpolation.expand(declared, tables)
    # The service ends the URI of a folder with a slash (discovery document, GcsDestination).
    return bool(actual == submitted or (isinstance(submitted, str) and actual == f"{submitted}/"))


def _hide_secrets(value: Any, tables: Tables) -> Any:
    """Return a value with references in place of the values of secrets."""
    longest_first = sorted(tables.get("secrets", {}).items(), key=lambda item: -len(item[1]))

    def hide(text: str) -> str:
        for name, secret in longest_first:
            text = text.replace(secret, f"${{secrets.{name}}}") if secret else text
        return text

    return interpolation.map_texts(value, hide)


def _kept(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return those outputs that stay as they were when the job was submitted: the values of its references to results
    of other jobs, and whether it was found.
    """
    return {key: outputs[key] for key in ("results", holders.FOUND) if outputs.get(key)}


def _run(api: Target, job: Mapping[str, Any], parent: str, took: str | None = None) -> dict[str, Any]:
    """Return what a refresh shows of a job. It changes only with the job, or the next refresh would show a change.

    `took` is what an earlier refresh has found that it took: prices may have changed since.
    """
    logged_job = ResourceName.parse(backing_job_name(job) or job["name"])
    run = {
        "name": job["name"],
        "state": job["state"],
        "page": api.links.page(ResourceName.parse(job["name"])),
        "logs": api.links.logs(logged_job),
    }
    if "error" in job:
        run["error"] = without_log_link(job["error"].get("message", ""))
    tuning_job = lookup.tuning_job(api, job)
    if ended := count_ended(tuning_job):
        run["trials"] = {"ended": ended, "of": int(tuning_job["maxTrialCount"])}
        if best_trial := find_best(tuning_job):
            run["bestTrial"] = best_trial
    whole = job if tuning_job is job else {**job, TUNING_JOB: tuning_job}
    if took := took or runs.took(parent, whole, run.get("bestTrial", {}).get("metrics")):
        run[runs.TOOK] = took
    return run


def run_change(job_name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return a line on a job whose output `run` has changed; None if it has not."""
    if old == new:
        return None
    before = old.get("state", new["state"])
    arrow = f"{short_state(before)} → " if before != new["state"] else ""
    done = f", {new['trials']['ended']} of {new['trials']['of']} trials done" if "trials" in new else ""
    error = f": {new['error']}" if new.get("error") else ""
    return f"{job_name}: {arrow}{short_state(new['state'])}{done}{error}"
