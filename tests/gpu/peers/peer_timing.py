"""What the peers of tests/gpu/peers share: options, timed rounds of steps, and the line of JSON.

A round waits once, at its end, as a round of `tenon bench` does."""
import json
import time

import torch


def add_options(parser, steps):
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.add_argument("--steps", type=int, default=steps, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=5, help="steps before the first round")


def measure(a, step):
    """Milliseconds of a step in each round, the least first."""
    wait = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)
    for _ in range(a.warmup):
        step()
    rounds = []
    for _ in range(a.rounds):
        wait()
        began = time.perf_counter()
        for _ in range(a.steps):
            step()
        wait()
        rounds.append((time.perf_counter() - began) / a.steps * 1e3)
    return sorted(rounds)


def report(a, rounds, **what):
    """Prints one line: `what`, ms of a step (least, median, most), samples a second at the median."""
    middle = rounds[len(rounds) // 2]
    print(json.dumps(dict(peer="torch " + torch.__version__, **what, batch=a.batch,
                          ms=[round(v, 5) for v in (rounds[0], middle, rounds[-1])],
                          per_s=round(a.batch / middle * 1e3, 2))), flush=True)
