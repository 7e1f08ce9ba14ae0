"""Calls the thimble program and reads the files it writes."""

import json
import os
import subprocess

from safetensors.torch import load_file

DEFAULT_PROGRAM = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "build", "release", "bin", "thimble"
)


class Thimble:
    def __init__(self, program=DEFAULT_PROGRAM):
        self.program = program

    def run(self, *arguments):
        """Returns standard output; raises an error with thimble's message if it fails."""
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            command = " ".join(map(str, arguments))
            raise RuntimeError(f"thimble {command}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def dump(self, file, *arguments):
        """Runs `thimble data --dump`; returns images (uint8), labels (int64) and the description of
        the data (mean, std, classes, …)."""
        about = self.json("data", "--dump", file, *arguments)
        tensors = load_file(file)
        return tensors["images"], tensors["labels"].long(), about

    def initial_weights(self, folder, *arguments):
        """The initial weights of a training run with these arguments."""
        self.run("train", "--steps", 0, "--epochs", 0, "--out", folder, *arguments)
        return load_file(os.path.join(folder, "weights.safetensors"))
