"""How often `pulumi` calls the API for jobs that meet no faults, beside the calls that it made so far.

A job that takes all the room of the emulator keeps the others in its queue. Needs Docker, and a minute.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.emulator_process import run_temporary_emulator_without_free_capacity
from benchmarks.job_and_noop_resource_programs import create_our_program
from benchmarks.pulumi_with_thousand_jobs import PULUMI_CASES
from benchmarks.result_rows import render_row
from tests.forwarding_proxy import ForwardingProxy

JOBS = 200
MAX_CALLS: dict[str, dict[str, int]] = {"up": {"create customJobs": JOBS, "list customJobs": 1}}
"""The calls of each case, none if it is not here. A call that is not here is one too many."""
_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "operations")


class CountingProxy(ForwardingProxy):
    """Forwards to `upstream`; `calls` counts them by verb and collection."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.calls: Counter[str] = Counter()

    def record_call(self, method: str, path: str) -> None:
        """Count a call under the name that Google's pages have for it, such as `list customJobs`."""
        parts = urlsplit(path).path.split("/")
        collection = next((part for part in parts if part.partition(":")[0] in _COLLECTIONS), None)
        custom_verb = parts[-1].partition(":")[2]
        verb = {"GET": "list" if parts[-1] == collection else "get", "POST": "create", "DELETE": "delete"}[method]
        self.calls[f"{custom_verb or verb} {collection}" if collection else f"{method} {parts[-1]}"] += 1


def yield_benchmark_rows() -> Iterator[str]:
    """Run the cases in turn, and yield for each a line with its calls and their limit."""
    with tempfile.TemporaryDirectory() as folder:
        program = create_our_program(Path(folder), JOBS)
        data = program.root / ".emulator"
        with run_temporary_emulator_without_free_capacity(data) as emulator:
            endpoint = (data / "endpoint.json").read_text()
            for case, arguments in PULUMI_CASES.items():
                proxy = CountingProxy(emulator.url)
                with proxy.serving() as url:
                    (data / "endpoint.json").write_text(json.dumps({**json.loads(endpoint), "url": url}))
                    program.run_and_measure_pulumi(*arguments)
                # The check whether the emulator runs is not part of the API.
                calls = {call: count for call, count in proxy.calls.items() if call != "GET healthz"}
                yield _render_excess_calls_row(case, calls)
            (data / "endpoint.json").write_text(endpoint)


def _render_excess_calls_row(case: str, calls: dict[str, int]) -> str:
    excess = sum(max(0, count - MAX_CALLS.get(case, {}).get(call, 0)) for call, count in calls.items())
    text = ", ".join(f"{count:,} {call}" for call, count in sorted(calls.items())) or "none"
    return render_row(f"{case}, {JOBS} jobs, calls more than before", excess, "", 0, note=text)
