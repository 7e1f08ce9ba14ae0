"""Writes tests/golden/translator.json: what PyTorch computes in ten updates of a small DynamicConv network.

The network is that of torch_translator.py, in float64 and without dropout: sentences of unequal lengths,
padding, AdamW. Weights come from a formula, so that no file has to be exchanged. A tensor
is described by its norm and its product with a fixed vector. Beside each figure is the error of PyTorch's
own float32 run, from which tests/end_to_end/translator_golden_test.cc derives its tolerances.

    pip install torch
    python tools/make_translator_golden.py
"""

import json
import os

import torch
from torch_translator import PADDING, Translator

GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "translator.json"
)
SPEC = {
    "source_words": 23,
    "target_words": 19,
    "width": 16,
    "feed_forward": 24,
    "heads": 2,
    "encoder_kernels": [3, 7],
    "decoder_kernels": [3, 5],
    "label_smoothing": 0.1,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "tap_dropout": 0.0,
}
ADAM = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.01}
UPDATES = 10
SOURCE_LENGTHS = [6, 3, 1]
TARGET_LENGTHS = [2, 5, 4]


def set_weights(network):
    """0.3 sin(0.7 (i + 1) + 1.3 k) for element i of parameter k by name, plus 1 for scales of norms."""
    with torch.no_grad():
        for k, (name, weight) in enumerate(sorted(network.named_parameters())):
            i = torch.arange(weight.numel(), dtype=torch.float64)
            values = 0.3 * torch.sin(0.7 * (i + 1) + 1.3 * k)
            if "norm" in name and name.endswith(".weight"):
                values += 1
            weight.copy_(values.float().reshape(weight.shape))


def batch():
    """Token j of sentence b is 4 + (7 b + 3 j) mod the number of other words; </s> is 2."""

    def sentences(lengths, words, step):
        rows = []
        for b, length in enumerate(lengths):
            row = [4 + (7 * b + step * j) % (words - 4) for j in range(length - 1)] + [2]
            rows.append(row + [PADDING] * (max(lengths) - length))
        return torch.tensor(rows)

    source = sentences(SOURCE_LENGTHS, SPEC["source_words"], 3)
    target = sentences(TARGET_LENGTHS, SPEC["target_words"], 5)
    decoder_input = torch.full_like(target, PADDING)
    for b, length in enumerate(TARGET_LENGTHS):
        decoder_input[b, 0] = 2
        decoder_input[b, 1:length] = target[b, : length - 1]
    return source, decoder_input, target


def train(dtype):
    network = Translator(SPEC).to(dtype)
    set_weights(network)
    weights = dict(sorted(network.named_parameters()))
    optimizer = torch.optim.AdamW(weights.values(), **ADAM)
    source, decoder_input, target = batch()
    lengths = torch.tensor(SOURCE_LENGTHS), torch.tensor(TARGET_LENGTHS)
    run = {"losses": [], "nlls": [], "gradients": {}}
    for update in range(UPDATES):
        optimizer.zero_grad()
        loss, nll = network.losses(network(source, decoder_input, *lengths), target)
        (loss / (target != PADDING).sum()).backward()
        run["losses"].append(loss.item())
        run["nlls"].append(nll.item())
        if update == 0:
            run["gradients"] = {name: w.grad.double() for name, w in weights.items()}
        optimizer.step()
    run["weights"] = {name: w.detach().double() for name, w in weights.items()}
    return run


def described(exact, rounded):
    result = {}
    for k, (name, tensor) in enumerate(exact.items()):
        flat = tensor.flatten()
        i = torch.arange(flat.numel(), dtype=torch.float64)
        result[name] = {
            "norm": flat.norm().item(),
            "projection": (flat * torch.sin(12.9898 * (i + 1) + k)).sum().item(),
            "error": (rounded[name] - tensor).norm().item(),
        }
    return result


def main():
    exact, rounded = train(torch.float64), train(torch.float32)
    source, decoder_input, target = batch()

    def errors(name):
        return [abs(a - b) for a, b in zip(exact[name], rounded[name])]

    golden = {
        "torch": torch.__version__,
        "spec": {name: value for name, value in SPEC.items() if "dropout" not in name},
        "adam": ADAM,
        "source": source.tolist(),
        "decoder_input": decoder_input.tolist(),
        "target": target.tolist(),
        "source_lengths": SOURCE_LENGTHS,
        "target_lengths": TARGET_LENGTHS,
        "losses": exact["losses"],
        "loss_errors": errors("losses"),
        "nlls": exact["nlls"],
        "gradients": described(exact["gradients"], rounded["gradients"]),
        "weights": described(exact["weights"], rounded["weights"]),
    }
    with open(GOLDEN, "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
