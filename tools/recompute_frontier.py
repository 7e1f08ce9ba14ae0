#!/usr/bin/env python3
"""Measures what smaller arenas cost: step time versus arena for `--recompute optimal:LIMIT`.

  tools/recompute_frontier.py [--bench build/release/bin/thimble_step_bench] [--rounds 10] [OPTION ...] > frontier.csv

All settings are measured in turn, round after round. The cost is the fastest step of all rounds relative to the plain plan's fastest:
on a shared machine a step can only become slower, never faster. The median, lowest and highest of the rounds' ratios are also
printed. OPTIONs are passed to the bench (--model wrn-28-2 --batch 100).
"""
import argparse
import json
import statistics
import subprocess
import sys

SHARES = [0.9, 0.8, 0.66, 0.6, 0.53, 0.46, 0.40, 0.33, 0.28, 0.24, 0.21]
NAMED = ["cheap", "blocks", "sqrt", "optimal"]
NO_SUCH_PLAN = 3  # exit code


class Bench:
    """One setting, planned once and measured on request."""

    def __init__(self, args, recompute):
        self.recompute = recompute
        self.command = [args.bench, "--serve", "--recompute", recompute, *args.options]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.rounds = []

    def measure(self, seconds):
        """False if no plan fits the limit."""
        try:
            print(seconds, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            self.rounds.append(json.loads(line))
        elif self.process.wait() != NO_SUCH_PLAN:
            sys.exit(f"{' '.join(self.command)}: {self.process.stderr.read().strip()}")
        return bool(line)

    def fastest(self):
        return min(r["fastest_ms"] for r in self.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/release/bin/thimble_step_bench")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.5)
    args, args.options = parser.parse_known_args()
    plain = Bench(args, "none")
    plain.measure(args.seconds)
    plain_bytes = plain.rounds.pop()["arena_bytes"]
    others = [Bench(args, f"optimal:{int(plain_bytes * share)}") for share in SHARES] + [Bench(args, name) for name in NAMED]
    others = [bench for bench in others if bench.measure(0)]  # all are planned now
    for bench in others:
        bench.rounds.clear()
    for _ in range(args.rounds):
        plain.measure(args.seconds)
        others = [bench for bench in others if bench.measure(args.seconds)]
    print("recompute,arena_bytes,share,time_ratio,median_ratio,lowest_ratio,highest_ratio,fastest_ms")
    for bench in others:
        ratios = [r["fastest_ms"] / p["fastest_ms"] for r, p in zip(bench.rounds, plain.rounds)]
        arena = bench.rounds[0]["arena_bytes"]
        print(f"{bench.recompute},{arena},{arena / plain_bytes:.4f},{bench.fastest() / plain.fastest():.4f},{statistics.median(ratios):.4f},"
              f"{min(ratios):.4f},{max(ratios):.4f},{bench.fastest():.2f}")


if __name__ == "__main__":
    main()
