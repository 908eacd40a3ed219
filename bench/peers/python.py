"""Measures peers written in Python on the texts and vectors that `go run ./peers -export FOLDER` wrote.

    python3 -m venv env && env/bin/pip install chromadb==1.3.5 lancedb==0.25.3 numpy
    env/bin/python peers/python.py FOLDER 1000,10000 >results && go run ./peers -with results

Each peer works in a process of its own, and gets the vectors instead of making them, so adding is cheaper for it. It
prints one result a line, in the form that peers.go reads.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

RESULTS = 10


def chroma(place):
    import chromadb

    client = chromadb.PersistentClient(place, settings=chromadb.Settings(anonymized_telemetry=False))
    table = client.get_or_create_collection("texts", metadata={"hnsw:space": "cosine"})

    def add(first, texts, vectors):
        for i in range(0, len(texts), 5000):
            part = slice(i, i + 5000)
            table.add(
                ids=[str(first + i + n) for n in range(len(texts[part]))],
                documents=texts[part],
                embeddings=vectors[part],
            )

    def nearest(vector):
        found = table.query(query_embeddings=[vector], n_results=RESULTS, include=["documents"])
        return [int(n) for n in found["ids"][0]]

    return add, nearest, lambda: None


def lance(place):
    import lancedb
    import pyarrow

    db = lancedb.connect(place)
    schema = pyarrow.schema(
        [("id", pyarrow.int64()), ("text", pyarrow.string()), ("vector", pyarrow.list_(pyarrow.float32(), 256))]
    )
    table = db.create_table("texts", schema=schema, exist_ok=True)

    def add(first, texts, vectors):
        rows = [{"id": first + i, "text": t, "vector": v} for i, (t, v) in enumerate(zip(texts, vectors))]
        table.add(rows)

    def nearest(vector):
        found = table.search(vector).distance_type("cosine").limit(RESULTS).select(["id", "text", "_distance"]).to_list()
        return [row["id"] for row in found]

    return add, nearest, lambda: None


PEERS = {"chromadb": chroma, "lancedb (no index)": lance}


def read(folder, name, count):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        texts = file.read().split("\n")[:count]
    vectors = np.fromfile(os.path.join(folder, name + ".f32"), dtype="<f4").reshape(-1, 256)[:count]
    return texts, vectors


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    return 0


def measure(folder, name, size, place, stage):
    if stage == "add":
        texts, vectors = read(folder, "texts", size)
        add, _, settle = PEERS[name](place)
        start = time.perf_counter()
        for first in range(0, size, 10_000):
            add(first, texts[first : first + 10_000], vectors[first : first + 10_000])
        settle()
        rate = size / (time.perf_counter() - start)
        files = (os.path.join(at, f) for at, _, names in os.walk(place) for f in names)
        return {"per_second": rate, "bytes": sum(os.path.getsize(f) for f in files)}
    _, questions = read(folder, "questions", None)
    start = time.perf_counter()
    _, nearest, _ = PEERS[name](place)
    nearest(questions[0])
    opened = time.perf_counter() - start
    for _ in range(2):
        took, found = [], []
        for question in questions:
            start = time.perf_counter()
            found.append(nearest(question))
            took.append(1000 * (time.perf_counter() - start))
    took.sort()
    times = {"median_ms": took[len(took) // 2], "p99_ms": took[len(took) * 99 // 100]}
    return {"resident_mib": resident(), "open_ms": 1000 * opened, "vector": times, "found": found}


def main():
    if len(sys.argv) == 6:
        folder, name, size, place, stage = sys.argv[1:]
        json.dump(measure(folder, name, int(size), place, stage), sys.stdout)
        return
    folder, sizes = sys.argv[1:]
    for size in sizes.split(","):
        for name in PEERS:
            with tempfile.TemporaryDirectory() as place:
                result = {"peer": name, "size": int(size)}
                for stage in ("add", "search"):
                    command = [sys.executable, __file__, folder, name, size, place, stage]
                    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
                    result.update(json.loads(output))
                print(json.dumps(result), flush=True)


main()
