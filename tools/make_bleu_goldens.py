"""Writes tests/golden/bleu.json: scores of small corpora and tokenised lines, as sacreBLEU has them.

The sentences are written here, with everything that the tokenizer 13a treats specially; translations
are made from them by dropping, repeating, swapping and damaging words.

    pip install sacrebleu
    python tools/make_bleu_goldens.py
"""

import json
import os
import random

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

SEED = 1
GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "bleu.json"
)

SENTENCES = (
    "The train to Ulm leaves at 7.45 from platform 3, not from platform 12.",
    'She asked: "Who has the key?" - and nobody answered...',
    "Prices rose by 1,250.75 euros (about 3.5%), he said; that's a lot!",
    "A well-known ten-year-old boat, built in 1984-85, lies at anchor.",
    "Write to someone@example.org or see https://example.org/a_b?c=d&e=f#g.",
    "Profit & loss: 5 &lt; 7 &amp; 9 &gt; 8, as &quot;everybody&quot; knows.",
    "Das Mädchen läuft über die Straße, während es schneit – schön!",
    "« Voilà », dit-il, « c'est l'été : 30 °C ».",
    "Он читает книгу, которую купил вчера.",
    "He paid $5, £6 and €7; [sic] {see below} ~ 10^3 | 2*3+4=10.",
    "the the the the the the the .",
    "One <skipped> two, three . four,five 6,7 8. 9 .10 ,11",
    "- 5-3 = 2, -4 and 4- are odd-looking; 7--8.",
    "a\u00a0no-break\u2003space\u3000here",
    "The committee has not decided whether the bridge will be repaired this year.",
    "We walked along the river until it was too dark to see the path.",
    "Nothing is as easy as it looks, and everything takes longer than you think.",
    "Yes.",
    "",
    "   two   spaces   ",
)


def damage(words, share, generator):
    result = []
    for word in words:
        draw = generator.random() / share
        if draw < 0.4:
            continue
        if draw < 0.6:
            result.append(generator.choice(words))
        elif draw < 0.8 and result:
            result.insert(-1, word)
        elif draw < 1:
            result.append(word + generator.choice(".,!'\"-)1"))
        else:
            result.append(word)
    return result


def make_case(name, sentences, share, generator):
    translations = [" ".join(damage(x.split(), share, generator)) for x in sentences]
    references = list(sentences)
    tokenized = sacrebleu.corpus_bleu(
        translations, [references], tokenize="none", smooth_method="none", force=True
    )
    default = sacrebleu.corpus_bleu(translations, [references])
    return {
        "name": name,
        "translations": translations,
        "references": references,
        "tokenized": round(tokenized.score, 8),
        "sacre_13a": round(default.score, 8),
        "matches_13a": default.counts,
        "totals_13a": default.totals,
        "words_13a": [default.sys_len, default.ref_len],
    }


def make_golden():
    generator = random.Random(SEED)
    cases = []
    for share in (0.05, 0.2, 0.5, 0.9):
        cases.append(make_case(f"all, {share} damaged", SENTENCES, share, generator))
    for number in range(12):
        some = generator.sample(SENTENCES, generator.randint(1, 3))
        cases.append(make_case(f"few, number {number}", some, 0.7, generator))
    cases.append(make_case("same", SENTENCES, 1e-9, generator))
    tokenize = Tokenizer13a()
    return {
        "command": "python tools/make_bleu_goldens.py",
        "sacrebleu": sacrebleu.__version__,
        "seed": SEED,
        "tokenizer_13a": [{"line": x, "tokens": tokenize(x.rstrip())} for x in SENTENCES],
        "cases": cases,
    }


def main():
    with open(GOLDEN, "w", encoding="utf-8") as file:
        json.dump(make_golden(), file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
