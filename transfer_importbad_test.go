package souvenir

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

func sumOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func base64Of(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

// stream hides that a reader can seek.
func stream(data []byte) io.Reader { return io.MultiReader(bytes.NewReader(data)) }

func TestForeignFilesAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(byHand(`{"type":"memory","content":"x"}`)))
	z.Close()
	s := openCopy(t)
	before := rowsOf(t, s)
	for name, c := range map[string]struct {
		data string
		want *Error
		says string
	}{
		"empty":           {"", ErrForeign, "empty"},
		"blank":           {"\n \r\n\n", ErrForeign, "empty"},
		"CSV":             {"id,content\n1,hello\n", ErrForeign, "first line"},
		"a list":          {`[{"type":"memory","content":"x"}]`, ErrForeign, "first line"},
		"no header":       {`{"type":"memory","content":"x"}` + "\n", ErrForeign, `souvenir`},
		"gzip":            {zipped.String(), ErrForeign, "gzip"},
		"a store":         {"SQLite format 3\x00" + strings.Repeat("\x00", 100), ErrForeign, "SQLite"},
		"noise":           {"\xff\xfe\x00{", ErrForeign, "first line"},
		"one endless":     {strings.Repeat("x", transfer.MaxLine+1), ErrForeign, "longer"},
		"a newer version": {`{"souvenir":"export","version":3}`, ErrNewer, "version 3"},
		"a plain version": {`{"souvenir":"export","version":1}` + "\n" + `{"type":"namespace","name":"crm"}`, ErrInvalid,
			"needs version 2"},
		"a namespace without a name": {`{"souvenir":"export","version":2}` + "\n" + `{"type":"namespace"}`, ErrInvalid,
			"name"},
		"half a character": {byHand(`{"type":"memory","content":"x \ud83d","tags":["\ud83d\ude00"]}`), ErrInvalid,
			`line 2: the escape \ud83d at byte 30 is half of a character`},
		"version 0":       {`{"souvenir":"export"}`, ErrForeign, "version 0"},
		"negative":        {`{"souvenir":"export","version":-1}`, ErrForeign, "version -1"},
		"other thing":     {`{"souvenir":"backup","version":1}`, ErrForeign, "first line"},
		"version as text": {`{"souvenir":"export","version":"1"}`, ErrForeign, "first line"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.data), stream([]byte(c.data))} {
			if _, err := s.Upkeep().Import(t.Context(), r, nil); !errors.Is(err, c.want) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v, want %v and %q in the error", name, err, c.want, c.says)
			}
		}
		if err := CheckExport(t.Context(), strings.NewReader(c.data), nil); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, checked only: %v, want %v and %q in the error", name, err, c.want, c.says)
		}
	}
	if after := rowsOf(t, s); after != before {
		t.Errorf("something was written: %v, want no change", linediff.First([]byte(after), []byte(before)))
	}
}

var longID = strings.Repeat("x", 200)

