"""The outputs of a stack."""

import pulumi

from .images_and_packages import Images
from .jobs import Jobs
from .schedules import Schedules


def export_outputs(images: Images, jobs: Jobs, schedules: Schedules | None = None) -> None:
    """Export the stack's outputs, each a map by name: `images`, `pinnedImages`, `jobs`, `results`, `schedules`.

    `jobs` have name, state, page and logs; those that were not waited for also what a refresh has shown (error, trials,
    bestTrial). `schedules` have the `status` of `Schedule`, and are exported if there are any. `pinnedImages` has URIs
    with digests, which another stack's `images.NAME.stack` reads.
    """
    pulumi.export("images", images.uris)
    pulumi.export("pinnedImages", images.uris_for_other_stacks)
    # Each job by itself: Output.all takes its arguments apart and puts them together again, 28 Outputs a job.
    pulumi.export("jobs", {name: jobs.get_run_summary_with_final_state_if_awaited(name) for name in jobs.resources})
    pulumi.export("results", jobs.results_of_succeeded_waited_jobs)
    if schedules and schedules.resources:
        pulumi.export("schedules", {name: schedule.status for name, schedule in schedules.resources.items()})
