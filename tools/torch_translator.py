"""The DynamicConv network for translation in PyTorch, written the usual way, sentences first.

Its parameters have the names of Thimble's files of weights. Padding is at the end of sentences.
"""

import math

import torch
from torch import nn
from torch.nn import functional

PADDING = 1

IWSLT = {
    "source_words": 8848,
    "target_words": 6632,
    "width": 512,
    "feed_forward": 1024,
    "heads": 4,
    "encoder_kernels": [3, 7, 15, 31, 31, 31, 31],
    "decoder_kernels": [3, 7, 15, 31, 31, 31],
    "label_smoothing": 0.1,
    "dropout": 0.3,
    "attention_dropout": 0.1,
    "tap_dropout": 0.1,
}
TINY = {
    **IWSLT,
    "width": 64,
    "feed_forward": 128,
    "encoder_kernels": [3, 7],
    "decoder_kernels": [3, 7],
    "dropout": 0.1,
}
SPECS = {"dynamicconv-iwslt": IWSLT, "dynamicconv-tiny": TINY}


def existing(lengths, positions):
    """(B, T): which positions are part of a sentence; None if all are."""
    if lengths is None:
        return None
    return torch.arange(positions)[None] < lengths[:, None]


def hide(x, exists):
    return x if exists is None else x * exists[..., None]


class Embedding(nn.Module):
    """Rows of a table, scaled, plus sines and cosines of the position."""

    def __init__(self, words, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(words, width) * width**-0.5)

    def forward(self, tokens):
        width = self.weight.shape[1]
        half = width // 2
        rates = torch.exp(-torch.arange(half).to(self.weight) * (math.log(10000) / (half - 1)))
        angles = (torch.arange(tokens.shape[1]).to(self.weight) + PADDING + 1)[:, None] * rates
        positions = torch.cat([angles.sin(), angles.cos()], 1)
        y = functional.embedding(tokens, self.weight) * math.sqrt(width) + positions
        return y * (tokens != PADDING)[..., None]


class DynamicConvolution(nn.Module):
    """Each position weighs its neighbours, per head, with taps computed from itself.

    As a product with a band matrix of all positions, or of windows that are cut out."""

    def __init__(self, spec, kernel, causal, as_band):
        super().__init__()
        self.heads, self.kernel, self.rate = spec["heads"], kernel, spec["tap_dropout"]
        self.before = kernel - 1 if causal else kernel // 2
        self.as_band = as_band
        self.weight_linear = nn.Linear(spec["width"], self.heads * kernel, bias=False)

    def forward(self, x, exists):
        sentences, positions, _ = x.shape
        taps = self.weight_linear(x).view(sentences, positions, self.heads, self.kernel)
        taps = functional.dropout(taps.softmax(-1), self.rate, self.training)
        convolve = self.with_band if self.as_band else self.with_windows
        return hide(convolve(hide(x, exists), taps), exists)

    def with_band(self, x, taps):
        sentences, positions, width = x.shape
        rows = positions + self.kernel - 1
        band = x.new_zeros(sentences, self.heads, positions, rows)
        diagonals = band.as_strided(
            (sentences, self.heads, positions, self.kernel),
            (self.heads * positions * rows, positions * rows, rows + 1, 1),
        )
        diagonals.copy_(taps.transpose(1, 2))
        band = band.narrow(3, self.before, positions)
        by_head = x.view(sentences, positions, self.heads, -1).transpose(1, 2)
        return (band @ by_head).transpose(1, 2).reshape(sentences, positions, width)

    def with_windows(self, x, taps):
        padded = functional.pad(x, (0, 0, self.before, self.kernel - 1 - self.before))
        windows = padded.unfold(1, self.kernel, 1)
        windows = windows.view(*x.shape[:2], self.heads, -1, self.kernel)
        return (windows * taps[:, :, :, None]).sum(-1).reshape(x.shape)


