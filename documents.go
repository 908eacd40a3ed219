package souvenir

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Searches find files by their text. A worker passes each stored file to Options.Documents, and keeps the text in the
// file's place (internal/files/filetext); searches rank these texts as they rank memories. Every user who can see a
// file can find it.

// MaxDocuments is the most files that Query.Documents may ask for.
const MaxDocuments = 20

// DocumentReader reads the text of documents.
type DocumentReader interface {
	// ReadDocument returns the text of a document, or an error if it cannot be read. It must honour its context, which
	// ends after a minute. The store calls it for one file at a time, and no call of the store waits. A panic counts as
	// an error. Users who can see the file get only DocumentText.Reason and the text of errors.
	ReadDocument(ctx context.Context, d Document) (DocumentText, error)
}

// Document is a file to be read.
type Document struct {
	Filename string
	MIMEType string // as it was detected when the file was stored
	Size     int64  // bytes
	Content  io.ReaderAt
}

// DocumentText is the text of a document.
type DocumentText struct {
	// Text is UTF-8. The store keeps at most 1 MiB of it, and for small files at most the larger of 64 KiB and 16 times
	// their size. Empty: the document has no text, and Reason says why.
	Text      string
	Places    []DocumentPlace // in the order of Start; none: places are not known
	Truncated bool            // Text is the beginning only
	Reason    string          // why there is no text, or not as it is in the file, for people; empty: all is there
}

// DocumentPlace is a part of a document.
type DocumentPlace struct {
	Start int    // the byte of the text at which it begins
	Name  string // such as "page 3"
}

// FileText describes the text of a file that searches for documents find.
type FileText struct {
	State      FileTextState `json:"state"`
	Passages   int           `json:"passages"`
	Characters int           `json:"characters"`
	Truncated  bool          `json:"truncated,omitempty"` // only the beginning of the file is indexed
	Reason     string        `json:"reason,omitempty"`    // why no text is indexed, or a note about it
}

// FileTextState says whether searches find a file.
type FileTextState string

// The values of [FileTextState].
const (
	TextWaiting = FileTextState(filetext.Waiting) // to be read, by a store with Options.Documents
	TextIndexed = FileTextState(filetext.Indexed)
	TextNone    = FileTextState(filetext.None)   // the file has no text; Reason says more
	TextFailed  = FileTextState(filetext.Failed) // the file could not be read; Reason says why
)

// defaultMinScore is the MinScore of a search of documents with the built-in model.
const defaultMinScore = 0.25

// documentReader adapts a DocumentReader to internal/files/filetext, whose types have the same fields.
type documentReader struct{ reader DocumentReader }

func (r documentReader) ReadDocument(ctx context.Context, d filetext.Document) (filetext.Text, error) {
	t, err := r.reader.ReadDocument(ctx, Document(d))
	places := make([]filetext.Place, len(t.Places))
	for i, p := range t.Places {
		places[i] = filetext.Place(p)
	}
	return filetext.Text{Text: t.Text, Places: places, Truncated: t.Truncated, Reason: t.Reason}, err
}

func fileText(s filetext.Status) FileText {
	return FileText{FileTextState(s.State), s.Passages, s.Characters, s.Truncated, s.Reason}
}

// checkDocuments checks the option Documents.
func (o *Options) checkDocuments() error {
	if o.Documents != nil && isNil(o.Documents) {
		return invalid("Documents", "the DocumentReader is a nil %T; give an initialized one, or nil for none",
			o.Documents)
	}
	return nil
}

// startDocuments starts reading files if there is a reader for them.
func (s *Store) startDocuments() {
	s.texts = &filetext.Worker{
		DB: s.db, Reader: documentReader{s.options.Documents}, Objects: s.objects, Keys: s.ring, Log: s.log,
		Now: s.now, NewID: s.newID, Profile: s.profile, Model: s.embedder.Model(), MaxInput: maxInput(s.embedder),
		Stored: s.worker.Wake,
	}
	if isBuiltin(s.embedder) {
		s.texts.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
			return s.embed(ctx, ForDocument, texts, nil)
		}
	}
	if s.options.Documents != nil && !s.db.ReadOnly() {
		s.texts.Start()
	}
}

// WaitIndexed waits until a file has been read, so that searches find it, and returns the file; File.Text describes
// what they find. In a store without Options.Documents it returns at once. It returns the context's error if the
// context ends first. A file that does not exist, or that this view may not see, is ErrNotFound.
func (s *Store) WaitIndexed(ctx context.Context, id string) (File, error) {
	if err := s.outside(ctx, "WaitIndexed"); err != nil {
		return File{}, err
	}
	s.texts.Wake()
	defer fairqueue.Pause(context.WithoutCancel(ctx))()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		f, err := s.GetFile(ctx, id)
		if err != nil || f.Text.State != TextWaiting || !s.texts.Running() {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// DocumentHit is a file found by its text.
type DocumentHit struct {
	FileID    string `json:"file_id"`
	Filename  string `json:"filename"`
	MIMEType  string `json:"mime_type"`
	Size      int64  `json:"size"`                 // bytes
	MemoryID  string `json:"memory_id,omitempty"`  // the visible memory that the file is linked to; empty: none
	ProjectID string `json:"project_id,omitempty"` // empty: none
	Place     string `json:"place,omitempty"`      // where Text is, such as "page 3" or "line 120"; empty: unknown

	Text       string  `json:"text"`       // the best matching passage
	Rank       int     `json:"rank"`       // among the documents, from 1
	Score      float64 `json:"score"`      // as in [Hit]
	Confidence float64 `json:"confidence"` // as in [Hit]
}

// documentFields has the fields of a DocumentHit without its methods.
type documentFields DocumentHit

// MarshalJSON adds type, which is "file".
func (h DocumentHit) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type string `json:"type"`
		documentFields
	}{"file", documentFields(h)})
}

