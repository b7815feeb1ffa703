"""Questions to workers as messages: a fifth of the time of a task, as the scheduler need not place anything.

Who has been lost does not answer. Then nothing is known, and dask is asked for a task instead.
"""

from __future__ import annotations

import asyncio
from typing import Any

from noregret.belief.cluster.section import answer

PATIENCE = 0.3
"""After so many seconds without an answer it is asked whether the worker is still there."""


async def answers_to(client: Any, messages: list[tuple[str | None, str, tuple[Any, ...]]]) -> list[Any]:
    """For every message, of an address, the key of a section and what it is asked, the answer; None if there is none.

    What the section raised is raised.
    """
    return await asyncio.gather(*(_answer_to(client, *message) for message in messages))


async def _answer_to(client: Any, address: str | None, key: str, call: tuple[Any, ...]) -> Any:
    if address is None:
        return None
    running = asyncio.ensure_future(client.run(_answer_at, key, *call, workers=[address], on_error="return"))
    while not (await asyncio.wait([running], timeout=PATIENCE))[0]:
        if address not in await client.nthreads():  # dask would go on calling for half a minute
            running.cancel()
            return None
    found = running.result()[address]
    if isinstance(found, Exception) and not isinstance(found, OSError | KeyError):
        raise found
    return None if isinstance(found, Exception) else found


async def _answer_at(key: str, *call: Any, dask_worker: Any) -> Any:
    """What the section with this key answers, on one of the worker's threads."""
    section = dask_worker.data[key]
    return await asyncio.get_running_loop().run_in_executor(dask_worker.executors["default"], answer, section, *call)
