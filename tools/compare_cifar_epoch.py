"""One epoch of CIFAR-10 by Thimble and by PyTorch, from the same weights on the same batches.

    python tools/compare_cifar_epoch.py FOLDER_OF_CIFAR10 --out runs/compare

Both use the WideResNet recipe (batch 100, rate 0.1, Nesterov 0.9, weight decay 5e-4, pad, crop and
flip). Rounding makes the two runs diverge, so the accuracies are close, not equal: compare single
losses at first, and averages later. Prints a table; steps.csv in the folder has every step.
"""

import argparse
import csv
import dataclasses
import json
import os
import time

import torch

from thimble_program import DEFAULT_PROGRAM, Thimble
from torch_wide_resnet import (
    evaluate,
    load_weights,
    make_recipe_optimizer,
    make_wide_resnet,
    normalize,
    train_step,
)


@dataclasses.dataclass
class Outcome:
    losses: list  # by step
    test_loss: float
    test_accuracy: float
    seconds: float  # training and evaluation


def run_thimble(thimble, arguments, common, steps):
    run = os.path.join(arguments.out, "thimble")
    recipe = ("--lr", 0.1, "--momentum", 0.9, "--nesterov", "--weight-decay", 5e-4)
    settings = ("--steps", steps, "--log-every", 1, "--threads", arguments.threads, "--out", run)
    began = time.monotonic()
    summary = thimble.json("train", "--model", arguments.model, *common, *recipe, *settings)
    seconds = time.monotonic() - began
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    losses = [line["loss"] for line in lines if "loss" in line]
    return Outcome(losses, summary["test_loss"], summary["test_accuracy"], seconds)


def run_torch(weights, model_name, batches, test):
    images, labels, about = batches
    model = make_wide_resnet(model_name)
    load_weights(model, weights)
    model.train()
    optimizer = make_recipe_optimizer(model, learning_rate=0.1)
    losses = []
    began = time.monotonic()
    for x, answer in zip(images, labels):
        x = normalize(x, about["mean"], about["std"], torch.float32)
        losses.append(train_step(model, optimizer, x, answer)[0])
    loss, accuracy = evaluate(model, *test[:2], about["mean"], about["std"])
    return Outcome(losses, loss, accuracy, time.monotonic() - began)


def dump_once(thimble, folder, *arguments):
    """Like Thimble.dump, but deletes the file, which may be large."""
    file = os.path.join(folder, "dump.safetensors")
    dumped = thimble.dump(file, *arguments)
    os.remove(file)
    return dumped


def print_table(ours, theirs, num_rows=10):
    """Mean losses of successive ranges of steps; the first step alone, which must agree."""
    print("Thimble | PyTorch")
    print(f"step 1: loss {ours.losses[0]:.6f} | {theirs.losses[0]:.6f}")
    steps = len(theirs.losses)
    width = max(1, steps // num_rows)
    for begin in range(0, steps, width):
        end = min(begin + width, steps)
        means = (sum(x.losses[begin:end]) / (end - begin) for x in (ours, theirs))
        print(f"steps {begin + 1}-{end}: mean loss {' | '.join(f'{x:.4f}' for x in means)}")
    print(f"test accuracy {100 * ours.test_accuracy:.2f} % | {100 * theirs.test_accuracy:.2f} %")
    print(f"test loss {ours.test_loss:.4f} | {theirs.test_loss:.4f}")
    print(f"seconds with evaluation {ours.seconds:.0f} | {theirs.seconds:.0f}")


def write_steps(path, ours, theirs):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "thimble_loss", "torch_loss"])
        writer.writerows(zip(range(1, len(theirs.losses) + 1), ours.losses, theirs.losses))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data", help="folder with the binary files of CIFAR-10")
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps; 0: the whole epoch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="0: each program's default")
    parser.add_argument("--out", default="runs/compare_cifar_epoch", help="folder to create")
    parser.add_argument("--thimble", default=DEFAULT_PROGRAM, help="path of the program")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    thimble = Thimble(arguments.thimble)
    os.makedirs(arguments.out)
    steps = arguments.steps or 50000 // arguments.batch
    data = ("--data", "cifar10:" + arguments.data)
    common = (*data, "--batch", arguments.batch, "--seed", arguments.seed)
    start = os.path.join(arguments.out, "start")
    weights = thimble.initial_weights(start, "--model", arguments.model, *common)
    batches = dump_once(thimble, arguments.out, "--dump-steps", steps, *common)
    test = dump_once(thimble, arguments.out, "--dump-part", "test", *data)
    ours = run_thimble(thimble, arguments, common, steps)
    theirs = run_torch(weights, arguments.model, batches, test)
    write_steps(os.path.join(arguments.out, "steps.csv"), ours, theirs)
    print_table(ours, theirs)


if __name__ == "__main__":
    main()
