"""The model file: writer, reader and the reference embedding that the Go package must equal.

Little endian. Header of 64 bytes: "SVNSTAT2", then u32: dimensions, rows, slots, pages, replacements, bytes of
the longest piece (without ##), bytes of the name, 1 when there are query scales, bytes of the file; then i8[16], the
values that the codes of vectors stand for; zeros.
Sections follow, each at a multiple of 64 bytes:
  name; page numbers u16[4352]; pages u16[pages][256]; replacement offsets u32[replacements+1]; replacements UTF-8;
  piece offsets u32[rows+1]; pieces UTF-8; slots u16[slots] (row + 1, 0 = empty); document scales f32[rows];
  query scales f32[rows] if any; vectors u8[rows][dimensions/2].
A vector has a code of four bits for each dimension. Of each 32 dimensions the first 16 are in the low bits of 16 bytes,
the others in the high bits. The program reads this format alone. What distill.py hands on to extend.py is "SVNSTAT1",
which has no values, and vectors i8[rows][dimensions].
Slots are an open-addressing hash table: FNV-1a (32 bit) of the piece, xor its upper half, linear probing.
"""

import struct

import numpy as np

from pieces import Tokenizer

MAGIC, WHOLE = b"SVNSTAT2", b"SVNSTAT1"
BLOCK = 32  # dimensions that are packed together


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


def spread(x, count, rounds=100):
    """-> the values that numbers are best rounded to and their negatives (Lloyd 1982), the greatest made 127; what it was"""
    x = np.sort(np.abs(x.ravel()).astype(np.float64))
    sums = np.concatenate([[0], np.cumsum(x)])
    values = x[((np.arange(count // 2) + 0.5) / (count // 2) * len(x)).astype(int)]
    for _ in range(rounds):
        ends = np.concatenate([[0], np.searchsorted(x, (values[1:] + values[:-1]) / 2), [len(x)]])
        values = (sums[ends[1:]] - sums[ends[:-1]]) / np.diff(ends)
    whole = np.rint(values / values[-1] * 127)
    return np.concatenate([-whole[::-1], whole]), values[-1]


def quantise_packed(table, rounds=4):
    """float rows -> (codes, float32 scale a row, int8 values): the values that suit all rows best, and for each row the
    scale of the least error, to and fro; the final scale keeps the length of the row."""
    length = np.linalg.norm(table, axis=1)
    unit = table / np.maximum(length, 1e-12)[:, None]
    values, greatest = spread(unit, 16)
    between = (values[1:] + values[:-1]) / 2
    scale = np.full(len(unit), greatest / 127)
    for _ in range(rounds):
        codes = np.searchsorted(between, unit / scale[:, None]).astype(np.uint8)
        rounded = values[codes]
        scale = np.maximum((rounded * unit).sum(1) / (rounded * rounded).sum(1), 1e-12)
    return codes, (length / np.linalg.norm(rounded, axis=1)).astype(np.float32), values.astype(np.int8)


def pack_codes(codes):
    blocks = codes.reshape(len(codes), -1, 2, BLOCK // 2)
    return (blocks[:, :, 0] | blocks[:, :, 1] << 4).astype(np.uint8)


def unpack_codes(packed, rows, dimensions):
    blocks = packed.reshape(rows, dimensions // BLOCK, 1, BLOCK // 2)
    return np.concatenate([blocks & 15, blocks >> 4], axis=2).reshape(rows, dimensions)


def pack(name, folder, pieces, vectors, document, values=None, query=None, slots=1 << 16):
    """The bytes of a file: of codes when their values are given, else of int8 vectors."""
    rows, dimensions = vectors.shape
    if rows != len(pieces) or rows >= 65535 or rows >= slots:
        raise ValueError("rows, pieces and slots do not fit together")
    longest = max(len(p.encode()) - (2 if len(p) > 2 and p.startswith("##") else 0) for p in pieces)
    sections = [
        name.encode(),
        np.array(folder.pages, "<u2").tobytes(),
        np.array(folder.contents, "<u2").tobytes(),
        *strings(folder.replacements),
        *strings(pieces),
        hash_table(pieces, slots).tobytes(),
        document.astype("<f4").tobytes(),
    ]
    if query is not None:
        sections.append(query.astype("<f4").tobytes())
    sections.append(vectors.tobytes() if values is None else pack_codes(vectors).tobytes())
    body, at = [], 64
    for s in sections:
        s += bytes(-len(s) % 64)
        body.append(s)
        at += len(s)
    header = (WHOLE if values is None else MAGIC) + struct.pack(
        "<9I",
        dimensions,
        rows,
        slots,
        len(folder.contents),
        len(folder.replacements),
        longest,
        len(name.encode()),
        int(query is not None),
        at,
    )
    if values is not None:
        header += values.tobytes()
    return header + bytes(64 - len(header)) + b"".join(body)


class Model:
    def __init__(self, data):
        if data[:8] not in (MAGIC, WHOLE):
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
        if data[:8] == WHOLE:
            self.vectors = take("i1", rows * d).reshape(rows, d)
        else:
            values = np.frombuffer(data, "i1", 16, 44)
            self.vectors = values[unpack_codes(take("u1", rows * d // 2), rows, d)]
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
