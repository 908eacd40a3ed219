"""Character folding and classes, frozen into the model file so that Go and Python cannot disagree.

fold(c) is what Unicode calls compatibility decomposition, less the accents of alphabetic scripts, in lower
case, composed again: BERT's uncased normalisation, except that marks which are vowels (Devanagari, Thai)
or change the letter (kana) stay, since a word without them is another word.
"""

import unicodedata as ud

LETTER, SPACE, PUNCTUATION, UNSPACED, DROP = range(5)

# Combining marks that may go: Latin, Greek, Cyrillic, Hebrew and Arabic ones, symbols', variation selectors.
ACCENTS = [
    (0x300, 0x36F),
    (0x483, 0x489),
    (0x591, 0x5C7),
    (0x610, 0x61A),
    (0x64B, 0x65F),
    (0x670, 0x670),
    (0x6D6, 0x6ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x3099, 0x309A),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
]

# Runs whose pieces are matched anywhere, with no mark for "continues a word": scripts written without spaces, and
# those of which the vocabulary holds single characters only, which then need one row each and not two.
UNSPACED_BLOCKS = [
    (0x0530, 0x058F),
    (0x0980, 0x10FF),
    (0x1200, 0x139F),
    (0x1780, 0x17FF),
    (0x2D00, 0x2D2F),
    (0x2D80, 0x2DDF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3040, 0x312F),
    (0x3190, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x1B000, 0x1B16F),
    (0x20000, 0x323AF),
]

LAST = 0x110000


def within(c, blocks):
    return any(a <= c <= b for a, b in blocks)


def is_accent(c):
    return within(c, ACCENTS) and ud.category(chr(c)) in ("Mn", "Me")


def fold(c):
    """The replacement of one code point, '' when it is dropped."""
    if ud.category(chr(c)) in ("Cc", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
        return chr(c)
    s = "".join(x for x in ud.normalize("NFKD", chr(c)) if not (is_accent(ord(x)) and ord(x) not in (0x3099, 0x309A)))
    if is_accent(c):
        return ""
    s = ud.normalize("NFC", s.lower().replace("\u03c2", "\u03c3"))
    return "".join(x for x in s if not (is_accent(ord(x)) and ord(x) not in (0x3099, 0x309A)))


def char_class(c):
    if c in (9, 10, 13):
        return SPACE
    if c == 0xFFFD or is_accent(c):
        return DROP
    kind = ud.category(chr(c))
    if kind[0] == "Z":
        return SPACE
    if kind in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return DROP
    if kind[0] in "PS":
        return PUNCTUATION
    return UNSPACED if within(c, UNSPACED_BLOCKS) else LETTER


def tables():
    """-> (pages u16 list of 4352 page numbers, page contents, replacement strings).

    A page entry below 8 is the class of a character that stays as it is; from 8 on it is 8 + the index of
    its replacement, whose own characters are looked up for their classes."""
    replacements, index, pages, contents, seen = [], {}, [], [], {}
    for page in range(LAST >> 8):
        row = []
        for c in range(page << 8, (page << 8) + 256):
            f, k = fold(c), char_class(c)
            if k in (SPACE, DROP) or f == chr(c):
                row.append(k)
                continue
            f = "".join(x for x in f if char_class(ord(x)) != DROP)
            for x in f:  # a replacement must be final, or one look-up would not be enough
                assert fold(ord(x)) == x, (hex(c), f)
            if f not in index:
                index[f] = len(replacements)
                replacements.append(f)
            row.append(8 + index[f])
        row = tuple(row)
        if row not in seen:
            seen[row] = len(contents)
            contents.append(row)
        pages.append(seen[row])
    return pages, contents, replacements


def compose(word):
    """Korean letter by letter, as macOS writes file names, becomes syllables: Unicode's arithmetic."""
    out = []
    for ch in word:
        c, last = ord(ch), ord(out[-1]) if out else 0
        if 0x1161 <= c <= 0x1175 and 0x1100 <= last <= 0x1112:
            out[-1] = chr(0xAC00 + ((last - 0x1100) * 21 + c - 0x1161) * 28)
        elif 0x11A8 <= c <= 0x11C2 and 0xAC00 <= last <= 0xD7A3 and (last - 0xAC00) % 28 == 0:
            out[-1] = chr(last + c - 0x11A7)
        else:
            out.append(ch)
    return "".join(out)


class Folder:
    def __init__(self):
        self.pages, self.contents, self.replacements = tables()

    def entry(self, c):
        return self.contents[self.pages[c >> 8]][c & 255]

    def chars(self, text):
        """(character, class) after folding."""
        for ch in text:
            e = self.entry(ord(ch))
            if e < 8:
                yield ch, e
            else:
                for x in self.replacements[e - 8]:
                    yield x, self.entry(ord(x))

    def words(self, text):
        """(word, class) with class LETTER, PUNCTUATION or UNSPACED."""
        word, kind = [], LETTER
        for ch, k in self.chars(text):
            if k == DROP:
                continue
            if word and (k != kind or k == PUNCTUATION):
                yield compose(word), kind
                word = []
            if k == SPACE:
                continue
            word.append(ch)
            kind = k
        if word:
            yield compose(word), kind
