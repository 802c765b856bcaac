"""Retries of grants to new accounts, which IAM does not know at once."""

import asyncio
import itertools
import re
from collections.abc import Sequence

import pulumi

MAX_TRIES = 12
MAX_PAUSE_SECONDS = 20.0
"""With pauses that double from one second, twelve tries take about two and a half minutes. Google's page on service
agents says that a new account is usually known everywhere within two."""

_UNKNOWN_ACCOUNT = re.compile(r"does not exist|not found", re.IGNORECASE)
_hook_numbers = itertools.count(1)


def create_grant_options(parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    """Return options of grants: creating one is tried again while its account "does not exist"."""
    # Pulumi needs a name for each hook that is unique in the program.
    hook = pulumi.ErrorHook(f"until-known-{next(_hook_numbers)}", _pause_and_decide_on_retry)
    hooks = pulumi.ResourceHookBinding(on_error=[hook])
    return pulumi.ResourceOptions(parent=parent, depends_on=depends_on, hooks=hooks)


async def _pause_and_decide_on_retry(failure: pulumi.ErrorHookArgs) -> bool:
    """Return whether to try a failed grant again, after a pause."""
    pause = compute_retry_pause(failure.errors)
    if pause is None:
        return False
    pulumi.log.info(f"{failure.name}: IAM does not know the account yet; trying again in {pause:.0f} s")
    await asyncio.sleep(pause)
    return True


def compute_retry_pause(errors_newest_first: list[str]) -> float | None:
    """Return the seconds to wait after these errors of one grant; `None` for no retry."""
    if len(errors_newest_first) >= MAX_TRIES or not _UNKNOWN_ACCOUNT.search(errors_newest_first[0]):
        return None
    return min(2.0 ** (len(errors_newest_first) - 1), MAX_PAUSE_SECONDS)