class Attention(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.heads, self.rate = spec["heads"], spec["attention_dropout"]
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, part, nn.Linear(spec["width"], spec["width"]))

    def forward(self, x, memory, memory_exists):
        def by_head(y):
            return y.view(*y.shape[:2], self.heads, -1).transpose(1, 2)

        seen = None if memory_exists is None else memory_exists[:, None, None]
        y = functional.scaled_dot_product_attention(
            by_head(self.q_proj(x)),
            by_head(self.k_proj(memory)),
            by_head(self.v_proj(memory)),
            attn_mask=seen,
            dropout_p=self.rate if self.training else 0.0,
        )
        return self.out_proj(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """What layers of encoder and decoder have in common: a convolution and a feed-forward network,
    each added to its input."""

    def __init__(self, spec, kernel, causal, as_band):
        super().__init__()
        width = spec["width"]
        self.rate = spec["dropout"]
        self.linear1 = nn.Linear(width, width)
        self.conv = DynamicConvolution(spec, kernel, causal, as_band)
        self.linear2 = nn.Linear(width, width)
        self.fc1 = nn.Linear(width, spec["feed_forward"])
        self.fc2 = nn.Linear(spec["feed_forward"], width)

    def drop(self, x):
        return functional.dropout(x, self.rate, self.training)

    def convolved(self, x, exists):
        return x + self.drop(self.linear2(self.conv(self.linear1(x), exists)))

    def fed_forward(self, x):
        return x + self.drop(self.fc2(functional.relu(self.fc1(x))))


class EncoderLayer(Layer):
    def __init__(self, spec, kernel, as_band):
        super().__init__(spec, kernel, False, as_band)
        self.layer_norms = nn.ModuleList([nn.LayerNorm(spec["width"]) for _ in range(2)])

    def forward(self, x, exists):
        x = self.layer_norms[0](self.convolved(x, exists))
        return self.layer_norms[1](self.fed_forward(x))


class DecoderLayer(Layer):
    def __init__(self, spec, kernel, as_band):
        super().__init__(spec, kernel, True, as_band)
        self.encoder_attn = Attention(spec)
        for norm in ("conv_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"):
            setattr(self, norm, nn.LayerNorm(spec["width"]))

    def forward(self, x, exists, memory, memory_exists):
        x = self.conv_layer_norm(self.convolved(x, exists))
        seen = self.drop(self.encoder_attn(x, memory, memory_exists))
        x = self.encoder_attn_layer_norm(x + seen)
        return self.final_layer_norm(self.fed_forward(x))


class Translator(nn.Module):
    """`as_band` chooses how convolutions are computed."""

    def __init__(self, spec, as_band=True):
        super().__init__()
        self.spec = spec
        width = spec["width"]
        self.encoder = nn.Module()
        self.encoder.embed_tokens = Embedding(spec["source_words"], width)
        self.encoder.layers = nn.ModuleList(
            EncoderLayer(spec, kernel, as_band) for kernel in spec["encoder_kernels"]
        )
        self.decoder = nn.Module()
        self.decoder.embed_tokens = Embedding(spec["target_words"], width)
        self.decoder.layers = nn.ModuleList(
            DecoderLayer(spec, kernel, as_band) for kernel in spec["decoder_kernels"]
        )
        self.decoder.embed_out = nn.Parameter(
            torch.randn(spec["target_words"], width) * width**-0.5
        )

    def drop(self, x):
        return functional.dropout(x, self.spec["dropout"], self.training)

    def forward(self, source, decoder_input, source_lengths=None, target_lengths=None):
        """Logits (B, T, V). Without lengths, no sentence has padding."""
        source_exists = existing(source_lengths, source.shape[1])
        target_exists = existing(target_lengths, decoder_input.shape[1])
        memory = self.drop(self.encoder.embed_tokens(source))
        for layer in self.encoder.layers:
            memory = layer(memory, source_exists)
        x = self.drop(self.decoder.embed_tokens(decoder_input))
        for layer in self.decoder.layers:
            x = layer(x, target_exists, memory, source_exists)
        return functional.linear(x, self.decoder.embed_out)

    def losses(self, logits, target):
        """Sums over all tokens of the target: label-smoothed, and plain."""
        sums = [
            functional.cross_entropy(
                logits.flatten(0, 1),
                target.flatten(),
                ignore_index=PADDING,
                label_smoothing=smoothing,
                reduction="sum",
            )
            for smoothing in (self.spec["label_smoothing"], 0.0)
        ]
        return tuple(sums)
