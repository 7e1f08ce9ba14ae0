"""WideResNet for 32x32 images in PyTorch, written the usual way.

Its parameters have the names of common PyTorch implementations, so Thimble's weights.safetensors
has to match its state_dict.
"""

import re

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """BN, ReLU, 3x3, BN, ReLU, 3x3, plus a shortcut. If the shape changes, the shortcut is a 1x1
    convolution of the first ReLU's output; otherwise it is the block's input."""

    def __init__(self, in_channels, out_channels, stride, inplace_relu):
        super().__init__()
        self.inplace_relu = inplace_relu
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.convShortcut = None  # the name is part of the file format
        if in_channels != out_channels or stride != 1:
            self.convShortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):  # (B, C, H, W)
        active = functional.relu(self.bn1(x), self.inplace_relu)
        y = self.conv2(functional.relu(self.bn2(self.conv1(active)), self.inplace_relu))
        return y + (x if self.convShortcut is None else self.convShortcut(active))


class Group(nn.Module):
    """Blocks of one width; the first one has the stride."""

    def __init__(self, num_blocks, in_channels, out_channels, stride, inplace_relu):
        super().__init__()
        self.layer = nn.Sequential(
            *(
                Block(
                    out_channels if i else in_channels,
                    out_channels,
                    1 if i else stride,
                    inplace_relu,
                )
                for i in range(num_blocks)
            )
        )

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    """inplace_relu gives the same numbers in less memory and time."""

    def __init__(self, depth=28, width=2, num_classes=10, inplace_relu=False):
        super().__init__()
        self.inplace_relu = inplace_relu
        if depth < 10 or (depth - 4) % 6 != 0:
            raise ValueError(f"depth {depth}: expected 6n+4, at least 10")
        num_blocks = (depth - 4) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.block1 = Group(num_blocks, 16, 16 * width, 1, inplace_relu)
        self.block2 = Group(num_blocks, 16 * width, 32 * width, 2, inplace_relu)
        self.block3 = Group(num_blocks, 32 * width, 64 * width, 2, inplace_relu)
        self.bn1 = nn.BatchNorm2d(64 * width)
        self.fc = nn.Linear(64 * width, num_classes)

    def forward(self, x):  # (B, 3, H, W) normalised
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return self.fc(functional.relu(self.bn1(x), self.inplace_relu).mean(dim=(2, 3)))


def make_wide_resnet(name, num_classes=10, inplace_relu=False):
    """Makes the model with Thimble's name for it: "wrn-28-2"."""
    parts = re.fullmatch(r"wrn-(\d+)-(\d+)", name)
    if not parts:
        raise ValueError(f"{name}: expected wrn-DEPTH-WIDTH")
    return WideResNet(int(parts[1]), int(parts[2]), num_classes, inplace_relu)


def load_weights(model, tensors):
    """Loads every parameter and statistic, strictly by name and shape. Thimble's files contain
    everything except PyTorch's batch counters, which only a batch norm without momentum reads."""
    counters = {
        name: value
        for name, value in model.state_dict().items()
        if name.endswith("num_batches_tracked") and name not in tensors
    }
    model.load_state_dict({**counters, **tensors}, strict=True)


def normalize(images, mean, std, dtype):
    """Bytes (B, H, W, C) to numbers (B, C, H, W); mean and std are in units of the bytes."""
    mean, std = (torch.tensor(x, dtype=dtype) for x in (mean, std))
    return ((images.to(dtype) - mean) / std).permute(0, 3, 1, 2).contiguous()


def make_recipe_optimizer(model, learning_rate=0.1):
    """The optimizer of the recipe: Nesterov momentum 0.9, weight decay 5e-4 on all parameters."""
    return torch.optim.SGD(
        model.parameters(), learning_rate, momentum=0.9, weight_decay=5e-4, nesterov=True
    )


def train_step(model, optimizer, images, labels):
    """Does one update; returns the mean loss before it and the number of correct answers."""
    optimizer.zero_grad()
    scores = model(images)
    loss = functional.cross_entropy(scores, labels)
    loss.backward()
    optimizer.step()
    return loss.item(), (scores.argmax(1) == labels).sum().item()


@torch.no_grad()
def evaluate(model, images, labels, mean, std, batch=100, dtype=torch.float32):
    """Mean loss and share of correct answers over bytes (N, H, W, C), with running statistics."""
    model.eval()
    loss = correct = 0.0
    for part, answer in zip(images.split(batch), labels.split(batch)):
        scores = model(normalize(part, mean, std, dtype))
        loss += functional.cross_entropy(scores.double(), answer, reduction="sum").item()
        correct += (scores.argmax(1) == answer).sum().item()
    return loss / len(labels), correct / len(labels)