// badLines are lines of an export that an import refuses, with the argument and a part of the error.
var badLines = map[string]struct{ line, argument, says string }{
	"no JSON":          {`{"type":"memory",`, "", "not a JSON object"},
	"a list":           {`["memory"]`, "", "JSON"},
	"no type":          {`{"content":"x"}`, "type", "missing"},
	"type of a number": {`{"type":7}`, "type", "string"},
	"not UTF-8":        {"{\"type\":\"memory\",\"content\":\"\xff\"}", "line", "UTF-8"},
	"half a key":       {`{"type":"memory","content":"x","metadata":{"\udc00":"\\ud800"}}`, "", `\udc00`},
	"no content":       {`{"type":"memory"}`, "content", "empty"},
	"content a number": {`{"type":"memory","content":7}`, "content", "string"},
	"long id":          {`{"type":"memory","content":"x","id":"` + longID + `"}`, "id", "200"},
	"long owner":       {`{"type":"memory","content":"x","owner":"` + longID + `"}`, "owner", "200"},
	"importance":       {`{"type":"memory","content":"x","importance":"huge"}`, "importance", "huge"},
	"in metadata":      {`{"type":"memory","content":"x","metadata":{"importance":"huge"}}`, "importance", "huge"},
	"metadata":         {`{"type":"memory","content":"x","metadata":[]}`, "metadata", "object"},
	"tags":             {`{"type":"memory","content":"x","tags":"a,b"}`, "tags", "list"},
	"rule type":        {`{"type":"memory","content":"x","rule_type":"do"}`, "rule_type", "project-rule"},
	"rule with a key": {`{"type":"memory","content":"x","event_type":"project-rule","rule_type":"do","key":"k"}`, "key",
		"needs no key"},
	"time": {`{"type":"memory","content":"x","created_at":"yesterday"}`, "created_at", "yesterday"},
	"time 2": {`{"type":"memory","content":"x","updated_at":"2024-02-30T00:00:00Z"}`, "updated_at",
		"2024-02-30"},
	"revision 0":   {`{"type":"memory","content":"x","revision":0}`, "revision", "is 0"},
	"revision":     {`{"type":"memory","content":"x","revision":-3}`, "revision", "-3"},
	"revision 1.5": {`{"type":"memory","content":"x","revision":1.5}`, "revision", "whole number"},
	"huge revision": {`{"type":"memory","content":"x","revision":9223372036854775807}`, "revision",
		"9223372036854775807"},
	"new project": {`{"type":"memory","content":"x","project_id":"a/b"}`, "project_id", "slash"},
	"own vector":  {`{"type":"memory","content":"x","embedding":[1,2]}`, "embedding", "default"},
	"embedding":   {`{"type":"memory","content":"x","embedding":"AA=="}`, "embedding", "list"},
	"vector": {`{"type":"vectors","memory":"m","profile":"p","passages":[{"start":0,"length":1,` +
		`"vector":"AAA="}]}`, "vector", "float32"},
	"vector of NaN": {`{"type":"vectors","memory":"m","profile":"p","passages":[{"start":0,"length":1,` +
		`"vector":"AADAfw=="}]}`, "vector", "finite"},
	"vector, base64": {`{"type":"vectors","memory":"m","profile":"p","passages":[{"vector":"*"}]}`, "", "base64"},
	"no profile":     {`{"type":"vectors","memory":"m"}`, "profile", "missing"},
	"revision number": {`{"type":"revision","memory":"m","revision":0,"content":"x",` +
		`"created_at":"2024-01-01T00:00:00Z"}`, "revision", "is 0"},
	"revision time":    {`{"type":"revision","memory":"m","revision":1,"content":"x"}`, "created_at", "RFC 3339"},
	"revision content": {`{"type":"revision","memory":"m","revision":1}`, "content", "empty"},
	"revision memory":  {`{"type":"revision","revision":1,"content":"x"}`, "memory", "characters"},
	"revision data": {`{"type":"revision","memory":"m","revision":1,"content":"x",` +
		`"created_at":"2024-01-01T00:00:00Z","metadata":{"tags":7}}`, "tags", "list"},
	"link":             {`{"type":"link","related_memory_ids":["x"]}`, "memory", "characters"},
	"link time":        {`{"type":"link","memory":"x","updated_at":"x"}`, "updated_at", "RFC"},
	"user":             {`{"type":"user"}`, "id", "missing"},
	"user's role":      {`{"type":"user","id":"u","role":"root"}`, "role", "root"},
	"plain password":   {`{"type":"user","id":"u","password":"secret"}`, "password", "argon2id"},
	"collection":       {`{"type":"collection"}`, "collection_name", "missing"},
	"own_vectors":      {`{"type":"collection","collection_name":"c","own_vectors":-1}`, "own_vectors", "-1"},
	"own_vectors 2":    {`{"type":"collection","collection_name":"c","own_vectors":"3"}`, "own_vectors", "whole number"},
	"project":          {`{"type":"project","project_id":"a/b","project_name":"x"}`, "project_id", "slash"},
	"member's project": {`{"type":"member","project_id":"nowhere","user":"u","role":"reader"}`, "project_id", "nowhere"},
	"member's role":    {`{"type":"member","project_id":"p","user":"u","role":"king"}`, "role", "king"},
	"preference":       {`{"type":"preference","user":"u","value":[1]}`, "value", "object"},
	"token's user": {`{"type":"token","id":"t","user":"noah","hash":"` + base64Of(strings.Repeat("h", 32)) +
		`","scopes":[]}`, "user", "noah"},
	"token's hash": {`{"type":"token","id":"t","user":"u","hash":"AAAA","scopes":[]}`, "hash", "32"},
	"hash, base64": {`{"type":"token","id":"t","user":"u","hash":"*","scopes":[]}`, "hash", "base64"},
	"token's scopes": {`{"type":"token","id":"t","user":"u","hash":"` + base64Of(strings.Repeat("h", 32)) +
		`","scopes":{}}`, "scopes", "list"},
	"grant's client": {`{"type":"grant","id":"g","client_id":"c","user":"u","scopes":[]}`, "client_id", "neither"},
	"file's size": {`{"type":"file","id":"f","filename":"f","mime_type":"text/plain","size":-1,"sha256":"",` +
		`"created_at":"","updated_at":""}`, "size", "-1"},
	"file's name": {`{"type":"file","id":"f","filename":"../f","mime_type":"text/plain"}`, "filename",
		"valid on every system"},
	"file's hash": {`{"type":"file","id":"f","filename":"f","mime_type":"text/plain","sha256":"00"}`, "sha256",
		"64"},
}

