"""Makes the fixtures beside it: two tiny models with random weights, and what the reference implementations make of
hard texts. The seeds are fixed. See README.md for how to run it.

bert/    a BERT of 2 layers, with a WordPiece tokenizer trained here; float32 weights
xlmr/    an XLM-R of 2 layers, with a SentencePiece Unigram tokenizer trained here; float16 weights, sizes that are
         multiples of nothing
onnx/    the BERT's weights as an ONNX file, and quantised to int8

The tokenizers are those of the library tokenizers and of SentencePiece; the vectors are those of Flax's BertModel and
XLMRobertaModel (the library transformers), pooled and normalised as sentence-transformers does. ONNX files are built by
graph.py and must give the same vectors in onnxruntime.
"""

import base64
import gzip
import io
import json
import os
import random
import sys

import jax
import numpy as np
import onnx
import onnxruntime
import safetensors.numpy
import sentencepiece
import tokenizers
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, FlaxBertModel, FlaxXLMRobertaModel, XLMRobertaConfig

import graph

HERE = os.path.dirname(os.path.abspath(__file__))
DISTILL = os.path.join(HERE, "../../../internal/embedding/static/distill")
jax.config.update("jax_default_matmul_precision", "highest")

# Texts that tokenizers disagree about, beside those of the static model's fixtures.
HARD = [
    "",
    " ",
    "\n\t  \r\n",
    "a",
    "\u2581",
    "a\u2581b \u2581\u2581c",
    "  two  blanks   three ",
    "tab\tnew\nline\r\nreturn",
    "nul\0in the middle",
    "bell\a esc\x1b[31m del\x7f c1\x85next\x9f",
    "soft\u00adhyphen zero\u200bwidth\u200cnon\u200djoiner\ufeffbom",
    "\u202eright to left\u202c \u2066isolate\u2069",
    "\ufffd replacement \ufffd",
    "ideographic\u3000space nbsp\u00a0narrow\u202fthin\u2009",
    "e\u0301 cafe\u0301 n\u0303 a\u030a\u0301 q\u0307\u0323",
    "\u00e9 \u1ec7 \u01d5 \u212b \u2126 \ufb01 \ufb03 \u00bd \u00b2 \u2460 \u33a5 \u3349",
    "A\u0300\u0301\u0302\u0303\u0304 stacked",
    "\u0301 begins with a mark",
    "Z\u0351\u036b\u0343a\u0321l\u0332g\u0358o\u0341",
    "I\u0307stanbul \u0130zmir \u0131\u015f\u0131k I\u0131",
    "STRASSE Stra\u00dfe \u1e9e \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u01c5\u01c8",
    "\uff26\uff55\uff4c\uff4c\uff57\uff49\uff44\uff54\uff48 \uff11\uff12\uff13\uff01 \uff76\uff9e\uff77\uff9e \uff8a\uff9f",
    "\u304b\u3099\u304d\u3099 \u30cf\u309a",
    "\u1112\u1161\u11ab\u1100\u1173\u11af \ud55c\uae00",
    "\u0915\u094d\u0937\u093f \u0928\u092e\u0938\u094d\u0924\u0947 \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0e01\u0e33\u0e25\u0e31\u0e07 \u0e01\u0e34\u0e19\u0e02\u0e49\u0e32\u0e27",
    "\u0ea5\u0eb3",
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u0660\u0661\u0662 \u0600123 \u06dd",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u1000\u103c\u102c\u1038 \u1019\u103c\u1014\u103a\u1019\u102c",
    "\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd",
    "\U0001f600\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f #\ufe0f\u20e3 \U0001f9ff\U0001fae0",
    "\U0001d4d0\U0001d4f5\U0001d4f0\U0001d4ee\U0001d4eb\U0001d4fb\U0001d4ea \U00020000\U0002a6df\U0002b820 \u3400\u4dbf\uf900",
    "\u4e2d\u6587ABC\u6df7\u5408123\u6587\u672c\u3002\u300c\u5f15\u53f7\u300d\u3001\u65e5\u672c\u8a9e\u304b\u306a\u30ab\u30ca\uff01",
    "x" * 99,
    "x" * 100,
    "x" * 101,
    "x" * 500,
    "\u00e4" * 100,
    "\u00e4" * 101,
    "\u4e2d" * 120,
    "ab-" * 60,
    "\u0e01" * 130,
    "a b " * 200,
    "[CLS] and [SEP] in text, [MASK]ed [UNK] [PAD]",
    "<s> and </s> in text, <mask> ed  <unk><pad>",
    "[mask] <MASK> [ CLS ]",
    "https://example.com/a_b?c=d&e=%20f#g user@example.org C:\\dir\\file.txt",
    "snake_case camelCase kebab-case v1.2.3-rc.4+build #123 @you",
    "!?.,;:'\"()[]{}<>/\\|@#$%^&*-_=+~`",
    "\u00bf\u00a1\u2026\u2014\u2013\u2018\u2019\u201c\u201d\u00ab\u00bb\u2022\u20ac\u00a3\u00a5\u00a7\u00b6\u2122\u00ae\u2190\u2211\u221a",
    "1234567890 3.14159 1,000,000 1e-9 0xDEADBEEF \u0663\u0664 \u0967\u0968 \u2167",
    "^ ` ~ $ + < = > | \u00a6 \u02c6",
    "Minden ember szabadon sz\u00fcletik. V\u0161ichni lid\u00e9 rod\u00ed se svobodn\u00ed. Alla m\u00e4nniskor \u00e4r f\u00f6dda fria.",
    "B\u00fct\u00fcn insanlar h\u00fcr do\u011far. T\u1ea5t c\u1ea3 m\u1ecdi ng\u01b0\u1eddi sinh ra \u0111\u1ec1u t\u1ef1 do. \u0395\u03af\u03bd\u03b1\u03b9 \u03ad\u03bd\u03b1 \u03bc\u03c5\u03c3\u03c4\u03ae\u03c1\u03b9\u03bf.",
    "\u0412\u0441\u0435 \u043b\u044e\u0434\u0438 \u0440\u043e\u0436\u0434\u0430\u044e\u0442\u0441\u044f \u0441\u0432\u043e\u0431\u043e\u0434\u043d\u044b\u043c\u0438, \u0451\u0436 \u0438 \u0439\u043e\u0433\u0443\u0440\u0442. \u0423\u043a\u0440\u0430\u0457\u043d\u0441\u044c\u043a\u0430 \u043c\u043e\u0432\u0430 \u0490\u0491.",
    "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4. \u5168\u90e8\u306e\u4eba\u306f\u81ea\u7531\u3067\u3042\u308b\u3002 \u0627\u0644\u0646\u0627\u0633 \u0623\u062d\u0631\u0627\u0631 \u0e17\u0e38\u0e01\u0e04\u0e19 \u05db\u05dc \u05d1\u05e0\u05d9 \u05d4\u05d0\u05d3\u05dd",
]


