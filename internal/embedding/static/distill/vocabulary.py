"""The vocabulary: BERT's uncased pieces, English words that they split (words.txt), everyday words of other languages
(foreign.txt), and characters and the commonest pieces of all languages from the teacher's SentencePiece vocabulary."""

import os
import re
import unicodedata

from fold import LETTER, PUNCTUATION, UNSPACED
from teacher import META

HERE = os.path.dirname(os.path.abspath(__file__))


def folds_to_itself(folder, text):
    w = list(folder.words(text))
    return len(w) == 1 and w[0][0] == text


def build(folder, bert_path, teacher, rows):
    """-> (pieces, text of each piece for the teacher, number of leading English ones)"""
    with open(bert_path, encoding="utf8") as f:
        bert = [v for v in f.read().split("\n") if v and not re.fullmatch(r"\[.+\]", v)]
    out, seen = [], set()

    def add(piece):
        if piece in seen or len(piece.encode()) > 64:
            return
        seen.add(piece)
        out.append(piece)

    for v in bert:
        text = v[2:] if v.startswith("##") and len(v) > 2 else v
        if folds_to_itself(folder, text):
            kind = next(folder.words(text))[1]
            if text is v or kind == LETTER:  # "##" before a mark or an unspaced character would never match
                add(v)
    with open(os.path.join(HERE, "words.txt"), encoding="utf8") as f:
        for w in f.read().split():
            add(w)
    for year in range(1900, 2036):
        add(str(year))
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
        add(letter), add("##" + letter)
    english = len(out)

    others = {}
    for i, p in enumerate(teacher.pieces[4:], 4):
        start = p.startswith(META)
        w = list(folder.words(p[1:] if start else p))
        if len(w) != 1:
            continue
        text, kind = w[0]
        key = text if start or kind in (PUNCTUATION, UNSPACED) else "##" + text
        if key not in seen:
            others[key] = max(others.get(key, -1e9), float(teacher.scores[i]))
    # Single characters first: with them no text of a living script is empty.
    alone = lambda k: len(k.removeprefix("##")) == 1
    order = sorted(others, key=lambda k: (-(others[k] + (3.0 if alone(k) else 0.0)), k))
    for k in order:
        if len(out) == rows:
            break
        add(k)
    return out, [p[2:] if p.startswith("##") and len(p) > 2 else p for p in out], english


class Foreign:
    """The words of foreign.txt: groups of (English word, {language: forms}), and the pieces they give."""

    def __init__(self, folder):
        self.groups = []
        with open(os.path.join(HERE, "foreign.txt"), encoding="utf8") as f:
            lines = [line for line in f.read().split("\n") if line]
        self.languages = next(line for line in lines if line.startswith("# en|")).split("|")[1:]
        for line in lines:
            if not line.startswith("#"):
                english, *columns = line.split("|")
                if len(columns) != len(self.languages):
                    raise ValueError("foreign.txt: " + line)
                self.groups.append((english, dict(zip(self.languages, (c.split() for c in columns)))))
        # A form's row belongs to the language and the meaning that have it first: "banco" is one row for all.
        self.pieces, self.texts, self.owner, self.partner = [], [], [], []
        seen = set()
        for word, forms in self.groups:
            for language, texts in forms.items():
                for text in texts:
                    ((piece, _),) = folder.words(text)  # an entry of several words could never be found
                    if piece not in seen:
                        seen.add(piece)
                        self.pieces.append(piece), self.texts.append(text), self.owner.append(
                            language
                        ), self.partner.append(word.lower())

    def words(self, language):
        return [text for _, forms in self.groups for text in forms[language]]


# Scripts of languages with so little of the teacher's text, or so many forms a word, that a few hundred words
# would not carry them: of these only the characters are kept.
CHARACTERS_ONLY = (
    "ARMENIAN",
    "BENGALI",
    "ETHIOPIC",
    "GEORGIAN",
    "GUJARATI",
    "GURMUKHI",
    "KANNADA",
    "KHMER",
    "LAO",
    "MALAYALAM",
    "MYANMAR",
    "ORIYA",
    "SINHALA",
    "TAMIL",
    "TELUGU",
    "TIBETAN",
    "SYRIAC",
    "THAANA",
    "MONGOLIAN",
    "OL",
)


IDEOGRAPHS = 2_200  # cover well over nine tenths of running Chinese and Japanese text


def choose(pieces, english, rows, foreign):
    """Indexes of the pieces that get a row: the English ones, single characters, the words of foreign.txt (index
    len(pieces) and up), then the commonest whole words of any language. What continues a foreign word is left out:
    alone it means nothing, and a whole word more means much. (Taking rows from the rarest English names as well
    was tried: it cost most of a point of LoCoMo's recall.)"""
    characters, words, ideographs = [], [], 0
    row = {p: i for i, p in enumerate(pieces)}
    own = [len(pieces) + i for i, p in enumerate(foreign) if row.get(p, english) >= english]
    taken = set(foreign)
    for i in range(english, len(pieces)):
        text = pieces[i].removeprefix("##")
        script = unicodedata.name(text[0], "?").split()[0]
        if pieces[i] in taken:
            continue
        if len(text) > 1:
            if text is pieces[i] and not text.isdigit() and script not in CHARACTERS_ONLY:
                words.append(i)
        elif script == "CJK":
            ideographs += 1
            if ideographs <= IDEOGRAPHS:
                characters.append(i)
        elif script != "HANGUL" or text is pieces[i]:
            characters.append(i)
    out = list(range(english)) + characters + own + words
    if len(out) < rows:
        raise ValueError(f"{len(out)} pieces for {rows} rows")
    return out[:rows]