func TestBadLinesAreRefusedByNumberAndField(t *testing.T) {
	longtest.Only(t)
	for _, name := range longtest.Keys(badLines, 1, 5) {
		c := badLines[name]
		t.Run(name, func(t *testing.T) {
			s := openCopy(t)
			first := `{"type":"memory","content":"before"}`
			export := []byte(byHand(first, c.line, `{"type":"memory","content":"after"}`))
			for what, r := range map[string]io.Reader{"seeker": bytes.NewReader(export), "stream": stream(export)} {
				report, err := s.Upkeep().Import(t.Context(), r, nil)
				var known *Error
				if !errors.As(err, &known) || !isAny(err, ErrInvalid, ErrTooLarge) || known.Argument != c.argument ||
					!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "line 3: ") {
					t.Errorf("%s: got %v, want an error of line 3 about %s that says %q", what, err, c.argument, c.says)
				}
				// The import of a file finds what CheckExport finds, before it stores anything.
				only := CheckExport(t.Context(), bytes.NewReader(export), nil)
				if what == "seeker" && (only != nil) != (report.Line == 0) || only != nil && only.Error() != err.Error() {
					t.Errorf("checked only: %v; imported: %v, to line %d; want the same", only, err, report.Line)
				}
				if what == "stream" && report.Line != 2 {
					t.Errorf("the report says that it is done up to line %d, want 2", report.Line)
				}
			}
			if got := contentsOf(t, s); len(got) != 1 || got[0] != "before" {
				t.Errorf(`stored are %q, want only "before"`, got)
			}
			invariants(t, s)
		})
	}
}

func TestAnExportCutOffAnywhereIsNoticed(t *testing.T) {
	longtest.Only(t)
	export := exported(t, openRich(t), ExportOptions{Credentials: true})
	cuts := []int{}
	for i, b := range export {
		if b == '\n' && i+1 < len(export) {
			cuts = append(cuts, i+1, i)
		}
	}
	for range 40 {
		cuts = append(cuts, rand.IntN(len(export)-2))
	}
	tried := cuts[:0]
	for i, cut := range cuts {
		if longtest.Part(i, 1, 20) {
			tried = append(tried, cut)
		}
	}
	cuts = tried
	empty, filled := openCopy(t), openCopy(t)
	before := rowsOf(t, empty)
	for _, cut := range cuts {
		if _, err := empty.Upkeep().Import(t.Context(), bytes.NewReader(export[:cut]), nil); !isAny(err, ErrInvalid,
			ErrForeign) {
			t.Errorf("cut at %d of %d: %v, want ErrInvalid or ErrForeign", cut, len(export), err)
		}
	}
	if rowsOf(t, empty) != before {
		t.Error("something was written, want no change")
	}
	for _, cut := range cuts {
		report, err := filled.Upkeep().Import(t.Context(), stream(export[:cut]), nil)
		if !isAny(err, ErrInvalid, ErrForeign) || len(report.Conflicts) > 0 {
			t.Errorf("a stream cut at %d: %v, %+v; want none", cut, err, report.Conflicts)
		}
		invariants(t, filled)
	}
	imported(t, filled, export, ImportOptions{})
	if again := exported(t, filled, ExportOptions{Credentials: true}); !bytes.Equal(again, export) {
		t.Errorf("after all parts and the whole: %v, want %.200q", linediff.First(again, export), export)
	}
}

