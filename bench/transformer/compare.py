"""Compares embedders/transformer with onnxruntime on one core: the same model, the same token ids, side by side.

    python3.11 -m venv venv && venv/bin/pip install -r ../../embedders/transformer/testdata/requirements.txt
    venv/bin/python compare.py MODEL-FOLDER [ROUNDS]

The folder holds a BERT model as safetensors with its tokenizer.json. The ONNX graph is built from the same weights
(embedders/transformer/testdata/graph.py), optimised by onnxruntime, and for int8 quantised by its quantize_dynamic, per channel.
Each round measures both, one right after the other, in processor time; what is printed is the median of the rounds'
ratios and of each side's tokens a second. Souvenir's time includes cutting texts into tokens; onnxruntime gets the ids.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../embedders/transformer/testdata"))

import numpy as np
import safetensors.numpy
import tokenizers
from onnxruntime.quantization import QuantType, quantize_dynamic

import graph

WORDS = "the team has moved its old data from one server to another before we could write a note about what was in it".split()
CASES = ((1, 12), (1, 128), (32, 32), (16, 64), (8, 128), (2, 256))


def texts(tokenizer, count, length):
    """Texts of exactly so many tokens."""
    out = []
    for i in range(count):
        words = []
        while len(tokenizer.encode(" ".join(words)).ids) < length:
            words.append(WORDS[(len(words) * 7 + i) % len(WORDS)])
        out.append(" ".join(words))
    ids = np.array([e.ids for e in tokenizer.encode_batch(out)])
    assert ids.shape == (count, length)
    return out, ids


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15
    work = tempfile.mkdtemp()
    with open(folder + "/config.json") as f:
        config = types.SimpleNamespace(**json.load(f))
    tensors = safetensors.numpy.load_file(folder + "/model.safetensors")
    tensors = {k.removeprefix("bert."): v for k, v in tensors.items()}
    tensors = {
        k: v for k, v in tensors.items() if k.startswith(("embeddings.", "encoder.")) and not k.endswith("position_ids")
    }
    with open(work + "/float32.onnx", "wb") as f:
        f.write(graph.build(config, tensors))
    quantize_dynamic(work + "/float32.onnx", work + "/int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    subprocess.run(["go", "build", "-o", work + "/transformer", "."], cwd=HERE, check=True)
    print("| weights | texts x tokens | Souvenir, tokens/s | onnxruntime, tokens/s | ratio, median of pairs | cosine |")
    print("|---|---|---|---|---|---|")
    for precision in ("float32", "int8"):
        session = graph.session(work + f"/{precision}.onnx")
        ours = subprocess.Popen(
            [work + "/transformer"] + ["-int8"] * (precision == "int8") + [folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for count, length in CASES:
            batch, ids = texts(tokenizer, count, length)
            feed = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "position_ids": np.broadcast_to(np.arange(length), ids.shape),
            }
            repeat = max(1, 1000 // ids.size)
            ratios, a, b = [], [], []
            for n in range(rounds + 1):
                mine = 0
                for _ in range(repeat):
                    ours.stdin.write(json.dumps(batch) + "\n")
                    ours.stdin.flush()
                    answer = json.loads(ours.stdout.readline())
                    mine += answer["seconds"]
                start = time.process_time()
                for _ in range(repeat):
                    state = session.run(None, feed)[0]
                theirs = time.process_time() - start
                if n:  # the first round warms up
                    ratios.append(theirs / mine)
                    a.append(ids.size * repeat / mine)
                    b.append(ids.size * repeat / theirs)
            want, got = state[0].mean(0), np.array(answer["vector"])
            same = float(want @ got / np.linalg.norm(want) / np.linalg.norm(got))
            print(
                f"| {precision} | {count} x {length} | {statistics.median(a):,.0f} | {statistics.median(b):,.0f} | {statistics.median(ratios):.2f} | {same:.6f} |",
                flush=True,
            )
        ours.stdin.close()
        ours.wait()


if __name__ == "__main__":
    main()
