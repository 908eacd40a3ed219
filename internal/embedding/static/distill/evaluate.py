"""STS-B, LoCoMo (development part) and Cranfield figures of an embedding function, alone and beside BM25, and how
many foreign words and notes meet their translation.

    evaluate.py EVAL_DIR [model.bin]
"""

import collections, gzip, json, os, re, sys

import numpy as np
from scipy.stats import spearmanr

APART = "adversarial"
STOP = set(
    "a an and are as at be but by did do does for from had has have he her his how i in is it its me my of on or "
    "our she so that the their them they this to was we were what when where which who whom whose why will with you your".split()
)


def rows(path):
    with gzip.open(path, "rt", encoding="utf8") as f:
        return [json.loads(line) for line in f]


def document(r):
    t = r["text"] + (f" [shared image: {r['caption']}]" if r.get("caption") else "")
    if r.get("speaker"):
        t = f"{r['speaker']}: {t}"
        if r.get("session_date"):
            t = f"({r['session_date']}) {t}"
    return t


def stem(w):
    for end, put in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("edly", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("ly", ""),
    ):
        if w.endswith(end) and len(w) - len(end) >= 3 and not w.endswith("ss"):
            w = w[: len(w) - len(end)] + put
            break
    if len(w) > 3 and w[-1] == w[-2] and w[-1] not in "ls":
        w = w[:-1]
    return w[:-1] if len(w) > 3 and w[-1] == "e" else w


def terms(text):
    return [stem(w) for w in re.findall(r"[a-z0-9]+", text.lower().replace("'s", "")) if w not in STOP]


class BM25:
    def __init__(self, docs, k1, b):
        self.post, lengths = collections.defaultdict(list), []
        for i, d in enumerate(docs):
            c = collections.Counter(terms(d))
            lengths.append(sum(c.values()))
            for w, n in c.items():
                self.post[w].append((i, n))
        n, mean = len(docs), sum(lengths) / len(docs)
        self.n = n
        for w, p in self.post.items():
            ids = np.array([i for i, _ in p])
            tf = np.array([x for _, x in p], float)
            norm = k1 * (1 - b + b * np.array([lengths[i] for i in ids]) / mean)
            self.post[w] = ids, np.log(1 + (n - len(p) + 0.5) / (len(p) + 0.5)) * tf * (k1 + 1) / (tf + norm)

    def scores(self, q):
        out = np.zeros(self.n)
        for w in set(terms(q)):
            if w in self.post:
                ids, s = self.post[w]
                out[ids] += s
        return out


def z(s):
    return (s - s.mean()) / (s.std() + 1e-9)


class Retrieval:
    def __init__(self, path, k1, b):
        data = rows(path)
        self.docs = collections.defaultdict(list)
        for r in data:
            if r["type"] == "corpus":
                self.docs[r["conv"]].append(r)
        self.queries = [r for r in data if r["type"] == "query" and r["evidence"]]
        self.bm25 = {c: BM25([document(r) for r in d], k1, b) for c, d in self.docs.items()}
        self.words = [self.bm25[q["conv"]].scores(q["question"]) for q in self.queries]
        self.place = {c: {r["dia_id"]: i for i, r in enumerate(d)} for c, d in self.docs.items()}

    def vectors(self, embed):
        d = {c: embed([document(r) for r in ds], False) for c, ds in self.docs.items()}
        q = embed([q["question"] for q in self.queries], True)
        return [d[r["conv"]] @ q[i] for i, r in enumerate(self.queries)]

    def recall(self, scores, k=10):
        main, apart = [], []
        for q, s in zip(self.queries, scores):
            top = set(np.argsort(-s, kind="stable")[:k].tolist())
            ev = set(q["evidence"])
            hit = sum(self.place[q["conv"]].get(e, -1) in top for e in ev) / len(ev)
            (apart if q.get("cat_name") == APART else main).append(hit)
        return 100 * np.mean(main), 100 * np.mean(apart) if apart else float("nan")

    def report(self, embed, weights=(0.3, 0.5, 0.7, 1.0, 1.5, 2.0)):
        dense = self.vectors(embed)
        out = {"vector": self.recall(dense), "bm25": self.recall(self.words)}
        for w in weights:
            out[f"hybrid {w}"] = self.recall([z(a) + w * z(b) for a, b in zip(self.words, dense)])
        return out


class Suite:
    def __init__(self, folder):
        self.sts = collections.defaultdict(list)
        for r in rows(os.path.join(folder, "stsb_en.jsonl.gz")):
            if r["type"] == "pair":
                self.sts[r["split"]].append(r)
        self.locomo = Retrieval(os.path.join(folder, "locomo-dev.jsonl.gz"), 0.6, 0.0)
        self.cranfield = Retrieval(os.path.join(folder, "cranfield.jsonl.gz"), 1.2, 0.75)

    def stsb(self, embed, split):
        p = self.sts[split]
        a, b = embed([r["a"] for r in p], False), embed([r["b"] for r in p], False)
        return 100 * spearmanr((a * b).sum(1), [r["score"] for r in p])[0]


def translations(embed):
    """-> pairs, {language: how many first forms of foreign.txt are nearest to their English partner}"""
    from fold import Folder
    from vocabulary import Foreign

    own = Foreign(Folder())
    english = embed([word for word, _ in own.groups], False)
    met = {}
    for language in own.languages:
        nearest = (embed([forms[language][0] for _, forms in own.groups], True) @ english.T).argmax(1)
        met[language] = int((nearest == np.arange(len(nearest))).sum())
    return len(own.groups) * len(met), met


def notes(embed):
    """-> notes of parallel.txt, how many are nearest to their English version, among how many"""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "parallel.txt"), encoding="utf8") as f:
        table = list(zip(*(line.split("|") for line in f.read().split("\n") if line and not line.startswith("#"))))
    english, found = embed(table[0], False), 0
    for column in table[1:]:
        found += int(((embed(column, True) @ english.T).argmax(1) == np.arange(len(english))).sum())
    return len(english) * (len(table) - 1), found, len(english)


def main():
    from modelfile import Model

    here = os.path.dirname(os.path.abspath(__file__))
    with open(sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "..", "model.bin"), "rb") as f:
        model = Model(f.read())
    suite = Suite(sys.argv[1])
    print(f"STS-B dev {suite.stsb(model.embed, 'dev'):.1f} test {suite.stsb(model.embed, 'test'):.1f}")
    for name, part in (("LoCoMo", suite.locomo), ("Cranfield", suite.cranfield)):
        for what, (main_recall, apart) in part.report(model.embed).items():
            print(f"{name:10} {what:12} recall@10 {main_recall:5.1f}  adversarial {apart:5.1f}")
    print("words that meet their translation, of", *translations(model.embed))
    print("notes, met, among:", *notes(model.embed))


if __name__ == "__main__":
    main()
