// Package filetext keeps the texts of files, so that searches find documents by their content. In the background it
// reads each new file, and stores the text as the content of a memory that only searches for documents see. That memory
// is in a collection without a name ([kernel.TextCollection]), in the place of the file; triggers delete it when the
// file is deleted or moved.
package filetext

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Limits of the text that is kept of a file.
const (
	MaxText   = valid.MaxContent // bytes of a file's text
	minText   = 64 << 10         // bytes of text that even the smallest file may have
	expansion = 16               // bytes of text for each byte of the file, above minText
	maxPlaces = 4096
	maxPlace  = 100 // bytes of the name of a place
	maxReason = 200 // bytes
)

// Document is a file to extract text from.
type Document struct {
	Filename string
	MIMEType string // as it was detected when the file was stored
	Size     int64  // bytes
	Content  io.ReaderAt
}

// Text is the text of a document.
type Text struct {
	// Text is UTF-8. The store keeps at most 1 MiB of it, and of a small file at most 64 KiB or 16 times its size, if
	// that is more. If it is empty, the document has no text, and Reason says why.
	Text      string
	Places    []Place // in the order of Start; empty: not known
	Truncated bool    // Text is the beginning only
	Reason    string  // for people: why there is no text, or only a part; empty if the text is complete
}

// Place is a part of a document.
type Place struct {
	Start int    // the byte of the text at which it begins
	Name  string // such as "page 3"
}

// Reader reads documents.
type Reader interface {
	// ReadDocument returns the text of a document, or an error if it cannot be read. It must honour its context, which
	// ends after a minute. A panic counts as an error.
	ReadDocument(ctx context.Context, d Document) (Text, error)
}

// State is the state of a file's text.
type State string

// The states of files.
const (
	Waiting State = "waiting" // to be read
	Indexed State = "indexed"
	None    State = "none"   // it has no text
	Failed  State = "failed" // it could not be read
)

