"""The parts of compare_torch that need neither PyTorch nor Thimble: settings, medians, tables."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to train, and the arguments of its worker."""

    side: str  # "torch" or "thimble"
    name: str
    words: tuple


# How PyTorch can store images, or compute the convolutions of a translator: any may be the fastest.
FORMS = {"images": ["nchw", "nhwc"], "tokens": ["band", "windows"]}


def unit_of(model):
    """What a model's batch size counts."""
    return "tokens" if model.startswith("dynamicconv-") else "images"


def torch_setting(form, batch, compiled=False, precision="fp32"):
    words = ("--form", form, "--batch", str(batch))
    way = "compiled" if compiled else "eager"
    name = f"torch {form} {way} batch {batch}"
    if precision != "fp32":
        words += ("--precision", precision)
        name += f" {precision}"
    return Setting("torch", name, words + (("--compile",) if compiled else ()))


def thimble_setting(options, batch):
    """`options` is the argument of --thimble; it may set another batch size."""
    words = tuple(options.split())
    if "--batch" not in words:
        words = ("--batch", str(batch)) + words
    return Setting("thimble", " ".join(("thimble",) + words).replace("--batch", "batch"), words)


def parse_batches(text):
    """Parses "50,100" to [50, 100]; raises ValueError with a message for anything else."""
    try:
        batches = [int(part) for part in text.split(",")]
    except ValueError:
        batches = []
    if not batches or min(batches) < 1:
        raise ValueError(f"{text}: expected batch sizes such as 50,100")
    return batches


def best_first(speeds):
    """Settings of {setting: examples per second, or None if it failed}, fastest first."""
    worked = [setting for setting, speed in speeds.items() if speed is not None]
    return sorted(worked, key=lambda setting: -speeds[setting])


def compile_candidates(eager_speeds, forms):
    """torch.compile takes minutes: it is tried for each form only with the batch size and
    precision that were fastest without it."""
    candidates = []
    for form in forms:
        here = [s for s in best_first(eager_speeds) if s.words[:2] == ("--form", form)]
        if here:
            words = here[0].words
            precision = words[5] if "--precision" in words else "fp32"
            candidates.append(torch_setting(form, words[3], compiled=True, precision=precision))
    return candidates


@dataclasses.dataclass(frozen=True)
class Summary:
    """Images or tokens per second over the rounds."""

    median: float
    slowest: float
    fastest: float


def summarize(speeds):
    return Summary(statistics.median(speeds), min(speeds), max(speeds))


def compare(speeds):
    """Rows {setting, summary, ratio} from {setting: [examples per second of each round]}; the ratio
    is to the fastest PyTorch by median, None if there is no PyTorch."""
    summaries = {setting: summarize(rounds) for setting, rounds in speeds.items()}
    torch = [summary.median for setting, summary in summaries.items() if setting.side == "torch"]
    return [
        {
            "setting": setting,
            "summary": summary,
            "ratio": summary.median / max(torch) if torch else None,
        }
        for setting, summary in summaries.items()
    ]


def format_table(header, rows):
    """Plain text: the first column aligned left, the others right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = ""
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def format_comparison(rows, unit="images"):
    def cells(row):
        summary = row["summary"]
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f}"
        spread = f"{summary.slowest:.1f}..{summary.fastest:.1f}"
        return [row["setting"].name, f"{summary.median:.1f}", spread, ratio]

    header = ["setting", f"{unit}/s", "min..max", "of fastest torch"]
    return format_table(header, [cells(row) for row in rows])


def format_search(speeds, errors, unit="images"):
    rows = [
        [setting.name, "-" if speed is None else f"{speed:.1f}", errors.get(setting, "")]
        for setting, speed in speeds.items()
    ]
    # Errors are sentences, so they are aligned left, after the figures.
    width = max((len(row[2]) for row in rows), default=0)
    rows = [[name, speed, error.ljust(width)] for name, speed, error in rows]
    return format_table(["first look", f"{unit}/s", ""], rows)
