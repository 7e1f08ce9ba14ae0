"""Writes tests/golden/bpe.json: the merges that subword-nmt learns from a small made text, and lines
that it splits with them.

The words are made from a few syllables, with letters of one to four bytes, rows of equal letters and
many pairs that are equally frequent.

    pip install subword-nmt
    python tools/make_bpe_golden.py
"""

import io
import json
import os
import random
from importlib.metadata import version

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

SEED = 1
MERGES = 120
GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "bpe.json"
)

SYLLABLES = ("ha", "häu", "ser", "ß", "aa", "aaa", "en", "e", "шк", "ола", "😀", "x", "&apos;", "@-@")
# Not in the text that is learned from: new words, new letters, marks.
MORE_LINES = (
    "",
    "a aa aaa aaaa aaaaa aaaaaa aaaaaaa",
    "häuserhäuser ßßß хшк école 東京 😀😀😀",
    "h</w> <@ e@ @e @-@@-@",
)


def make_lines(count, generator):
    def word():
        return "".join(generator.choices(SYLLABLES, k=generator.randint(1, 4)))

    words = [word() for _ in range(50)]
    return [" ".join(generator.choices(words, k=generator.randint(1, 8))) for _ in range(count)]


def make_golden():
    generator = random.Random(SEED)
    text = make_lines(60, generator)
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(text) + "\n"), codes, MERGES)
    bpe = BPE(codes)
    lines = text[:10] + make_lines(10, generator) + list(MORE_LINES)
    return {
        "command": "python tools/make_bpe_golden.py",
        "subword_nmt": version("subword-nmt"),
        "seed": SEED,
        "text": text,
        "codes": codes.getvalue(),
        "splits": [{"line": x, "split": bpe.process_line(x)} for x in lines],
    }


def main():
    with open(GOLDEN, "w", encoding="utf-8") as file:
        json.dump(make_golden(), file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
