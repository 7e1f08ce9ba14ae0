#!/usr/bin/env python3
"""Estimates how much smaller a run's arena would be with its 16-bit activations in 8 bits.

Reads the plan of a run folder. All steps stay where they are; values that rest for more than a number
of steps get 260 bytes per 256 numbers (8 bits each and a scale) instead of 512. Prints the bytes alive
at the peak before and after.
"""

import argparse
import json
import os

Q8_SHARE = 260 / 512
SMALL_BYTES = 4096  # statistics and the like, which would not be stored in 8 bits


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder of a run with --precision fp16 or bf16")
    parser.add_argument("--resting", type=int, nargs="+", default=[0, 6, 12], metavar="STEPS")
    return parser.parse_args()


def bytes_at_peak(plan, bytes_of):
    """Returns the largest sum of bytes alive at a step, and that step."""
    alive = [0] * len(plan["steps"])
    for holding in plan["holdings"]:
        for step in range(holding["first"], min(holding["end"], len(alive))):
            alive[step] += bytes_of(holding)
    return max(alive), alive.index(max(alive))


def is_long_activation(holding):
    is_short_number = holding["shape"].endswith(("f16", "bf16"))
    return holding["category"] == "activations" and is_short_number and holding["bytes"] > SMALL_BYTES


def main():
    options = parse_arguments()
    with open(os.path.join(options.run, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)["plans"][0]
    before, peak = bytes_at_peak(plan, lambda holding: holding["bytes"])
    step = plan["steps"][peak]
    print(f"{plan['name']}: {before:,} bytes at the peak, {step['op']} of {step['layer']}")
    for steps in options.resting:

        def bytes_of(holding, steps=steps):
            rests = holding["end"] - holding["first"] > steps
            share = Q8_SHARE if rests and is_long_activation(holding) else 1
            return int(holding["bytes"] * share)

        after, _ = bytes_at_peak(plan, bytes_of)
        print(f"8 bits where values rest for more than {steps} steps: {after:,} bytes, "
              f"{100 * (before - after) / before:.1f} % less")


if __name__ == "__main__":
    main()
