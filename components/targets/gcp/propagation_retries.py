"""Retries of resources that Google Cloud refuses only because something new is not known everywhere yet."""

import asyncio
import itertools
from collections.abc import Sequence

import pulumi

from vertex_api.retry import NEW_GRANT, PROPAGATION_SECONDS, find_propagation, pause_before

_REPORT_SECONDS = 60.0
_hook_numbers = itertools.count(1)


def create_retrying_options(
    parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = (), *, protect: bool | None = None
) -> pulumi.ResourceOptions:
    """Return options of a resource whose creation is tried again after a refusal that passes."""
    # Pulumi needs a name for each hook that is unique in the program.
    hook = pulumi.ErrorHook(f"until-known-{next(_hook_numbers)}", _pause_and_decide_on_retry)
    hooks = pulumi.ResourceHookBinding(on_error=[hook])
    return pulumi.ResourceOptions(parent=parent, depends_on=depends_on, protect=protect, hooks=hooks)


async def _pause_and_decide_on_retry(failure: pulumi.ErrorHookArgs) -> bool:
    """Return whether to try a failed creation again, after a pause. Says why at first, and then once a minute."""
    propagation = find_propagation(failure.errors[0])
    if propagation is None:
        return False
    pause = compute_retry_pause(failure.errors)
    if pause is None:
        reason = f"{propagation.reason}, after {PROPAGATION_SECONDS:.0f} s"
        pulumi.log.warn(f"{failure.name}: {reason}; {propagation.remedy}")
        return False
    waited = _compute_waited_seconds(len(failure.errors))
    if waited == 0 or waited // _REPORT_SECONDS < (waited + pause) // _REPORT_SECONDS:
        left = PROPAGATION_SECONDS - waited
        pulumi.log.info(f"{failure.name}: {propagation.reason}; trying again for up to {left:.0f} s")
    await asyncio.sleep(pause)
    return True


def compute_retry_pause(errors_newest_first: Sequence[str]) -> float | None:
    """Return the seconds to wait after these errors of one resource; `None` for no retry."""
    if find_propagation(errors_newest_first[0]) is None:
        return None
    tries = len(errors_newest_first)
    return pause_before(NEW_GRANT, tries, _compute_waited_seconds(tries), None, 0.0)


def _compute_waited_seconds(tries: int) -> float:
    """Return the sum of the pauses between so many tries."""
    return sum(pause_before(NEW_GRANT, earlier, 0.0, None, 0.0) or 0.0 for earlier in range(1, tries))