func TestAChangedExportIsNoticed(t *testing.T) {
	longtest.Only(t)
	export := exported(t, openRich(t), ExportOptions{})
	s := openCopy(t)
	before := rowsOf(t, s)
	exports := map[string][]byte{
		"a word": bytes.Replace(export, []byte("bob begins"), []byte("bob began."), 1),
		"a line less": bytes.Replace(export,
			export[bytes.IndexByte(export, '\n')+1:bytes.Index(export, []byte(`{"type":"collection"`))], nil, 1),
		"a line more": append(bytes.Clone(export), `{"type":"memory","content":"x"}`...),
		"two ends":    append(bytes.Clone(export), export[bytes.LastIndex(export, []byte(`{"type":"end"`)):]...),
		"no hash": append(bytes.Clone(export[:bytes.LastIndex(export, []byte(`{"type":"end"`))]),
			`{"type":"end"}`...),
		"two, one behind": append(bytes.Clone(export), export...),
	}
	for _, name := range longtest.Keys(exports, 1, 2) {
		changed := exports[name]
		if _, err := s.Upkeep().Import(t.Context(), bytes.NewReader(changed), nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
		if _, err := openCopy(t).Upkeep().Import(t.Context(), stream(changed), nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s, as a stream: %v, want ErrInvalid", name, err)
		}
	}
	if after := rowsOf(t, s); after != before {
		t.Errorf("something was written: %v, want no change", linediff.First([]byte(after), []byte(before)))
	}
	// Line endings that editors and mail programs change make no difference.
	for name, same := range map[string][]byte{
		"CRLF":       bytes.ReplaceAll(export, []byte("\n"), []byte("\r\n")),
		"BOM":        append([]byte("\ufeff"), export...),
		"blank":      bytes.ReplaceAll(export, []byte("\n"), []byte("\n\n")),
		"no newline": bytes.TrimSuffix(export, []byte("\n")),
	} {
		copied := openCopy(t)
		if _, err := copied.Upkeep().Import(t.Context(), bytes.NewReader(same), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if again := exported(t, copied, ExportOptions{}); !bytes.Equal(again, export) {
			t.Errorf("%s: got an import that differs, want the same: %s", name, linediff.First(again, export))
		}
	}
}

func TestUnknownTypesAndStrayLinesAreCounted(t *testing.T) {
	s := openCopy(t)
	report := imported(t, s, []byte(byHand(
		`{"type":"hologram","id":"h"}`, `{"type":"memory","content":"x","unknown":{"field":1}}`,
		`{"type":"vectors","memory":"else","profile":"p","passages":[]}`, `{"type":"chunk","file":"none","n":0,"data":""}`,
		`{"type":"revision","memory":"else","revision":1,"content":"x","created_at":"2024-01-01T00:00:00Z"}`,
	)), ImportOptions{})
	if report.Ignored != 4 || report.Counts[transfer.KindMemory].Added != 1 || report.Line != 6 {
		t.Errorf("got %+v, want ignored 4, added 1 and line 6", report)
	}
}

func TestBrokenFilesAreNotImported(t *testing.T) {
	longtest.Only(t)
	big := string(pattern(2*kernel.ChunkSize + 5))
	head, _, _ := strings.Cut(fileLines("f", "local", big), "\n")
	chunk := func(n, from, to int) string {
		return `{"type":"chunk","file":"f","n":` + string(rune('0'+n)) + `,"data":"` + base64Of(big[from:to]) + `"}`
	}
	one, two, three := chunk(0, 0, kernel.ChunkSize), chunk(1, kernel.ChunkSize, 2*kernel.ChunkSize),
		chunk(2, 2*kernel.ChunkSize, len(big))
	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"missing":     {[]string{head, one, three}, "piece 1"},
		"none":        {[]string{head}, "not complete"},
		"the last":    {[]string{head, one, two}, "not complete"},
		"interrupted": {[]string{head, one, `{"type":"memory","content":"x"}`, two, three}, "not complete"},
		"swapped":     {[]string{head, two, one, three}, "piece 0"},
		"swapped content": {[]string{head, chunk(0, kernel.ChunkSize, 2*kernel.ChunkSize), chunk(1, 0, kernel.ChunkSize),
			three}, "sha256"},
		"short":      {[]string{head, chunk(0, 0, 100), two, three}, "100 bytes"},
		"another's":  {[]string{head, strings.Replace(one, `"f"`, `"g"`, 1), two, three}, `"g"`},
		"wrong hash": {[]string{strings.Replace(head, sumOf(big), sumOf("x"), 1), one, two, three}, "sha256"},
	} {
		s := openCopy(t)
		if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(c.lines...)), nil); !errors.Is(err,
			ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrInvalid and %q in the error", name, err, c.says)
		}
		if strings.Contains(string(exported(t, s, ExportOptions{})), `"type":"file"`) {
			t.Errorf(`%s: the file is there, want no "type":"file" in it`, name)
		}
		invariants(t, s)
	}
}