def read_texts():
    with open(os.path.join(DISTILL, "fixtures.txt"), encoding="utf8") as f:
        return [line.rstrip("\n") for line in f if line.strip()] + HARD


def corpus(texts):
    out = list(texts)
    for name in ("foreign.txt", "parallel.txt", "words.txt"):
        with open(os.path.join(DISTILL, name), encoding="utf8") as f:
            out += [x.strip() for line in f if not line.startswith("#") for x in line.split("|") if x.strip()]
    with open(os.path.join(HERE, "../../../docs/embedding.md"), encoding="utf8") as f:
        out += [line.strip() for line in f if line.strip()]
    return [t.replace("\0", "") for t in out if t.strip()]


def write(path, data):
    path = os.path.join(HERE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(data, (dict, list)):
        data = json.dumps(data, ensure_ascii=False, indent=None, separators=(",", ":")).encode()
    if path.endswith(".gz"):
        data = gzip.compress(data, 9, mtime=0)
    with open(path, "wb") as f:
        f.write(data)
    print(f"{len(data):8,} {os.path.relpath(path, HERE)}")


def wordpiece(texts):
    t = tokenizers.BertWordPieceTokenizer(lowercase=True)
    t.train_from_iterator(corpus(texts), vocab_size=900, limit_alphabet=420, min_frequency=2, show_progress=False)
    vocab = sorted(t.get_vocab().items(), key=lambda x: x[1])
    out = tokenizers.Tokenizer(models.WordPiece(dict(vocab), unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer(lowercase=True)
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ids = dict(vocab)
    out.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    out.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return out, "".join(piece + "\n" for piece, _ in vocab)


def unigram(texts):
    """The tokenizer as the library transformers converts it (XLMRobertaConverter), and the SentencePiece model."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus(texts)),
        model_writer=made,
        vocab_size=1500,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc",
        character_coverage=0.995,
        num_threads=1,
        minloglevel=2,
    )
    sp = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(sp.id_to_piece(i), sp.get_score(i)) for i in range(3, sp.get_piece_size())] + [("<mask>", 0.0)]
    t = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=3))
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(made.getvalue())
    t.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
            normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("\u2581", prepend_scheme="always")]
    )
    t.decoder = decoders.Metaspace("\u2581", prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    t.add_special_tokens(
        ["<s>", "<pad>", "</s>", "<unk>", tokenizers.AddedToken("<mask>", lstrip=True, normalized=False, special=True)]
    )
    return t, made.getvalue(), sp


def weights(config, vocabulary, seed):
    """Random weights, large enough that texts differ, named as PyTorch names them."""
    g = np.random.default_rng(seed)
    h, f = config.hidden_size, config.intermediate_size
    out = {}

    def matrix(name, *shape, size=1.0):
        mantissa, exponent = np.frexp((g.standard_normal(shape) * size).astype(np.float32))
        out[name] = np.ldexp(np.round(mantissa * 32) / 32, exponent).astype(
            np.float32
        )  # few bits, so that the files are small

    def layer_norm(name):
        matrix(name + ".weight", h, size=0.2)
        out[name + ".weight"] += 1
        matrix(name + ".bias", h, size=0.2)

    def linear(name, rows, columns):
        matrix(name + ".weight", rows, columns, size=columns**-0.5)
        matrix(name + ".bias", rows, size=0.2)

    matrix("embeddings.word_embeddings.weight", vocabulary, h)
    matrix("embeddings.position_embeddings.weight", config.max_position_embeddings, h, size=0.3)
    matrix("embeddings.token_type_embeddings.weight", config.type_vocab_size, h, size=0.3)
    layer_norm("embeddings.LayerNorm")
    for i in range(config.num_hidden_layers):
        p = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear(p + "attention.self." + part, h, h)
        linear(p + "attention.output.dense", h, h)
        layer_norm(p + "attention.output.LayerNorm")
        linear(p + "intermediate.dense", f, h)
        linear(p + "output.dense", h, f)
        layer_norm(p + "output.LayerNorm")
    return out


def flax_parameters(tensors):
    tree = {}
    for name, value in tensors.items():
        parts = name.split(".")
        if parts[-1] == "weight":
            if "LayerNorm" in parts:
                parts[-1] = "scale"
            elif "embeddings" in parts[-2]:
                parts[-1] = "embedding"
            else:
                parts[-1], value = "kernel", value.T
        at = tree
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = np.asarray(value, np.float32)
    return tree


def reference(kind, config, tensors, rows, pooling):
    """Unit vectors of rows of token ids. Rows are padded to one length, and the padding masked: one shape to compile for."""
    model = (FlaxBertModel if kind == "bert" else FlaxXLMRobertaModel)(
        config, input_shape=(1, 8), add_pooling_layer=False
    )
    longest, first = max(map(len, rows)), 0 if kind == "bert" else config.pad_token_id + 1
    ids = np.array([list(r) + [config.pad_token_id] * (longest - len(r)) for r in rows])
    mask = np.array([[1] * len(r) + [0] * (longest - len(r)) for r in rows])
    # XLM-R numbers the tokens that are not padding.
    real = ids != config.pad_token_id
    positions = (
        np.cumsum(real, 1) * real + config.pad_token_id if first else np.broadcast_to(np.arange(longest), ids.shape)
    )
    states = np.asarray(
        model(ids, attention_mask=mask, position_ids=positions, params=flax_parameters(tensors))[0], np.float64
    )
    out = [state[: len(r)].mean(0) if pooling == "mean" else state[0] for state, r in zip(states, rows)]
    return np.array([v / np.linalg.norm(v) for v in out])


def truncated(tokenizer, texts, length):
    tokenizer.enable_truncation(length)
    rows = [e.ids for e in tokenizer.encode_batch(texts)]
    tokenizer.no_truncation()
    return rows


def vectors_file(path, texts, rows, vectors):
    write(
        path,
        [
            {"text": t, "ids": r, "vector": [round(float(x), 6) for x in v]}
            for t, r, v in list(zip(texts, rows, vectors))[::2]
        ],
    )


def settings(config, kind):
    return {
        "model_type": kind,
        "architectures": [kind],
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "hidden_act": "gelu",
        "max_position_embeddings": config.max_position_embeddings,
        "type_vocab_size": config.type_vocab_size,
        "vocab_size": config.vocab_size,
        "layer_norm_eps": config.layer_norm_eps,
        "pad_token_id": config.pad_token_id,
        "position_embedding_type": "absolute",
    }


def modules(folder, h, pooling, length):
    write(
        folder + "/modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
    )
    write(
        folder + "/1_Pooling/config.json",
        {
            "word_embedding_dimension": h,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    )
    write(folder + "/sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})


def bert(texts):
    t, vocab = wordpiece(texts)
    config = BertConfig(
        vocab_size=t.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
        max_position_embeddings=64,
    )
    tensors = weights(config, t.get_vocab_size(), 1)
    write("bert/tokenizer.json.gz", t.to_str().encode())
    write("bert/vocab.txt.gz", vocab.encode())
    write("bert/config.json", settings(config, "bert"))
    write("bert/model.safetensors.gz", safetensors.numpy.save({"bert." + k: v for k, v in tensors.items()}))
    modules("bert", 32, "mean", 48)
    write("bert/ids.json.gz", [{"text": x, "ids": e.ids} for x, e in zip(texts, t.encode_batch(texts))])
    rows = truncated(t, texts, 48)
    vectors = reference("bert", config, tensors, rows, "mean")
    vectors_file("bert/vectors.json.gz", texts, rows, vectors)

    made = graph.build(config, tensors)
    write("onnx/model.onnx.gz", made)
    plain = graph.run(made, rows, "mean")
    print("onnxruntime and Flax differ by", np.abs(plain - vectors).max())
    assert np.abs(plain - vectors).max() < 2e-6
    source, target = "/tmp/souvenir-plain.onnx", "/tmp/souvenir-int8.onnx"
    onnx.save(onnx.load_from_string(made), source)
    quantize_dynamic(source, target, per_channel=False, weight_type=QuantType.QUInt8)
    with open(target, "rb") as f:
        quantised = f.read()
    write("onnx/model_quantized.onnx.gz", quantised)
    # The reference for quantised weights computes in float32 with the weights that the file holds.
    again = graph.dequantised(quantised, tensors)
    vectors_file("onnx/quantized.json.gz", texts, rows, reference("bert", config, again, rows, "mean"))


def xlmr(texts):
    t, model, sp = unigram(texts)
    config = XLMRobertaConfig(
        vocab_size=t.get_vocab_size(),
        hidden_size=36,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=100,
        max_position_embeddings=66,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
    )
    tensors = {k: v.astype(np.float16) for k, v in weights(config, t.get_vocab_size(), 2).items()}
    write("xlmr/tokenizer.json.gz", t.to_str().encode())
    write("xlmr/sentencepiece.bpe.model.gz", model)
    write("xlmr/config.json", settings(config, "xlm-roberta"))
    write("xlmr/model.safetensors.gz", safetensors.numpy.save(tensors))
    modules("xlmr", 36, "cls", 64)
    write("xlmr/ids.json.gz", [{"text": x, "ids": e.ids} for x, e in zip(texts, t.encode_batch(texts))])
    write(
        "xlmr/sentencepiece.json.gz",
        [
            {"text": x, "ids": [0] + [i + 1 if i else 3 for i in sp.encode(x)] + [2]}
            for x in texts
            if "\0" not in x and not any(s in x for s in ("<s>", "<mask>"))
        ],
    )
    rows = truncated(t, texts, 64)
    vectors_file(
        "xlmr/vectors.json.gz",
        texts,
        rows,
        reference("xlm-roberta", config, {k: v.astype(np.float32) for k, v in tensors.items()}, rows, "cls"),
    )


if __name__ == "__main__":
    random.seed(1)
    everything = read_texts()
    for name, make in (("bert", bert), ("xlmr", xlmr)):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(everything)