// documents finds the files of a query, by their texts.
func (s *Store) documents(tx db.Tx, v viewer, q Query, pq preparedQuery) ([]DocumentHit, error) {
	conditions := len(q.Collections) + len(q.Classification) + len(q.Tags) + len(q.Keys) + len(q.Filter)
	if q.Documents == 0 || !q.rankable() || !q.AsOf.IsZero() || conditions > 0 {
		return nil, nil
	}
	sel, err := documentSelection(tx, v, q)
	if err != nil || len(sel.Partitions) == 0 {
		return nil, err
	}
	pq.explain, pq.priors = false, Priors{}
	if pq.own && len(pq.vector) != s.embedder.Dimensions() {
		pq.vector, pq.own = nil, false // a vector of another model
	}
	asked := Query{Text: q.Text, Vector: pq.vector, Sort: SortRelevance, Limit: q.Documents, MinScore: q.MinScore}
	if asked.MinScore == 0 && isBuiltin(s.embedder) {
		asked.MinScore = defaultMinScore
	}
	if !asked.rankable() {
		return nil, nil
	}
	p, err := s.byRelevance(tx, v, asked, pq, sel, &Results{})
	if err != nil {
		return nil, err
	}
	return s.showDocuments(tx, v, p, pq.terms)
}

// documentSelection returns the partitions with the texts that a query covers.
func documentSelection(tx db.Tx, v viewer, q Query) (sel selection, err error) {
	condition, args := v.VisibleTexts()
	if q.ProjectID != "" || q.ProjectName != "" {
		project, err := naming.Find(tx, v, q.ProjectID, q.ProjectName)
		if err != nil || project == nil {
			return sel, err
		}
		condition += ` AND p.project_id = ?`
		args = append(args, project.Row)
	}
	err = tx.Each(func(row db.Rows) error {
		var p retrieval.Partition
		err := row.Scan(&p.ID, &p.Memories)
		sel.Partitions = append(sel.Partitions, p)
		return err
	}, `SELECT p.id, p.memories FROM partition p JOIN collection c ON c.id = p.collection_id WHERE p.memories > 0 AND `+
		condition, args...)
	return sel, err
}

// showDocuments reads the visible files of a page.
func (s *Store) showDocuments(tx db.Tx, v viewer, p page, terms []text.Term) (hits []DocumentHit, err error) {
	weight := func(part string) (sum float64) { // how much of the query a part of a passage contains
		has := strings.Fields(text.Indexed(part))
		for _, t := range terms {
			if slices.Contains(has, t.Text) {
				sum += float64(t.Weight)
			}
		}
		return sum
	}
	type passage struct {
		file, places string // the file's id, and where its parts are
		text         []byte
	}
	found, ids := make([]passage, len(p.hits)), make([]string, len(p.hits))
	for i, h := range p.hits {
		start, length := int(h.Span.Start), int(h.Span.End-h.Span.Start)
		piece, args := sealedrows.Piece(tx, `t.content`, `?`, `?`, start+1, length)
		f := &found[i]
		err := tx.Each(func(row db.Rows) error { return row.Scan(&f.file, &f.places, &f.text) },
			`SELECT f.uid, f.text_places, `+piece+` FROM file f JOIN memory t ON t.id = f.text_id
			WHERE f.text_id = ?`, append(args, h.Row)...)
		if err != nil {
			return nil, err
		}
		if f.text = sealedrows.Cut(tx, f.text, start, length); !utf8.Valid(f.text) {
			f.text = nil // the index has another state of the text
		}
		ids[i] = f.file
	}
	files, err := s.loadFiles(tx, v, `f.uid IN `+db.Texts, db.List(ids))
	if err != nil {
		return nil, err
	}
	for i, h := range p.hits {
		at := slices.IndexFunc(files, func(f storedFile) bool { return f.ID == found[i].file })
		if at < 0 {
			continue
		}
		f, text := files[at], string(found[i].text)
		hits = append(hits, DocumentHit{FileID: f.ID, Filename: f.Filename, MIMEType: f.MIMEType, Size: f.Size,
			MemoryID: f.MemoryID, ProjectID: f.ProjectID,
			Place: filetext.PlaceOf(found[i].places, int(h.Span.Start), text, weight), Text: text,
			Rank: len(hits) + 1, Score: float64(h.Score), Confidence: float64(h.Confidence)})
	}
	return hits, nil
}

// wakeTexts makes the worker read files that wait, such as those with another place: now, or once the context's
// transaction is done.
func (s *shared) wakeTexts(ctx context.Context) {
	s.db.AtEnd(ctx, func(error) { s.texts.Wake() })
}