func TestATruncatedFileLeavesNothingAndCanBeImportedAgain(t *testing.T) {
	longtest.Only(t)
	s := openCopy(t)
	rich := openWords(t, filepath.Join(t.TempDir(), "rich.db"), Options{Now: sealedClock})
	mustAdd(t, rich, NewMemory{Content: "x"})
	putFile(t, rich, "f", "local", "", "", pattern(3*transfer.WaitingChunks*kernel.ChunkSize+9))
	export := exported(t, rich, ExportOptions{})
	cut := bytes.LastIndex(export, []byte(`{"type":"chunk"`))
	if _, err := s.Upkeep().Import(t.Context(), io.MultiReader(bytes.NewReader(export[:cut]), iotest.ErrReader(errNoRoom)),
		nil); !errors.Is(err, errNoRoom) {
		t.Errorf("got %v, want %v", err, errNoRoom)
	}
	invariants(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Upkeep().Import(ctx,
		io.MultiReader(bytes.NewReader(export[:cut]), readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF })),
		nil); !isAny(err, ErrInvalid) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrInvalid or context.Canceled", err)
	}
	invariants(t, s)
	imported(t, s, export, ImportOptions{})
	if again := exported(t, s, ExportOptions{}); !bytes.Equal(again, export) {
		t.Errorf("got %v, want %.200q", linediff.First(again, export), export)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAFileIsReplacedWhenAskedTo(t *testing.T) {
	s := openCopy(t)
	imported(t, s, []byte(byHand(fileLines("f", "local", "old"))), ImportOptions{})
	if report := imported(t, s, []byte(byHand(fileLines("f", "local", "new"))),
		ImportOptions{}); len(report.Conflicts) != 1 {
		t.Errorf("%+v; got %v, want 1", report, len(report.Conflicts))
	}
	report := imported(t, s, []byte(byHand(fileLines("f", "local", "new"))), ImportOptions{OnConflict: ConflictReplace})
	if report.Counts[transfer.KindFile].Replaced != 1 ||
		!bytes.Contains(exported(t, s, ExportOptions{}), []byte(base64Of("new"))) {
		t.Errorf("got %+v, want the file replaced", report)
	}
	invariants(t, s)
}

func TestImportErrors(t *testing.T) {
	longtest.Only(t)
	s := openCopy(t)
	if _, err := s.As(Access{}).Upkeep().Import(t.Context(), strings.NewReader(byHand()), nil); !errors.Is(err,
		ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
	if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand()),
		&ImportOptions{OnConflict: "merge"}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "merge") {
		t.Errorf(`got %v, want ErrInvalid and "merge" in the error`, err)
	}
	if _, err := s.Upkeep().Import(t.Context(),
		io.MultiReader(strings.NewReader(byHand(`{"type":"memory","content":"kept"}`)), iotest.ErrReader(errNoRoom)),
		nil); !errors.Is(err, errNoRoom) {
		t.Errorf("got %v, want %v", err, errNoRoom)
	}
	if got := contentsOf(t, s); len(got) != 1 {
		t.Errorf("before the reader failed: %q, want a length of 1", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Upkeep().Import(ctx, strings.NewReader(byHand()), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	long := byHand(`{"type":"memory","content":"` + strings.Repeat("x", transfer.MaxLine) + `"}`)
	if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(long), nil); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "line 2") {
		t.Errorf(`got %v, want ErrTooLarge and "line 2" in the error`, err)
	}
	path := filepath.Join(t.TempDir(), "s.db")
	openWords(t, path, Options{}).Close()
	if _, err := openWords(t, path, Options{ReadOnly: true}).Upkeep().Import(t.Context(), strings.NewReader(byHand()),
		nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	s.Close()
	if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(`{"type":"memory","content":"x"}`)),
		nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestReadersAndWritersThatMisbehaveAreErrors(t *testing.T) {
	s := openCopy(t)
	if _, err := s.Upkeep().Export(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "w is nil") {
		t.Errorf(`export to nil: %v, want ErrInvalid that says "w is nil"`, err)
	}
	if _, err := s.Upkeep().Import(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "r is nil") {
		t.Errorf(`import of nil: %v, want ErrInvalid that says "r is nil"`, err)
	}
	early := fmt.Errorf("the connection broke: %w", io.EOF)
	for name, read := range map[string]readerFunc{
		"connection": func([]byte) (int, error) { return 0, early },
		"impossible": func([]byte) (int, error) { return -1, nil },
		"count":      func(p []byte) (int, error) { return len(p) + 1, nil },
		"no data":    func([]byte) (int, error) { return 0, nil },
	} {
		for _, before := range []string{"", byHand(`{"type":"memory","content":"kept"}`)} {
			if _, err := s.Upkeep().Import(t.Context(), io.MultiReader(strings.NewReader(before), read), nil); err == nil ||
				!strings.Contains(err.Error(), strings.Fields(name)[0]) {
				t.Errorf("a reader of %q after %q: %v, want an error that names it", name, before, err)
			}
		}
		if _, err := s.AddFile(t.Context(), NewFile{},
			io.MultiReader(strings.NewReader("the first half"), read)); !errors.Is(err, ErrInvalid) ||
			filesHeld(t, s) != [3]int{} {
			t.Errorf("a file of %q: %v; the store holds %v; want ErrInvalid and nothing stored", name, err, filesHeld(t, s))
		}
	}
	for _, n := range []int{-1, 1 << 40} {
		if _, err := s.Upkeep().Export(t.Context(), writerFunc(func([]byte) (int, error) { return n, nil }),
			nil); err == nil {
			t.Errorf("a writer that says it wrote %d bytes: no error, want an error", n)
		}
	}
}

// panics calls fn, which must panic.
func panics(t *testing.T, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("got no panic, want one")
		}
	}()
	fn()
}

