"""Grants to accounts that Google is only just making: tried again while IAM does not know them yet."""

import asyncio
import itertools
import re

import pulumi

TRIES = 12
LONGEST_PAUSE = 20.0
"""Seconds. With the pauses doubling from one second, twelve tries last some two and a half minutes; Google's page on
service agents says that a new account is usually known everywhere within two."""

_UNKNOWN_ACCOUNT = re.compile(r"does not exist|not found", re.IGNORECASE)


_NUMBERS = itertools.count(1)


def until_known() -> pulumi.ResourceHookBinding:
    """A hook that repeats the creation of a grant while its account "does not exist".

    Its name is its own in the whole program, whatever the components that use it are called.
    """
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"until-known-{next(_NUMBERS)}", _try_again)])


async def _try_again(failure: pulumi.ErrorHookArgs) -> bool:
    pause = pause_before_retry(failure.errors)
    if pause is None:
        return False
    pulumi.log.info(f"{failure.name}: IAM does not know the account yet; trying again in {pause:.0f} s")
    await asyncio.sleep(pause)
    return True


def pause_before_retry(errors: list[str]) -> float | None:
    """Seconds to wait after these failures of one grant, the newest first; None when trying again is no use."""
    if len(errors) >= TRIES or not _UNKNOWN_ACCOUNT.search(errors[0]):
        return None
    return min(2.0 ** (len(errors) - 1), LONGEST_PAUSE)
