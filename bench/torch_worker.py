"""Times training steps in PyTorch, as thimble_step_bench --serve does in Thimble.

Started by compare_torch. Waits for lines on standard input, each the number of seconds to measure;
answers each with one line of JSON. Before that it prints one line that describes it, or
contains "error" if it cannot work.
"""

import argparse
import json
import os
import statistics
import sys
import time

from comparison import FORMS, unit_of

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools")
MIN_STEPS = 3  # fewer give no useful median
SENTENCE = 25  # tokens, as in Thimble's made-up batches


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--form", choices=[*FORMS["images"], *FORMS["tokens"]])
    parser.add_argument("--precision", choices=["fp32", "bf16", "bf16-autocast"], default="fp32")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    options = parser.parse_args()
    options.unit = unit_of(options.model)
    options.form = options.form or FORMS[options.unit][0]
    return options


def fused_if_possible(optimizer, parameters, **options):
    """In one pass, if this PyTorch supports that on the CPU."""
    parameters = list(parameters)
    try:
        return optimizer(parameters, fused=True, **options)
    except (RuntimeError, TypeError):
        return optimizer(parameters, **options)


def make_images(torch, options):
    """A network, its optimizer, and a function that computes the loss of a batch in memory."""
    from torch_wide_resnet import make_wide_resnet

    memory_format = torch.channels_last if options.form == "nhwc" else torch.contiguous_format
    model = make_wide_resnet(options.model, inplace_relu=True).to(memory_format=memory_format)
    images = torch.randn(options.batch, 3, 32, 32).to(memory_format=memory_format)
    if options.precision == "bf16":
        model, images = model.to(torch.bfloat16), images.to(torch.bfloat16)
    labels = torch.arange(options.batch) % 10
    optimizer = fused_if_possible(
        torch.optim.SGD, model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True
    )

    def loss(network):
        return torch.nn.functional.cross_entropy(network(images).float(), labels)

    return model, optimizer, loss


def make_sentences(torch, options):
    """The same for a translator: sentences of 25 tokens on each side, without padding."""
    from torch_translator import SPECS, Translator

    model = Translator(SPECS[options.model], as_band=options.form == "band")
    if options.precision == "bf16":
        model = model.to(torch.bfloat16)
    shape = (options.batch // SENTENCE, SENTENCE)
    source = torch.randint(4, model.spec["source_words"], shape)
    target = torch.randint(4, model.spec["target_words"], shape)
    optimizer = fused_if_possible(
        torch.optim.AdamW, model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=1e-4
    )

    def loss(network):
        return model.losses(network(source, target).float(), target)[0] / target.numel()

    return model, optimizer, loss


def make_step(torch, options):
    """Returns a function that does one update with a batch that stays in memory."""
    sys.path.insert(0, TOOLS)
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    make = make_images if options.unit == "images" else make_sentences
    model, optimizer, loss_of = make(torch, options)
    network = torch.compile(model) if options.compile else model
    autocast = options.precision == "bf16-autocast"

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = loss_of(network)
        loss.backward()
        optimizer.step()

    return step


def measure(step, seconds):
    times = []
    while sum(times) < seconds or len(times) < MIN_STEPS:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return times


def say(**fields):
    print(json.dumps(fields), flush=True)


def main():
    options = parse_arguments()
    try:
        import torch
    except ImportError as error:
        say(error=f"{error}; `pip install torch` in a virtual environment, and name its python")
        return 1
    try:
        step = make_step(torch, options)
        for _ in range(2):  # compiles, allocates, fills caches
            step()
    except Exception as error:  # a compiler may throw anything
        first_line = (str(error).strip().splitlines() or [""])[0]
        say(error=f"{type(error).__name__}: {first_line}")
        return 1
    say(torch=torch.__version__, threads=torch.get_num_threads())
    for line in sys.stdin:
        times = measure(step, float(line))
        median = statistics.median(times)
        per_second = {f"{options.unit}_per_second": options.batch / median}
        say(steps=len(times), ms=median * 1e3, **per_second)
    return 0


if __name__ == "__main__":
    sys.exit(main())
