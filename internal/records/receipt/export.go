package receipt

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
)

// Parts hashes the lines of an export by their type, as they are written.
type Parts map[string]*part

type part struct {
	lines int64
	hash  hash.Hash
}

// Add adds a line with its newline.
func (p Parts) Add(kind string, line []byte) {
	of := p[kind]
	if of == nil {
		of = &part{hash: sha256.New()}
		p[kind] = of
	}
	of.lines++
	_, _ = of.hash.Write(line)
}

// Sums returns the hashes.
func (p Parts) Sums() map[string]Part {
	sums := map[string]Part{}
	for kind, of := range p {
		sums[kind] = Part{of.lines, hex.EncodeToString(of.hash.Sum(nil))}
	}
	return sums
}

// Finding is a result of the check of a receipt.
type Finding struct {
	Holds bool   `json:"holds"`
	Open  bool   `json:"open,omitempty"` // nothing contradicts it, which proves little
	What  string `json:"what"`
}

// CompareKey reports whether a receipt is signed with a key known from elsewhere; nil if none is known.
func (o Opened) CompareKey(known []ed25519.PublicKey) Finding {
	switch {
	case known == nil:
		return Finding{true, true, "the owner of the key is unknown: give the store's key to verify that the store signed it"}
	case slices.ContainsFunc(known, func(k ed25519.PublicKey) bool { return k.Equal(o.Key) }):
		return Finding{true, false, "the key matches the given one"}
	}
	return Finding{false, false, "the receipt is signed with a different key from the given one"}
}

// CompareExport reads an export and compares it with the receipt, as a whole and by type of line.
func (o Opened) CompareExport(export io.Reader) (found []Finding, err error) {
	if o.Claims.Kind != Export {
		return []Finding{{false, false, "the receipt is about a " + o.Claims.Kind + ", not about an export"}}, nil
	}
	whole, parts := sha256.New(), Parts{}
	r := bufio.NewReaderSize(io.TeeReader(export, whole), 1<<20)
	bytesRead := int64(0)
	for n := 0; ; n++ {
		line, err := r.ReadBytes('\n')
		bytesRead += int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 {
			if kind := kindOf(line); kind != "" && kind != "end" {
				parts.Add(kind, line)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	sum := hex.EncodeToString(whole.Sum(nil))
	if sum == o.Claims.SHA256 && bytesRead == o.Claims.Bytes {
		found = append(found, Finding{true, false, "the export matches the receipt, byte for byte: SHA-256 " + sum})
	} else {
		found = append(found, Finding{What: fmt.Sprintf("the export differs: %d bytes with SHA-256 %s, not %d with %s",
			bytesRead, sum, o.Claims.Bytes, o.Claims.SHA256)})
	}
	sums := parts.Sums()
	kinds := maps.Clone(o.Claims.Parts)
	if kinds == nil {
		kinds = map[string]Part{}
	}
	maps.Copy(kinds, sums)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		want, got := o.Claims.Parts[kind], sums[kind]
		switch {
		case want == got:
			found = append(found, Finding{true, false, fmt.Sprintf("%s: %d lines, unchanged", kind, got.Lines)})
		case want.Lines == got.Lines:
			found = append(found, Finding{What: fmt.Sprintf("%s: %d lines, changed or reordered", kind, got.Lines)})
		default:
			found = append(found, Finding{false, false, fmt.Sprintf("%s: %d lines, not %d", kind, got.Lines, want.Lines)})
		}
	}
	return found, nil
}

// kindOf returns the type of a line; "" for the first one, and for lines that do not belong to an export.
func kindOf(line []byte) string {
	var typed struct {
		Type string `json:"type"`
	}
	if rest, is := bytes.CutPrefix(line, []byte(`{"type":"`)); is {
		if i := bytes.IndexByte(rest, '"'); i > 0 {
			return string(rest[:i])
		}
	}
	_ = json.Unmarshal(line, &typed)
	return typed.Type
}
