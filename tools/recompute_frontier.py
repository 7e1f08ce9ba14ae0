#!/usr/bin/env python3
"""Measures what smaller arenas cost: step time against arena for `--recompute optimal:LIMIT`.

  tools/recompute_frontier.py [--bench build/release/bin/thimble_step_bench] [--rounds 5] [OPTION ...] > frontier.csv

Each limit is measured beside the plain plan, one after the other, in several rounds; the cost is the median of the rounds'
ratios, so that a machine that changes its pace changes little. OPTIONs go to the bench (--model wrn-28-2 --batch 100).
"""
import argparse
import json
import statistics
import subprocess
import sys

SHARES = [0.9, 0.8, 0.66, 0.6, 0.53, 0.46, 0.40, 0.33, 0.28, 0.24, 0.21]
NAMED = ["cheap", "blocks", "sqrt", "optimal"]


def run(args, recompute):
    command = [args.bench, "--recompute", recompute, "--seconds", str(args.seconds), *args.options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/release/bin/thimble_step_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    args, args.options = parser.parse_known_args()
    plain_bytes = run(args, "none")["arena_bytes"]
    print("recompute,arena_bytes,share,time_ratio,lowest_ratio,highest_ratio,ms", flush=True)
    asked = [f"optimal:{int(plain_bytes * share)}" for share in SHARES] + NAMED
    for recompute in asked:
        ratios, times = [], []
        for _ in range(args.rounds):
            plain = run(args, "none")
            tried = run(args, recompute)
            ratios.append(tried["ms"] / plain["ms"])
            times.append(tried["ms"])
        print(f"{recompute},{tried['arena_bytes']},{tried['arena_bytes'] / plain_bytes:.4f},"
              f"{statistics.median(ratios):.4f},{min(ratios):.4f},{max(ratios):.4f},{statistics.median(times):.2f}", flush=True)


if __name__ == "__main__":
    main()