// Status describes how much of a file searches find.
type Status struct {
	State      State  `json:"state"`
	Passages   int    `json:"passages"`
	Characters int    `json:"characters"`
	Truncated  bool   `json:"truncated,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// info is a status as the column text_info holds it.
type info struct {
	Status
	Attempts int `json:"attempts,omitempty"` // begun attempts to read it
}

// StatusOf returns the status from its columns.
func StatusOf(state, text string) Status {
	s := infoOf(text).Status
	s.State = State(state)
	return s
}

func infoOf(text string) (i info) {
	_ = json.Unmarshal([]byte(text), &i) // empty at first
	return i
}

// tidied is a text as it is stored.
type tidied struct {
	Text
	status Status
}

// tidy brings a text to its stored form: valid UTF-8 without control characters, of a bounded length.
func tidy(t Text, size int64) tidied {
	most := min(MaxText, max(minText, expansion*size))
	var b strings.Builder
	places := make([]Place, 0, min(len(t.Places), maxPlaces))
	next := 0
	mark := func(at int) {
		for ; next < len(t.Places) && t.Places[next].Start <= at; next++ {
			if name := inOneLine(t.Places[next].Name, maxPlace); name != "" && len(places) < maxPlaces {
				places = append(places, Place{b.Len(), name})
			}
		}
	}
	for i, r := range t.Text {
		mark(i)
		switch {
		case r == '\r' && i+1 < len(t.Text) && t.Text[i+1] == '\n':
			continue
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\f':
			r = '\n'
		case r != '\n' && r != '\t' && unicode.IsControl(r), r == '\ufeff', r == '\u00ad': // and soft hyphens
			continue
		}
		if int64(b.Len()+utf8.RuneLen(r)) > most {
			t.Truncated = true
			break
		}
		b.WriteRune(r)
	}
	t.Text, t.Places = b.String(), places
	if strings.TrimSpace(t.Text) == "" {
		t.Text, t.Places = "", nil
		if t.Reason == "" {
			t.Reason = "it has no text"
		}
	}
	s := Status{State: Indexed, Characters: utf8.RuneCountInString(t.Text), Truncated: t.Truncated,
		Reason: inOneLine(t.Reason, maxReason)}
	if t.Text == "" {
		s.State, s.Truncated = None, false
	}
	return tidied{t, s}
}

// inOneLine returns the beginning of a name or a reason on one line, with single spaces.
func inOneLine(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 4*most)], "")), " ")
	for len(text) > most {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// encodePlaces returns the form of places in the column text_places: [[start, name], ...].
func encodePlaces(places []Place) (string, error) {
	if len(places) == 0 {
		return "", nil
	}
	list := make([][2]any, len(places))
	for i, p := range places {
		list[i] = [2]any{p.Start, p.Name}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// PlaceOf returns the name of the place of a passage that begins at a byte of a text, from the column text_places; ""
// for none. Of several places in the passage, it returns the one whose text has the highest weight, the first of equal
// ones.
func PlaceOf(places string, start int, passage string, weight func(part string) float64) string {
	var list []placeJSON
	_ = json.Unmarshal([]byte(places), &list) // empty: none
	first, found := slices.BinarySearchFunc(list, start, func(p placeJSON, at int) int { return p.Start - at })
	if !found {
		first--
	}
	best, most := "", -1.0
	for i := max(0, first); i < len(list) && list[i].Start < start+len(passage); i++ {
		end := len(passage)
		if i+1 < len(list) {
			end = min(end, list[i+1].Start-start)
		}
		if w := weight(passage[max(0, list[i].Start-start):max(0, end)]); w > most {
			best, most = list[i].Name, w
		}
	}
	return best
}

type placeJSON Place

func (p *placeJSON) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.Start, &p.Name})
}

// waiting is a file to be read.
type waiting struct {
	row, owner         int64
	id, filename, kind string
	size               int64
	sum                []byte // as it is stored
	attempts           int
}

// next returns the file to be read next, nil for none; skipped ones are left out. The owners take turns. Content in
// object storage waits for a process with that storage.
func next(tx db.Tx, after int64, skipped []int64, objects bool) (*waiting, error) {
	readable := ` AND id NOT IN ` + db.Integers
	if !objects {
		readable += ` AND NOT EXISTS (SELECT 1 FROM file_chunk k
			WHERE k.id = file.id * ` + strconv.Itoa(kernel.ChunksOfFile) + ` AND k.object IS NOT NULL)`
	}
	for _, condition := range []string{`owner_id > ?`, `owner_id <= ?`} {
		var found *waiting
		err := tx.Each(func(row db.Rows) error {
			w := &waiting{}
			var text string
			err := row.Scan(&w.row, &w.owner, &w.id, &w.filename, &w.kind, &w.size, &text, &w.sum)
			w.attempts, found = infoOf(text).Attempts, w
			return err
		}, `SELECT id, owner_id, uid, filename, mime_type, size, text_info, sha256 FROM file
			WHERE text_state = 'waiting' AND state = 'stored' AND `+condition+readable+` ORDER BY owner_id, id LIMIT 1`, after,
			db.List(skipped))
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

const stillWaiting = ` WHERE id = ? AND text_state = 'waiting' AND state = 'stored'`

// note records the state of a waiting file that has no text.
func note(tx db.Tx, row int64, i info) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	sealed, _, err := kernel.SealTextOf(tx, row, string(text), "")
	if errors.Is(err, db.ErrNoRows) {
		return nil // the file is gone
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE file SET text_state = ?, text_info = ?`+stillWaiting, string(i.State), sealed, row)
	return err
}

// ReadAgain makes the files without a text wait to be read again.
func ReadAgain(tx db.Tx) error {
	_, err := tx.Exec(`UPDATE file SET text_state = 'waiting', text_info = '' WHERE text_state IN ('none', 'failed')
		OR text_state = 'waiting' AND text_info <> ''`)
	return err
}

// Astray selects the texts that belong to no file, or are in another place than their file. Lost selects the files
// whose texts are missing.
const (
	Astray = `SELECT t.id FROM memory t JOIN partition tp ON tp.id = t.partition_id
		JOIN collection tc ON tc.id = tp.collection_id LEFT JOIN file f ON f.text_id = t.id AND f.state = 'stored'
		LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id
		LEFT JOIN collection c ON c.id = p.collection_id
		WHERE tc.name = '' AND (f.id IS NULL OR tc.owner_id <> coalesce(c.owner_id, f.owner_id)
			OR coalesce(tp.project_id, 0) <> coalesce(` + kernel.ProjectOfFile + `, 0))`
	Lost = `SELECT id FROM file WHERE text_id IS NOT NULL AND (text_state <> 'indexed' OR text_id NOT IN (SELECT m.id
		FROM memory m WHERE m.partition_id IN (` + kernel.TextPartitions + `))) OR text_id IS NULL AND text_state = 'indexed'`
)

// Repair deletes the texts that are [Astray], and makes the files in [Lost] wait to be read again.
func Repair(tx db.Tx) error {
	for _, statement := range []string{
		`UPDATE file SET text_state = 'waiting', text_id = NULL, text_info = '', text_places = '' WHERE id IN (` + Lost + `)`,
		`DELETE FROM memory WHERE id IN (` + Astray + `)`,
	} {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}
