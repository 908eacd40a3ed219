"""Writes ../testdata: 220 texts and their reference vectors, which the Go tests compare with.

    fixtures.py [model.bin]
"""

import json, os, random, sys, unicodedata

from modelfile import Model

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 220


def texts():
    with open(os.path.join(HERE, "fixtures.txt"), encoding="utf8") as f:
        lines = f.read().rstrip("\n").split("\n")
    out = lines + [
        "",
        " ",
        "\t\r\n",
        "\u00a0\u3000",
        "\u200b\u200d",
        "\ufffd",
        "\u0000a\u0000b",
        "soft\u00adhyphen",
        "a\u0301",
        "\u0301",
        "a" * 191,
        "a" * 192,
        "a" * 193,
        "\u00df" * 95 + "a",
        "\u00df" * 96 + "a",
        "b" * 191 + "\u00df" + "c",
        "x" * 5000,
        "\u732b" * 63,
        "\u732b" * 64,
        "\u732b" * 65,
        "\u5929\u6c14" * 400,
        lines[56] * 9,
        "\u0e41\u0e21\u0e27" * 200,
        "\u305d\u3046" * 77 + "end",
        "\U00020000\U0001f9ff\ue000\U000e0101",
        "\u1112\u1161\u11ab",
        "\u304b\u3099",
        " ".join(lines[:40]),
        "word " * 2000,
        "." * 1000,
        "\ud55c" * 100,
        "\u0939\u093f" * 90,
        "\u0130\u0131",
        "\u03a3\u03c3\u03c2",
        "A\u030a",
        "\u212b",
        "don\u2019t",
        "e\u200cf",
        "1\u20442",
        *(
            unicodedata.normalize("NFD", x) for x in lines if any("\uac00" <= c <= "\ud7a3" for c in x)
        ),  # Korean letter by letter
        "\u1112\u1161",
        "\u1112\u200d\u1161\u11ab",
        "\u1112 \u1161\u11ab",
        "\ud558\u11ab",
        "\ud55c\u11ab",
        "\u1161\u11ab",
        "\u3131\u314f",
        "\u1112" * 3 + "\u1161\u11ab",
        "\uac00" * 63 + "\u1112\u1161\u11ab\u1112\u1161",
        "\uac00" * 64 + "\u11ab",
        "ab" + "\uac00" * 63 + "\u1112\u1161\u11ab",
    ]
    r = random.Random(7)
    while len(out) < COUNT:  # languages mixed in one text
        out.append(" ".join(r.choice(lines) for _ in range(3)))
    return out[:COUNT]


def main(path=os.path.join(HERE, "..", "model.bin")):
    with open(path, "rb") as f:
        model = Model(f.read())
    t, folder = texts(), os.path.join(HERE, "..", "testdata")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "texts.json"), "w", encoding="utf8") as f:
        json.dump([{"text": x, "tokens": model.tokenizer.tokens(x)} for x in t], f, ensure_ascii=True, indent=0)
    with open(os.path.join(folder, "vectors.f32"), "wb") as f:
        f.write(model.embed(t).astype("<f4").tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
