"""Greedy longest-match WordPiece (Schuster & Nakajima 2012) over folded words: the reference for tokenizer.go."""

from fold import PUNCTUATION, UNSPACED, Folder

MAX_WORD_BYTES = 192  # of a word only so much counts: what is longer is data, not language


class Tokenizer:
    """vocabulary: list of pieces; one that continues a word begins with ##."""

    def __init__(self, vocabulary, folder=None):
        self.folder = folder or Folder()
        self.index = {p: i for i, p in enumerate(vocabulary)}
        self.longest = max(len(p) for p in vocabulary)
        self.cache = {}

    def pieces(self, word, kind):
        if kind != UNSPACED:
            cut = word.encode()
            if len(cut) > MAX_WORD_BYTES:
                word = cut[:MAX_WORD_BYTES].decode("utf8", "ignore")
        out, i, n = [], 0, len(word)
        while i < n:
            mark = "##" if i and kind != UNSPACED else ""
            for e in range(min(n, i + self.longest), i, -1):
                k = self.index.get(mark + word[i:e])
                if k is not None:
                    out.append(k)
                    i = e
                    break
            else:
                i += 1  # an unknown character counts for nothing, but its neighbours keep their place
        return out

    def tokens(self, text):
        out = []
        for word in self.folder.words(text):
            ids = self.cache.get(word)
            if ids is None:
                ids = self.pieces(*word)
                if len(self.cache) < 500_000 and len(word[0]) < 64:
                    self.cache[word] = ids
            out += ids
        return out
