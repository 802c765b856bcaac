"""Probes: what is asked of both sides, each in a file of `probes/`, and the most that asking Vertex AI can cost.

A file has a `title`, the `rows` of docs/fidelity.md that it is about, and `steps`. A step has a `call`, such as `POST
customJobs`, whose path stands below the location, or below `storage/`; and one body of these:

- `body`: the request itself;
- `job`, `study`: the job or the search of `_base.yaml`, with values set at paths such as
  `jobSpec.workerPoolSpecs[0].replicaCount` (null removes one); `python` is the program that it runs.

`keep: NAME` makes the answer's name a variable: `GET ${NAME}`. `until: running`, or `ended`, repeats a call until the
job is that; what is compared is then the order of its states too. `ignore` names parts of an answer that may differ.
Variables are `${project}`, `${region}`, `${parent}`, `${bucket}`, `${folder}` (in the bucket), `${image}` and `${run}`.
A probe that is `optIn` costs more, or may be accepted where it should not, and runs only if it is named.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from vertex_api.estimates.cost import Cost, estimate_cost
from vertex_api.estimates.prices import ZERO, Money, Prices
from vertex_api.job import parse_job
from vertex_api.messages import set_at
from vertex_api.names import KINDS

_FOLDER = Path(__file__).parent / "probes"
_BASE = "_base.yaml"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_EXAMPLES = dict.fromkeys(("project", "region", "parent", "bucket", "folder", "image", "run"), "example")
"""Values of the variables by which a body is as valid as it will be."""
RUN_LABEL = "parity_run"
"""The label of all that probes make; its value is the id of the run."""


@dataclass(frozen=True)
class Step:
    """One request of a probe, or a request that is repeated `until` a job is running or has ended."""

    method: str
    path: str
    body: Any = None
    keep: str = ""
    until: str = ""
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """What is asked, and the rows of docs/fidelity.md that the answers are about."""

    name: str
    title: str
    rows: tuple[str, ...]
    steps: tuple[Step, ...] = field(repr=False)
    is_opt_in: bool = False

    @property
    def is_about_quota(self) -> bool:
        """Whether a project's quota is what it asks about, and not in its way."""
        return any("quota" in row for row in self.rows)

    def cost(self, region: str, prices: Prices) -> Money:
        """Return what its jobs cost at most, if each runs until its timeout."""
        return sum((each.total for each in self.costs(region, prices)), ZERO)

    def unpriced(self, region: str, prices: Prices) -> set[str]:
        """Return what its jobs take that has no price on file in a region, so that `cost` leaves it out."""
        return {name for each in self.costs(region, prices) for name in each.unpriced}

    def costs(self, region: str, prices: Prices) -> Iterator[Cost]:
        """Yield the cost of each job. One that is invalid is refused, or cancelled at once."""
        for step in self.steps:
            kind = KINDS.get(step.path.partition("?")[0])
            if step.method == "POST" and kind:
                job, problems = parse_job(kind, fill(step.body, _EXAMPLES), is_name_required=True)
                if job and not problems:
                    yield estimate_cost(job, region, prices)


def load(patterns: Sequence[str] = ()) -> list[Probe]:
    """Return the probes whose name matches one of the patterns, without any all that are not `optIn`."""
    base = _read(_FOLDER / _BASE)
    found = [_parse(file.stem, _read(file), base) for file in sorted(_FOLDER.glob("[!_]*.yaml"))]
    if not patterns:
        return [probe for probe in found if not probe.is_opt_in]
    return [probe for probe in found if any(fnmatchcase(probe.name, pattern) for pattern in patterns)]


def _read(file: Path) -> Any:
    import yaml

    return yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)


def _parse(name: str, fields: Mapping[str, Any], base: Mapping[str, Any]) -> Probe:
    steps = tuple(_parse_step(name, step, base) for step in fields["steps"])
    return Probe(name, fields["title"], tuple(fields["rows"]), steps, fields.get("optIn", False))


def _parse_step(probe: str, step: Mapping[str, Any], base: Mapping[str, Any]) -> Step:
    method, _, path = step["call"].partition(" ")
    body = step.get("body")
    for kind in ("job", "study"):
        if kind in step:
            body = copy.deepcopy(base[kind])
            body["displayName"] = f"${{run}}-{probe}"
            if "python" in step:
                job_spec = body.get("trialJobSpec") or body["jobSpec"]
                job_spec["workerPoolSpecs"][0]["containerSpec"]["args"] = [step["python"]]
            for key, value in step[kind].items():
                set_at(body, key, value)
    return Step(method, path, body, step.get("keep", ""), step.get("until", ""), tuple(step.get("ignore", ())))


def fill(value: Any, variables: Mapping[str, str]) -> Any:
    """Return a value with its variables filled in; those that are not known stay."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {key: fill(child, variables) for key, child in value.items()}
    return [fill(child, variables) for child in value] if isinstance(value, list) else value


def plan_lines(probes: Sequence[Probe], region: str, prices: Prices) -> Iterator[str]:
    """Yield a line for each probe that costs something, and one for all others."""
    costs = [(probe, probe.cost(region, prices)) for probe in probes]
    yield from (f"  {probe.name}: at most {cost}, {probe.title}" for probe, cost in costs if cost)
    if free := [probe for probe, cost in costs if not cost]:
        yield f"  {len(free)} more at no cost"
