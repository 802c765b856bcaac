"""Server-sent events that say which jobs have changed; the page then asks for what it shows of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from vertex_emulator.database.change_feed import ChangeFeed

_RETRY_MILLISECONDS = 1000
_KEEP_ALIVE_SECONDS = 15.0
_LEAST_SECONDS_BETWEEN = 0.25  # a database that changes a hundred times a second makes four events of it


async def events(changes: ChangeFeed, job: str | None = None) -> AsyncIterator[str]:
    """`changed` events with a list of job ids, of one job only if it is named; ends when `changes` is closed."""
    with changes.subscribe() as watcher:
        # From here on nothing is missed, so the page fetches everything now.
        yield f"retry: {_RETRY_MILLISECONDS}\nevent: ready\ndata: []\n\n"
        while (ids := await watcher.wait_for_changes(_KEEP_ALIVE_SECONDS)) is not None:
            told = sorted(ids if job is None else ids & {job})
            if told:
                yield f"event: changed\ndata: {json.dumps(told)}\n\n"
                await asyncio.sleep(_LEAST_SECONDS_BETWEEN)
            elif not ids:
                yield ": nothing new\n\n"