func TestCallersThatPanicLeaveTheStoreUsable(t *testing.T) {
	longtest.Only(t)
	for _, path := range []string{filepath.Join(t.TempDir(), "panic.db"), ":memory:"} {
		s := openWords(t, path, Options{})
		varied(t, s)
		big := byHand(strings.Split(strings.TrimSpace(string(exported(t, openRich(t), ExportOptions{}))), "\n")[1:]...)
		big = big[:strings.LastIndex(big, `{"type":"chunk"`)]
		folder := t.TempDir()
		boom := func(stage string, done, _ int) { panic(stage) }
		panics(t, func() {
			_, _ = s.Upkeep().Export(t.Context(), writerFunc(func([]byte) (int, error) { panic("w") }), nil)
		})
		panics(t, func() { _, _ = s.Upkeep().Export(t.Context(), io.Discard, &ExportOptions{Progress: boom}) })
		panics(t, func() {
			_, _ = s.Upkeep().BackupTo(t.Context(), writerFunc(func([]byte) (int, error) { panic("w") }), nil)
		})
		panics(t, func() { _, _ = s.Upkeep().BackupTo(t.Context(), io.Discard, &BackupOptions{Progress: boom}) })
		panics(t, func() {
			_ = s.Upkeep().Backup(t.Context(), filepath.Join(folder, "b.db"), &BackupOptions{Progress: boom})
		})
		panics(t, func() { _, _ = s.Upkeep().Check(t.Context(), &CheckOptions{Progress: boom}) })
		panics(t, func() { _ = s.Upkeep().Reindex(t.Context(), &ReindexingOptions{Progress: boom}) })
		panics(t, func() {
			_, _ = s.Upkeep().Import(t.Context(),
				io.MultiReader(strings.NewReader(big), readerFunc(func([]byte) (int, error) { panic("r") })), nil)
		})
		panics(t, func() {
			_, _ = s.AddFile(t.Context(), NewFile{},
				io.MultiReader(zeros(2*batchSize), readerFunc(func([]byte) (int, error) { panic("r") })))
		})
		if left := filesIn(t, folder); len(left) > 0 {
			t.Errorf("%s: a backup that panicked leaves %q, want none", path, left)
		}
		var unfinished int
		if err := s.db.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM file WHERE state <> 'stored'`).Scan(&unfinished)
		}); err != nil || unfinished > 0 {
			t.Errorf("%s: %d unfinished files are left, %v; want none", path, unfinished, err)
		}
		mustAdd(t, s, NewMemory{Content: "stored after all that"})
		if report := mustCheck(t, s, nil); !report.OK {
			t.Errorf("%s: got %+v, want OK", path, report)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnrepresentableTimesAreNotImported(t *testing.T) {
	s := openCopy(t)
	for _, created := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"} {
		line := fmt.Sprintf(`{"type":"memory","content":"out of time","created_at":%q}`, created)
		if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(line)), nil); !errors.Is(err, ErrInvalid) ||
			!strings.Contains(err.Error(), "line 2: created_at") {
			t.Errorf(`%s: got %v, want ErrInvalid and "line 2: created_at" in the error`, created, err)
		}
	}
	imported(t, s, []byte(byHand(`{"type":"memory","content":"just in time","created_at":"9999-12-31T23:59:59.999999Z"}`)),
		ImportOptions{})
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestAnInterruptedImportIsCompleteWhenRepeated(t *testing.T) {
	longtest.Only(t)
	rich := openRich(t)
	o := ExportOptions{Credentials: true}
	export := exported(t, rich, o)
	lines := bytes.SplitAfter(export, []byte("\n"))
	for n := 1; n < len(lines)-1; n++ {
		if !longtest.Part(n, 1, 40) {
			continue
		}
		s := openWords(t, "", Options{Now: sealedClock})
		ctx, cancel := context.WithCancel(t.Context())
		broken := io.MultiReader(bytes.NewReader(bytes.Join(lines[:n], nil)),
			readerFunc(func([]byte) (int, error) { cancel(); return 0, context.Canceled }))
		report, err := s.Upkeep().Import(ctx, broken, nil)
		if !errors.Is(err, context.Canceled) || report.Line > n {
			t.Fatalf("broken off after line %d: %d lines, %v, want context.Canceled and line at most %v", n, report.Line, err, n)
		}
		if n%5 == 0 {
			if report := mustCheck(t, s, nil); !report.OK {
				t.Fatalf("broken off after line %d: %+v, want OK", n, report)
			}
		}
		if report := imported(t, s, export, ImportOptions{}); len(report.Conflicts) > 0 {
			t.Fatalf("after line %d: %+v; want none", n, report.Conflicts)
		}
		if again := exported(t, s, o); !bytes.Equal(again, export) {
			t.Fatalf("cut off after line %d: got another import, want the same: %s", n, linediff.First(again, export))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExportsOfEndlesslyManyTypesAreRefused(t *testing.T) {
	lines := make([]string, transfer.MaxKinds+1)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"type":"kind-%d"}`, i)
	}
	s := openCopy(t)
	if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(lines...)), nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "line 1002: type") {
		t.Errorf(`got %v, want ErrInvalid and "line 1002: type" in the error`, err)
	}
	if report := imported(t, s, []byte(byHand(lines[1:]...)), ImportOptions{}); report.Ignored != transfer.MaxKinds {
		t.Errorf("%+v; want ignored %v", report, transfer.MaxKinds)
	}
}

func TestExportOfAMemoryWhosePlaceIsLostSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lost.db")
	s := openWords(t, path, Options{})
	varied(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	withoutReferences(t, path, `UPDATE memory_revision SET partition_id = 77`)
	s = openWords(t, path, Options{})
	if _, err := s.Upkeep().Export(t.Context(), io.Discard, nil); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "partition 77") {
		t.Errorf(`got %v, want ErrCorrupt and "partition 77" in the error`, err)
	}
}
