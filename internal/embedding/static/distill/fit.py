"""Fitting: token vectors whose normalised sum over a text points where the teacher's vector of it points.

Model2Vec takes token vectors from one forward pass a word; that is the start here. Tokenlearn's idea, to regress
pooled vectors on the teacher's vectors of whole texts, then settles what a word is worth beside others.
"""

import numpy as np
import scipy.sparse as sp


def bag(tokenizer, texts, rows):
    ids = [tokenizer.tokens(t) for t in texts]
    ends = np.cumsum([0] + [len(i) for i in ids])
    flat = np.fromiter((k for i in ids for k in i), np.int64, ends[-1])
    return sp.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(texts), rows))


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def fit(start, bags, targets, epochs, rate, batch=1024, seed=0):
    """Adam on 1 - cosine, touching only the rows of each batch; the rate falls to zero. Deterministic."""
    v = start.astype(np.float32).copy()
    first, second = np.zeros_like(v), np.zeros_like(v)
    order, step = np.random.default_rng(seed), 0
    steps = epochs * (bags.shape[0] // batch)
    for epoch in range(epochs):
        shuffled, total = order.permutation(bags.shape[0]), 0.0
        for b in range(0, len(shuffled) - batch + 1, batch):
            i = shuffled[b : b + batch]
            x, y = bags[i], targets[i]
            pooled = x @ v
            norm = np.linalg.norm(pooled, axis=1, keepdims=True) + 1e-6
            u = pooled / norm
            cosine = (u * y).sum(1, keepdims=True)
            total += float(cosine.mean())
            rows = np.unique(x.indices)
            g = x[:, rows].T @ ((cosine * u - y) / norm / batch)
            first[rows] = 0.9 * first[rows] + 0.1 * g
            second[rows] = 0.99 * second[rows] + 0.01 * g * g
            v[rows] -= rate * (1 - step / steps) * first[rows] / (np.sqrt(second[rows]) + 1e-8)
            step += 1
        print(f"  epoch {epoch + 1}: mean cosine {total / (len(shuffled) // batch):.4f}", flush=True)
    return v
