package tokens

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/protobuf"
)

// Kinds of pieces in a SentencePiece model.
const (
	pieceNormal = iota + 1
	pieceUnknown
	pieceControl
	pieceUser
	pieceUnused
	pieceByte
)

// spModel is a SentencePiece model file (the message ModelProto of sentencepiece_model.proto).
type spModel struct {
	pieces []string
	scores []float64
	kinds  []int

	modelType   int // 1: Unigram
	charsMap    []byte
	dummyPrefix bool
	oneSpace    bool // white space at the ends is removed, and several in a row are one
	escape      bool // blanks are written as a character
}

// SentencePiece makes the tokenizer of an XLM-R model from its sentencepiece.bpe.model, which despite its name holds a
// Unigram model. XLM-R has four ids of its own: <s> 0, <pad> 1, </s> 2, <unk> 3. Then come the file's ids plus one,
// without its first three pieces (<unk>, <s>, </s>), and <mask> last.
func SentencePiece(data []byte) (*Tokenizer, error) {
	m, err := readSentencePiece(data)
	if err != nil {
		return nil, err
	}
	if m.modelType != 1 {
		return nil, fmt.Errorf("it is a SentencePiece model of type %d; expected type 1, Unigram", m.modelType)
	}
	if len(m.pieces) < 4 || m.kinds[0] != pieceUnknown || m.kinds[1] != pieceControl || m.kinds[2] != pieceControl {
		return nil, errors.New("its first pieces are not <unk>, <s> and </s>, as those of XLM-R are")
	}
	pieces := append([]string{"<s>", "<pad>", "</s>", "<unk>"}, m.pieces[3:]...)
	scores := append([]float64{0, 0, 0, 0}, m.scores[3:]...)
	matched := make([]bool, len(pieces))
	for i := 4; i < len(matched); i++ {
		kind := m.kinds[i-1]
		if kind == pieceUser || kind == pieceByte {
			return nil, fmt.Errorf("piece %.40q is of kind %d; expected only normal, control and unused pieces in a model "+
				"of XLM-R",
				pieces[i], kind)
		}
		matched[i] = kind == pieceNormal
	}
	model, err := newUnigram(pieces, scores, matched, 3)
	if err != nil {
		return nil, err
	}
	model.single = true
	t := &Tokenizer{model: model, before: []int32{0}, after: []int32{2}, size: len(pieces) + 1}
	replace := func(text string) (int, string) { return 0, "" }
	if len(m.charsMap) > 0 {
		chars, err := newCharsMap(m.charsMap)
		if err != nil {
			return nil, err
		}
		replace = chars.longest
	}
	t.normalize = []step{func(text string) string { return m.normal(text, replace) }}
	for id, name := range []string{"<s>", "<pad>", "</s>", "<unk>"} {
		t.raw.add(addedToken{id: int32(id), text: name})
	}
	t.raw.add(addedToken{id: int32(len(pieces)), text: "<mask>", left: true})
	return t, nil
}

// normal is SentencePiece's Normalizer::Normalize.
func (m *spModel) normal(text string, replace func(string) (int, string)) string {
	var b strings.Builder
	b.Grow(len(text) + 3)
	space := " "
	if m.escape {
		space = blank
	}
	if m.dummyPrefix {
		b.WriteString(space)
	}
	wrote, wasSpace := false, m.oneSpace
	for len(text) > 0 {
		length, piece := replace(text)
		if length == 0 {
			_, length = utf8.DecodeRuneInString(text)
			piece = text[:length]
		}
		text = text[length:]
		if wasSpace {
			piece = strings.TrimLeft(piece, " ")
		}
		if piece != "" {
			b.WriteString(strings.ReplaceAll(piece, " ", space))
			wrote, wasSpace = true, m.oneSpace && strings.HasSuffix(piece, " ")
		}
	}
	if !wrote {
		return ""
	}
	normal := b.String()
	for m.oneSpace && strings.HasSuffix(normal, space) {
		normal = normal[:len(normal)-len(space)]
	}
	return normal
}

// readSentencePiece reads ModelProto: pieces (1), trainer_spec (2), normalizer_spec (3).
func readSentencePiece(data []byte) (*spModel, error) {
	m := &spModel{modelType: 1, dummyPrefix: true, oneSpace: true, escape: true}
	err := protobuf.Each(data, func(f protobuf.Field) error {
		switch f.Number {
		case 1:
			return m.readPiece(f.Data)
		case 2:
			return protobuf.Each(f.Data, func(f protobuf.Field) error {
				if f.Number == 3 {
					m.modelType = int(f.Value)
				}
				return nil
			})
		case 3:
			return protobuf.Each(f.Data, func(f protobuf.Field) error {
				switch f.Number {
				case 2:
					m.charsMap = f.Data
				case 3:
					m.dummyPrefix = f.Value != 0
				case 4:
					m.oneSpace = f.Value != 0
				case 5:
					m.escape = f.Value != 0
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("it is not a SentencePiece model: %w", err)
	}
	return m, nil
}

func (m *spModel) readPiece(data []byte) error {
	if len(m.pieces) >= maxVocabulary {
		return fmt.Errorf("more than %d pieces", maxVocabulary)
	}
	piece, score, kind := "", 0.0, pieceNormal
	err := protobuf.Each(data, func(f protobuf.Field) error {
		switch f.Number {
		case 1:
			piece = string(f.Data)
		case 2:
			score = float64(math.Float32frombits(uint32(f.Value)))
		case 3:
			kind = int(f.Value)
		}
		return nil
	})
	m.pieces, m.scores, m.kinds = append(m.pieces, piece), append(m.scores, score), append(m.kinds, kind)
	return err
}
