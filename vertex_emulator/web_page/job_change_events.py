"""Server-sent events that name the jobs that have changed; the page then requests what it shows of them."""

import asyncio
import json
from collections.abc import AsyncIterator

from vertex_emulator.database.changes import Changes

_RETRY_MILLISECONDS = 1000
_KEEP_ALIVE_SECONDS = 15.0
_MIN_SECONDS_BETWEEN_EVENTS = 0.25  # a database that changes a hundred times a second makes four events of it


async def iterate_job_change_event_texts(changes: Changes, job_id: str | None = None) -> AsyncIterator[str]:
    """Yield `changed` events with lists of job ids, of `job_id` only if it is given; end when `changes` is closed."""
    with changes.subscribe() as watcher:
        # From here on no change is missed, so the page can load everything now.
        yield f"retry: {_RETRY_MILLISECONDS}\nevent: ready\ndata: []\n\n"
        while (ids := await watcher.wait(_KEEP_ALIVE_SECONDS)) is not None:
            changed_ids = sorted(ids if job_id is None else ids & {job_id})
            if changed_ids:
                yield f"event: changed\ndata: {json.dumps(changed_ids)}\n\n"
                await asyncio.sleep(_MIN_SECONDS_BETWEEN_EVENTS)
            elif not ids:
                yield ": nothing new\n\n"
