package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Prepared holds passages made before the transaction, by text: if the content changes meanwhile, the unchanged
// passages are reused.
type Prepared map[string]Passage

// Add makes the passages of a content that are not prepared yet, with the known vectors. It returns the texts without
// one.
func (p Prepared) Add(content string, size int, known map[string][]float32) (missing []string) {
	for _, span := range text.Split(content, size) {
		t := content[span.Start:span.End]
		if _, done := p[t]; done {
			continue
		}
		p[t] = Passage{Indexed: text.Indexed(t), Vector: known[t]}
		if known[t] == nil {
			missing = append(missing, t)
		}
	}
	return missing
}

// SetVectors gives passages their vectors.
func (p Prepared) SetVectors(texts []string, vectors [][]float32) {
	for i, v := range vectors {
		passage := p[texts[i]]
		passage.Vector = v
		p[texts[i]] = passage
	}
}

// Assemble returns the passages of a content, and reports whether all of them were prepared. Others have no vector.
func (p Prepared) Assemble(content string, size int) (passages []Passage, complete bool) {
	complete = true
	for _, span := range text.Split(content, size) {
		t := content[span.Start:span.End]
		passage, ok := p[t]
		if !ok {
			passage.Indexed, complete = text.Indexed(t), false
		}
		passage.Start, passage.Length = span.Start, span.End-span.Start
		passages = append(passages, passage)
	}
	if len(passages) == 0 {
		passages = []Passage{{Length: len(content), Blank: true}}
	}
	return passages, complete
}

// PassageVectors returns the vectors of a profile that the passages of a memory have, by text. The id is for errors.
func PassageVectors(tx db.Tx, memory, profile int64, id, content string) (map[string][]float32, error) {
	known := map[string][]float32{}
	err := tx.Each(func(row db.Rows) error {
		var start, length int
		var blob []byte
		if err := row.Scan(&start, &length, &blob); err != nil {
			return err
		}
		if start < 0 || length < 0 || start+length > len(content) {
			return fault.Damaged(ErrOutside, "the passages of memory %s", id)
		}
		vector, err := DecodeVector(blob)
		known[content[start:start+length]] = vector
		return err
	}, `SELECT start, length, vector FROM passage WHERE memory_id = ? AND profile_id = ? AND vector IS NOT NULL`, memory,
		profile)
	return known, err
}
