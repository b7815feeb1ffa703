"""Simulate a node that serves a large language model, and print what it achieved.

Usage: server.py --rate 30 --sequences 256 --chunk 2048 --memory 0.9 --parallel 2

Eight GPUs run 8 / parallel replicas of a model with 13 billion weights, and a load
balancer gives each request to the next replica. A replica works in steps (continuous
batching with chunked prefill, as vLLM does it):

- every sequence that has read its prompt gets one token per step, and what is left of
  the chunk goes to the prompts of others;
- the longest waiting requests join while there is a free place, a free part of the
  chunk and free memory for the keys and values of their tokens;
- if that memory is full, the youngest sequence leaves and starts over later.

Requests arrive at random (a Poisson process) and their lengths have heavy tails. They
differ in every run, so the results are noisy. A run takes about half a second.
"""

import argparse
import json
import sys

import numpy as np

GPUS, SECONDS = 8, 30.0
LONGEST = 4000, 1000  # tokens of a prompt, and of an answer
MEMORY, WEIGHTS = 80e9, 26e9  # bytes, of a GPU and of the model
PER_TOKEN = 0.8e6  # bytes of keys and values
ACTIVATIONS = 2e6  # bytes per token of a chunk
BANDWIDTH, COMPUTE = 2e12, 7.5e3  # bytes and tokens per second of a GPU


def step_seconds(tokens: int, cached: int, parallel: int) -> float:
    """Duration of a step: overhead, reading of weights and cache, compute, exchange."""
    reading = (WEIGHTS + PER_TOKEN * cached) / BANDWIDTH
    exchange = (parallel > 1) * (1e-3 * np.log2(parallel) + 1e-5 * tokens)
    return 4e-3 + max(reading, tokens / COMPUTE) / parallel + exchange


def serve(
    arrivals: np.ndarray,
    prompts: np.ndarray,
    outputs: np.ndarray,
    *,
    sequences: int,
    chunk: int,
    capacity: int,
    parallel: int,
) -> tuple[np.ndarray, int]:
    """Latency of each request at one replica, and the tokens it made in time."""
    waiting = list(range(len(arrivals)))[::-1]  # the next one is the last
    running = np.zeros(0, dtype=int)  # in the order in which they joined
    unread, made = prompts.copy(), np.zeros_like(outputs)
    ends, clock, in_time = np.zeros(len(arrivals)), 0.0, 0
    while waiting or len(running):
        if not len(running):
            clock = max(clock, arrivals[waiting[-1]])
        cached = int((prompts[running] - unread[running] + made[running]).sum())
        while cached + len(running) > capacity and len(running) > 1:  # starts over
            last, running = running[-1], running[:-1]
            cached -= prompts[last] - unread[last] + made[last]
            unread[last] = prompts[last] + made[last]  # its tokens are read again
            prompts[last], outputs[last] = unread[last], outputs[last] - made[last]
            made[last] = 0
            waiting.append(last)
        writing = running[unread[running] == 0][:chunk]
        left, reading = chunk - len(writing), []
        for each in running[unread[running] > 0]:
            reading.append((each, min(left, unread[each])))
            left -= reading[-1][1]
        reserved = int((prompts[running] + made[running]).sum())
        while (
            waiting
            and arrivals[waiting[-1]] <= clock
            and len(running) < sequences
            and left > 0
            and (reserved + prompts[waiting[-1]] < capacity or not len(running))
        ):
            each = waiting.pop()
            running = np.append(running, each)
            reading.append((each, min(left, unread[each])))
            left -= reading[-1][1]
            reserved += prompts[each]
        clock += step_seconds(chunk - left, cached, parallel)
        for each, count in reading:
            unread[each] -= count
        made[writing] += 1
        in_time += len(writing) * (clock <= SECONDS)
        done = writing[made[writing] >= outputs[writing]]
        ends[done] = clock
        running = running[~np.isin(running, done)]
    return ends - arrivals, in_time


def lengths(rng: np.random.Generator, median: float, most: int, n: int) -> np.ndarray:
    """Lengths in tokens: lognormal, and cut at the longest."""
    return np.clip(median * rng.lognormal(0.0, 1.0, n), 1, most).astype(int)


def measure(
    *,
    rate: float,
    sequences: int,
    chunk: int,
    memory: float,
    parallel: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Throughput and latency of half a minute of requests."""
    free = memory * MEMORY - WEIGHTS / parallel
    if free * parallel < sum(LONGEST) * PER_TOKEN:
        sys.exit("out of memory: the weights leave no room for a request")
    if memory * MEMORY + ACTIVATIONS * chunk > MEMORY:
        sys.exit("out of memory: the chunk does not fit beside weights and cache")
    capacity = int(parallel * free / PER_TOKEN)
    count = rng.poisson(rate * SECONDS)
    arrivals = np.sort(rng.uniform(0, SECONDS, count))
    prompts = lengths(rng, 300, LONGEST[0], count)
    outputs = lengths(rng, 120, LONGEST[1], count)
    latency, tokens = np.zeros(count), 0
    for replica in range(GPUS // parallel):
        mine = np.arange(replica, count, GPUS // parallel)
        latency[mine], made = serve(
            arrivals[mine],
            prompts[mine],
            outputs[mine],
            sequences=sequences,
            chunk=chunk,
            capacity=capacity,
            parallel=parallel,
        )
        tokens += made
    return {
        "tokens_per_second": round(tokens / SECONDS, 1),
        "p99_seconds": round(float(np.quantile(latency, 0.99)), 3),
        "median_seconds": round(float(np.median(latency)), 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True, help="requests per second")
    parser.add_argument("--sequences", type=int, required=True, help="at a time")
    parser.add_argument("--chunk", type=int, required=True, help="tokens per step")
    parser.add_argument("--memory", type=float, required=True, help="share to use")
    parser.add_argument("--parallel", type=int, required=True, help="GPUs per replica")
    settings = vars(parser.parse_args())
    print(json.dumps(measure(**settings, rng=np.random.default_rng())))
