"""Checks that Thimble and PyTorch can exchange weights: the same file gives the same outputs.

Thimble to PyTorch: weights.safetensors of a run loads strictly into the usual PyTorch WideResNet;
loss and accuracy over the run's test images are those of `thimble eval`.
PyTorch to Thimble: PyTorch trains a few more steps and saves its whole state_dict (including batch
counters), and `thimble eval --weights` gives PyTorch's results.

    python tools/check_weights_in_torch.py runs/my_run

Prints one line; exit code 0 if both agree, 1 if not.
"""

import argparse
import os
import sys
import tempfile
import tomllib

import torch
from safetensors.torch import load_file, save_file

from thimble_program import DEFAULT_PROGRAM, Thimble
from torch_wide_resnet import (
    evaluate,
    load_weights,
    make_recipe_optimizer,
    make_wide_resnet,
    normalize,
    train_step,
)

# Difference of the mean losses, relative to them or to 1. float32 is within a few 1e-7 here (one
# rounding is 6e-8, through about thirty layers, averaged over the images); a different epsilon in a
# single batch norm already gives more than this.
MAX_LOSS_DIFFERENCE = 1e-6
# Images whose two best scores are equal up to rounding may be classified either way.
MAX_DIFFERENT_ANSWERS = 1

TORCH_STEPS = 3  # enough to change every parameter, statistic and counter
TORCH_BATCH = 50
TORCH_LEARNING_RATE = 0.001


def train_on(model, images, labels, about):
    model.train()
    optimizer = make_recipe_optimizer(model, TORCH_LEARNING_RATE)
    for step in range(TORCH_STEPS):
        rows = slice(step * TORCH_BATCH, (step + 1) * TORCH_BATCH)
        if len(labels[rows]) == 0:
            break
        x = normalize(images[rows], about["mean"], about["std"], torch.float32)
        train_step(model, optimizer, x, labels[rows])


def compare(model, thimble, run, weights, test):
    """Difference of the losses, relative to them or to 1; minimum number of images classified
    differently; PyTorch's loss and accuracy."""
    images, labels, about = test
    loss, accuracy = evaluate(model, images, labels, about["mean"], about["std"])
    # PyTorch computes in fp32 here, whatever type the weights are stored in.
    theirs = thimble.json("eval", run, "--weights", weights, "--precision", "fp32")
    if theirs["images"] != len(labels):
        raise RuntimeError(f"thimble evaluated {theirs['images']} images, PyTorch {len(labels)}")
    difference = abs(theirs["loss"] - loss) / max(1.0, loss)
    answers = round(abs(theirs["accuracy"] - accuracy) * len(labels))
    return difference, answers, loss, accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("run", help="run folder")
    parser.add_argument("--thimble", default=DEFAULT_PROGRAM, help="path of the program")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    thimble = Thimble(arguments.thimble)
    with open(os.path.join(arguments.run, "config.toml"), "rb") as file:
        config = tomllib.load(file)
    with tempfile.TemporaryDirectory() as folder:
        test_file = os.path.join(folder, "test.safetensors")
        test = thimble.dump(test_file, "--dump-part", "test", "--data", config["data"])
        model = make_wide_resnet(config["model"], test[2]["classes"])
        weights = os.path.join(arguments.run, "weights.safetensors")
        load_weights(model, load_file(weights))
        there = compare(model, thimble, arguments.run, weights, test)
        train_on(model, *test)
        returned = os.path.join(folder, "from_torch.safetensors")
        save_file(model.state_dict(), returned)
        back = compare(model, thimble, arguments.run, returned, test)
    difference = max(there[0], back[0])
    answers = max(there[1], back[1])
    good = difference <= MAX_LOSS_DIFFERENCE and answers <= MAX_DIFFERENT_ANSWERS
    print(
        f"{'same' if good else 'DIFFERENT'}: over {len(test[1])} test images, largest relative "
        f"difference of the loss {difference:.1e}, of correct answers {answers} (Thimble's weights:"
        f" loss {there[2]:.6f}, accuracy {there[3]:.4f}; PyTorch's: {back[2]:.6f}, {back[3]:.4f})"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
