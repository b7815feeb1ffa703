"""An agent without a language model: it tunes a service with `noregret mcp`."""

import json
import math
import os
import sys
import tempfile
import textwrap

import anyio
import numpy as np
from mcp import Client, StdioServerParameters, stdio_client

SPACE = {
    "threads": {"type": "int", "low": 1, "high": 64, "log": True},
    "cache": {"type": "choice", "choices": ["off", "on"]},
}
BASELINE = {"threads": 2, "cache": "off"}
BUDGET = 40
RNG = np.random.default_rng(0)


def latency(threads: int, cache: str) -> float:
    """Milliseconds of a request; every twentieth measurement stalls."""
    true = 20 + 3 * math.log2(threads / 12) ** 2 + 6 * (cache == "off")
    return round(true * RNG.lognormal(sigma=0.02) + 60 * (RNG.random() < 0.05), 2)


def show(mark: str, text: str) -> None:
    """Print a message of the agent, or an answer."""
    print(textwrap.fill(text, 94, initial_indent=f"{mark} ", subsequent_indent="    "))


async def main(folder: str) -> None:
    """Tune until the answer is stop or the budget is spent, then compare."""
    words = ["-m", "noregret", "mcp", "--storage", f"sqlite:///{folder}/studies.db"]
    environment = dict(os.environ)
    server = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, is_shown: bool = True, **arguments: object) -> dict:
            found = await client.call_tool(tool, arguments)
            if is_shown:
                show(">", f"{tool} {json.dumps(arguments)}")
                show(" ", found.content[0].text.replace(folder, "/home/me"))
            return found.structured_content or {}

        about, rounds, stop = {"study": "latency"}, 0, False
        await call("create_study", name="latency", space=SPACE, baseline=BASELINE)
        await call("tell", **about, id=0)  # a mistake
        while not stop and rounds < BUDGET:
            (trial,) = (await call("ask", rounds < 2, **about))["trials"]
            result = {"id": trial["id"], "value": latency(**trial["params"])}
            stop = (await call("tell", rounds < 2, **about, **result, within="5%"))[
                "stop"
            ]
            rounds += 1
        print(f"... {rounds - 2} rounds later:")
        best = (await call("remaining", **about, within="5%"))["best"]["params"]
        await call("gain", **about)
        pairs: dict[str, list[float]] = {"a": [], "b": []}
        is_decided, first = False, "A"
        while not is_decided:
            for option in (first, "AB".replace(first, "")):
                params = BASELINE if option == "A" else best
                pairs[option.lower()].append(latency(**params))
            said = await call("versus", False, **pairs)
            is_decided, first = said["verdict"] != "undecided", said["next"]
        await call("versus", **pairs)
        await call("report", **about)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        anyio.run(main, temporary)
