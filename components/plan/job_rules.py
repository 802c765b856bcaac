"""The rules for one job beyond the API's own: adoption, schedules, labels, likely mistakes, folders, region.

They hold for every job, wherever it comes from. `Plan.job_violations` applies them, with the guardrails.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Any

from vertex_api.advice import advice as advise
from vertex_api.job import Job
from vertex_api.messages import KeyPath, value_at
from vertex_api.mistakes import likely_mistakes, region_mismatches
from vertex_api.names import Kind, ResourceName
from vertex_api.schedules import NAME_LABEL, RUN_ID_LENGTH, SCHEDULE_LABEL
from vertex_api.validation.check import resolved_problems
from vertex_api.validation.formats import MAX_LABELS, Violation

from ..schema import interpolation, shapes
from .training import LIFECYCLE, Training

SUBMITTER_LABELS = ("pulumi_project", "pulumi_stack", NAME_LABEL)
"""Those that say what submitted a job, its `Inputs.owner`: `<pulumi project>/<stack>/<resource name>`."""
TOKEN_LABEL, MARK_LABEL = "pulumi_token", "pulumi_mark"
OWN_LABELS = (*SUBMITTER_LABELS, TOKEN_LABEL, MARK_LABEL)
"""All labels that a submitted job has beside those of its spec."""
SCHEDULE_LABELS = (SCHEDULE_LABEL, NAME_LABEL)
MAX_DISPLAY_NAME_LENGTH = 128 - RUN_ID_LENGTH - 1
"""What the API's limit leaves for the name before a run's id and a hyphen."""
ADOPTED_IS_NOT_RUN = "an adopted job is not run; take adopt out to run what is declared"
_NOT_FOR_SCHEDULED = "is not for a job with lifecycle.run: scheduled"


def expand_name(kind: Kind, parent: str, name: str) -> str:
    """Return the resource name of a job, of which `name` is that name or the job's number in `parent`."""
    return name if "/" in name else f"projects/{parent.partition('projects/')[2]}/{kind.collection}/{name}"


def adoption_problems(kind: Kind, name: str, project: str, number: str | None, region: str) -> Iterator[str]:
    """Yield why a job cannot be adopted in a stack of this project, whose `number` may be unknown, and region."""
    try:
        found = ResourceName.parse(expand_name(kind, f"projects/{project}/locations/{region}", name))
    except ValueError:
        yield f'"{name}" is not the name of a job: projects/P/locations/R/{kind.collection}/ID, or its ID alone'
        return
    if found.kind != kind:
        yield f'"{name}" is one of the {found.kind.collection}: declare it there'
    if found.region != region:
        yield f'"{name}" is in {found.region}, and the jobs of this stack are in {region}'
    if found.project not in (project, number) and (number or not found.project.isdigit()):
        yield f'"{name}" is of another project than this stack\'s, {project}'


def adoption(training: Training, stack: Mapping[str, Any]) -> Iterator[Violation]:
    """Find why a job cannot be adopted in a stack with these values of its file."""
    name, number = training.lifecycle["adopt"], stack.get("projectNumber")
    project, region = stack.get("project", "local"), stack.get("region", "us-central1")
    for message in adoption_problems(training.kind, name, project, number, region):
        yield (LIFECYCLE, "adopt"), message
    if training.lifecycle.get("rerun"):
        yield (LIFECYCLE, "rerun"), ADOPTED_IS_NOT_RUN


def repeated_adoptions(trainings: Iterable[Training]) -> Iterator[tuple[Training, str]]:
    """Find the jobs that adopt what another one adopts, each with a message for its `lifecycle.adopt`."""
    names: dict[str, str] = {}
    for each in trainings:
        if adopt := each.lifecycle.get("adopt"):
            other = names.setdefault(adopt.rpartition("/")[2], each.name)
            if other != each.name:
                yield each, f'"{adopt}" is adopted by {other} already'


def scheduled_lifecycle(lifecycle: Mapping[str, Any]) -> Iterator[Violation]:
    """Find what the lifecycle of a scheduled job says that is for jobs which `pulumi up` submits."""
    for key, option in shapes.LIFECYCLE.items():
        if option.scheduled and key in lifecycle:
            yield (LIFECYCLE, key), f"{_NOT_FOR_SCHEDULED}: {option.scheduled}"


def scheduled_fields(fields: Mapping[str, Any]) -> Iterator[Violation]:
    """Find what a valid job has that a schedule cannot send.

    Cloud Workflows evaluates each `${` in a request (its page on expressions), so a text cannot hold one beside
    references. A secret would stand in the workflow's source, for everybody who may read it.
    """
    for path, reference in interpolation.references(fields):
        if reference.startswith("secrets."):
            advice = "it would stand in the workflow's source; let the trainer read it from Secret Manager"
            yield path, f"${{{reference}}} {_NOT_FOR_SCHEDULED}: {advice}"
    for path in interpolation.literals(fields):
        yield path, f'a literal "${{" {_NOT_FOR_SCHEDULED}: Cloud Workflows would evaluate it; take it out'
    if (length := len(fields.get("displayName", ""))) > MAX_DISPLAY_NAME_LENGTH:
        message = f"has {length} characters; at most {MAX_DISPLAY_NAME_LENGTH} leave room for the id of a run"
        yield ("displayName",), message
    for label in SCHEDULE_LABELS:
        if label in fields.get("labels", {}):
            yield ("labels", label), "is a label that a schedule gives its jobs itself; take another name"


def labels(own: Collection[str], stack: Collection[str] = ()) -> Iterator[Violation]:
    """Find labels of a job, or of all jobs, that leave no room for `OWN_LABELS` and the labels of the stack file."""
    for name in OWN_LABELS:
        if name in own:
            yield (name,), "is a label that the stack gives its jobs itself; take another name"
    count, most = len({*own, *stack}), MAX_LABELS - len(OWN_LABELS)
    if len(stack) <= most < count <= MAX_LABELS:
        total = f"{count} labels{', with those of the stack file' if stack else ''}"
        yield (), f"has {total}; at most {most} are allowed, as {len(OWN_LABELS)} are the stack's own"


def service(job: Job, region: str | None, *, is_cloud: bool, is_adopted: bool) -> Iterable[Violation]:
    """Find what rules of the service refuse in a valid job in its stack, one for each path."""
    found = [] if is_adopted else [*likely_mistakes(job, on_google_cloud=is_cloud)]
    found += region_mismatches(job, region) if region else ()
    problems = resolved_problems(found, job.fields, interpolation.is_unresolved)
    return {problem.path: problem.message for problem in problems}.items()


def advice(job: Job) -> list[Violation]:
    """Find what to look at again in a valid job."""
    found = resolved_problems(advise(job), job.fields, interpolation.is_unresolved)
    return [*dict.fromkeys((problem.path, problem.message) for problem in found)]


def image_names(job: Job, images: Container[str]) -> Iterator[Violation]:
    """Find where a job has the name of a declared image instead of a reference to it."""
    paths: list[KeyPath] = [("modelToUpload", "containerSpec", "imageUri")]
    for index in range(len(job.job_spec["workerPoolSpecs"])):
        pool = (*job.job_spec_path, "workerPoolSpecs", index)
        paths += [(*pool, "containerSpec", "imageUri"), (*pool, "pythonPackageSpec", "executorImageUri")]
    for path in paths:
        uri = value_at(job.fields, path) or ""
        name = uri.removeprefix("images.")
        if name in images:
            remedy = f"write ${{images.{name}}}; for an image in a registry, write its tag, {name}:latest"
            yield path, f'"{uri}" is a declared image: {remedy}'
