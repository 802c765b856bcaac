"""Retries of grants to new accounts, which IAM does not know at once."""

import asyncio
import itertools
import re

import pulumi

MAX_TRIES = 12
MAX_PAUSE_SECONDS = 20.0
"""With pauses that double from one second, twelve tries take about two and a half minutes. Google's page on service
agents says that a new account is usually known everywhere within two."""

_UNKNOWN_ACCOUNT = re.compile(r"does not exist|not found", re.IGNORECASE)
_numbers = itertools.count(1)


def create_retry_hook() -> pulumi.ResourceHookBinding:
    """Return a hook that retries the creation of a grant while its account "does not exist".

    The hook's name is unique in the program.
    """
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"until-known-{next(_numbers)}", _should_retry)])


async def _should_retry(failure: pulumi.ErrorHookArgs) -> bool:
    pause = compute_retry_pause(failure.errors)
    if pause is None:
        return False
    pulumi.log.info(f"{failure.name}: IAM does not know the account yet; trying again in {pause:.0f} s")
    await asyncio.sleep(pause)
    return True


def compute_retry_pause(errors: list[str]) -> float | None:
    """Return the seconds to wait after these errors of one grant, the newest first; `None` for no retry."""
    if len(errors) >= MAX_TRIES or not _UNKNOWN_ACCOUNT.search(errors[0]):
        return None
    return min(2.0 ** (len(errors) - 1), MAX_PAUSE_SECONDS)
