"""The model file: writer, reader and the reference embedding that the Go package must equal.

Little endian. Header of 64 bytes: "SVNSTAT1", then u32: dimensions, rows, slots, pages, replacements, bytes of
the longest piece (without ##), bytes of the name, 1 when there are query scales, bytes of the file; zeros.
Sections follow, each at a multiple of 64 bytes:
  name; page numbers u16[4352]; pages u16[pages][256]; replacement offsets u32[replacements+1]; replacements UTF-8;
  piece offsets u32[rows+1]; pieces UTF-8; slots u16[slots] (row + 1, 0 = empty); document scales f32[rows];
  query scales f32[rows] if any; vectors i8[rows][dimensions].
Slots are an open-addressing hash table: FNV-1a (32 bit) of the piece, xor its upper half, linear probing.
"""
import struct

import numpy as np

from pieces import Tokenizer

MAGIC = b"SVNSTAT1"


def fnv(data):
    h = 2166136261
    for b in data:
        h = (h ^ b) * 16777619 & 0xFFFFFFFF
    return h ^ h >> 16


def hash_table(pieces, slots):
    table = np.zeros(slots, "<u2")
    for row, p in enumerate(pieces):
        h = fnv(p.encode()) & slots - 1
        while table[h]:
            h = h + 1 & slots - 1
        table[h] = row + 1
    return table


def strings(items):
    blobs = [s.encode() for s in items]
    return np.cumsum([0] + [len(b) for b in blobs]).astype("<u4").tobytes(), b"".join(blobs)


def quantise(table):
    """float rows -> (int8 rows, float32 scale a row), rounding to nearest."""
    scale = np.maximum(np.abs(table).max(1), 1e-12) / 127
    return np.rint(table / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def pack(name, folder, pieces, vectors, document, query=None, slots=1 << 16):
    rows, dimensions = vectors.shape
    if rows != len(pieces) or rows >= 65535 or rows >= slots:
        raise ValueError("rows, pieces and slots do not fit together")
    longest = max(len(p.encode()) - (2 if len(p) > 2 and p.startswith("##") else 0) for p in pieces)
    sections = [name.encode(), np.array(folder.pages, "<u2").tobytes(), np.array(folder.contents, "<u2").tobytes(),
                *strings(folder.replacements), *strings(pieces), hash_table(pieces, slots).tobytes(), document.astype("<f4").tobytes()]
    if query is not None:
        sections.append(query.astype("<f4").tobytes())
    sections.append(vectors.tobytes())
    body, at = [], 64
    for s in sections:
        s += bytes(-len(s) % 64)
        body.append(s)
        at += len(s)
    header = MAGIC + struct.pack("<9I", dimensions, rows, slots, len(folder.contents), len(folder.replacements), longest,
                                 len(name.encode()), int(query is not None), at)
    return header + bytes(64 - len(header)) + b"".join(body)


class Model:
    def __init__(self, data):
        if data[:8] != MAGIC:
            raise ValueError("not a model file")
        d, rows, slots, pages, replacements, _, name, query, size = struct.unpack_from("<9I", data, 8)
        if size != len(data):
            raise ValueError("truncated")
        at = 64

        def take(dtype, n):
            nonlocal at
            out = np.frombuffer(data, dtype, n, at)
            at += -(-out.nbytes // 64) * 64
            return out

        def texts(n):
            offsets = take("<u4", n + 1).tolist()
            blob = bytes(take("u1", offsets[-1]))
            return [blob[a:b].decode() for a, b in zip(offsets, offsets[1:])]

        self.name, self.dimensions = bytes(take("u1", name)).decode(), d
        from fold import Folder
        folder = Folder.__new__(Folder)
        folder.pages = take("<u2", 4352).tolist()
        folder.contents = take("<u2", pages * 256).reshape(pages, 256).tolist()
        folder.replacements = texts(replacements)
        self.pieces = texts(rows)
        take("<u2", slots)
        self.document = take("<f4", rows)
        self.query = take("<f4", rows) if query else self.document
        self.vectors = take("i1", rows * d).reshape(rows, d)
        self.tokenizer = Tokenizer(self.pieces, folder)

    def embed(self, texts, query=False):
        scale = self.query if query else self.document
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            ids = self.tokenizer.tokens(text)
            if ids:
                v = (self.vectors[ids].astype(np.float64) * scale[ids].astype(np.float64)[:, None]).sum(0)
                norm = np.linalg.norm(v)
                out[i] = v / norm if norm > 0 else 0
        return out
