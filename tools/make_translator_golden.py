"""Writes tests/golden/translator.json: what PyTorch computes in ten updates of a small DynamicConv network.

The network is written here a second time, in PyTorch, in float64 and without dropout: sentences of
unequal lengths, padding, AdamW. Weights come from a formula, so that no file has to be exchanged. A tensor
is described by its norm and its product with a fixed vector. Beside each figure is the error of PyTorch's
own float32 run, from which tests/end_to_end/translator_golden_test.cc derives its tolerances.

    pip install torch
    python tools/make_translator_golden.py
"""

import json
import math
import os

import torch
import torch.nn.functional as F

GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "translator.json"
)
PADDING = 1
SPEC = {
    "source_words": 23,
    "target_words": 19,
    "width": 16,
    "feed_forward": 24,
    "heads": 2,
    "encoder_kernels": [3, 7],
    "decoder_kernels": [3, 5],
    "label_smoothing": 0.1,
}
ADAM = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.01}
UPDATES = 10
SOURCE_LENGTHS = [6, 3, 1]
TARGET_LENGTHS = [2, 5, 4]


def parameter_shapes():
    width, hidden, heads = SPEC["width"], SPEC["feed_forward"], SPEC["heads"]
    shapes = {
        "encoder.embed_tokens.weight": (SPEC["source_words"], width),
        "decoder.embed_tokens.weight": (SPEC["target_words"], width),
        "decoder.embed_out": (SPEC["target_words"], width),
    }

    def linear(name, inputs, outputs):
        shapes[name + ".weight"] = (outputs, inputs)
        shapes[name + ".bias"] = (outputs,)

    def layer(name, kernel, norms):
        linear(name + ".linear1", width, width)
        linear(name + ".linear2", width, width)
        linear(name + ".fc1", width, hidden)
        linear(name + ".fc2", hidden, width)
        shapes[name + ".conv.weight_linear.weight"] = (heads * kernel, width)
        for norm in norms:
            shapes[f"{name}.{norm}.weight"] = (width,)
            shapes[f"{name}.{norm}.bias"] = (width,)

    for i, kernel in enumerate(SPEC["encoder_kernels"]):
        layer(f"encoder.layers.{i}", kernel, ("layer_norms.0", "layer_norms.1"))
    for i, kernel in enumerate(SPEC["decoder_kernels"]):
        name = f"decoder.layers.{i}"
        norms = ("conv_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")
        layer(name, kernel, norms)
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{name}.encoder_attn.{part}", width, width)
    return dict(sorted(shapes.items()))


def initial_weights(dtype):
    """0.3 sin(0.7 (i + 1) + 1.3 k) for element i of parameter k by name, plus 1 for scales of norms."""
    weights = {}
    for k, (name, shape) in enumerate(parameter_shapes().items()):
        i = torch.arange(math.prod(shape), dtype=torch.float64)
        values = 0.3 * torch.sin(0.7 * (i + 1) + 1.3 * k)
        if "norm" in name and name.endswith(".weight"):
            values += 1
        weights[name] = values.float().to(dtype).reshape(shape).requires_grad_()
    return weights


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


class Network:
    def __init__(self, weights):
        self.weights = weights

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, name, x):
        scale, shift = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return F.layer_norm(x, (SPEC["width"],), scale, shift, 1e-5)

    def embed(self, name, tokens):
        table = self.weights[name + ".weight"]
        half = SPEC["width"] // 2
        rates = torch.exp(-torch.arange(half).to(table) * (math.log(10000) / (half - 1)))
        angles = (torch.arange(tokens.shape[1]).to(table) + PADDING + 1)[:, None] * rates
        positions = torch.cat([angles.sin(), angles.cos()], 1)
        y = table[tokens] * math.sqrt(SPEC["width"]) + positions
        return y * (tokens != PADDING)[..., None]

    def convolution(self, name, x, lengths, kernel, causal):
        sentences, positions, width = x.shape
        heads = SPEC["heads"]
        taps = self.linear(name + ".weight_linear", x)
        taps = taps.view(sentences, positions, heads, kernel).softmax(-1)
        exists = (torch.arange(positions)[None] < torch.tensor(lengths)[:, None])[..., None]
        before = kernel - 1 if causal else kernel // 2
        padded = F.pad(x * exists, (0, 0, before, kernel - 1 - before))
        windows = padded.unfold(1, kernel, 1).view(sentences, positions, heads, -1, kernel)
        return (windows * taps[:, :, :, None]).sum(-1).reshape(x.shape) * exists

    def attention(self, name, x, memory, lengths):
        def by_head(part, value):
            y = self.linear(f"{name}.{part}", value)
            return y.view(*y.shape[:2], SPEC["heads"], -1).transpose(1, 2)

        query, key, value = by_head("q_proj", x), by_head("k_proj", memory), by_head("v_proj", memory)
        scores = query @ key.transpose(2, 3) / math.sqrt(SPEC["width"] // SPEC["heads"])
        hidden = torch.arange(memory.shape[1])[None] >= torch.tensor(lengths)[:, None]
        scores = scores.masked_fill(hidden[:, None, None], -math.inf)
        y = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        return self.linear(name + ".out_proj", y)

    def half_with_convolution(self, name, norm, x, lengths, kernel, causal):
        y = self.linear(name + ".linear1", x)
        y = self.convolution(name + ".conv", y, lengths, kernel, causal)
        return self.norm(norm, x + self.linear(name + ".linear2", y))

    def half_with_feed_forward(self, name, norm, x):
        return self.norm(norm, x + self.linear(name + ".fc2", self.linear(name + ".fc1", x).relu()))

    def losses(self, source, decoder_input, target):
        """Sums over all tokens of the target: label-smoothed, and plain."""
        memory = self.embed("encoder.embed_tokens", source)
        for i, kernel in enumerate(SPEC["encoder_kernels"]):
            name = f"encoder.layers.{i}"
            norm = name + ".layer_norms."
            memory = self.half_with_convolution(name, norm + "0", memory, SOURCE_LENGTHS, kernel, False)
            memory = self.half_with_feed_forward(name, norm + "1", memory)
        x = self.embed("decoder.embed_tokens", decoder_input)
        for i, kernel in enumerate(SPEC["decoder_kernels"]):
            name = f"decoder.layers.{i}"
            norm = name + ".conv_layer_norm"
            x = self.half_with_convolution(name, norm, x, TARGET_LENGTHS, kernel, True)
            seen = self.attention(name + ".encoder_attn", x, memory, SOURCE_LENGTHS)
            x = self.norm(name + ".encoder_attn_layer_norm", x + seen)
            x = self.half_with_feed_forward(name, name + ".final_layer_norm", x)
        logs = F.linear(x, self.weights["decoder.embed_out"]).log_softmax(-1)
        counts = target != PADDING
        nll = -(logs.gather(2, target[..., None])[..., 0] * counts).sum()
        even = -(logs.mean(-1) * counts).sum()
        smoothing = SPEC["label_smoothing"]
        return (1 - smoothing) * nll + smoothing * even, nll


def train(dtype):
    weights = initial_weights(dtype)
    optimizer = torch.optim.AdamW(weights.values(), **ADAM)
    network = Network(weights)
    source, decoder_input, target = batch()
    run = {"losses": [], "nlls": [], "gradients": {}, "weights": weights}
    for update in range(UPDATES):
        optimizer.zero_grad()
        loss, nll = network.losses(source, decoder_input, target)
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
        "spec": SPEC,
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
