package upkeep

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// transferPage is the data of the page on which people export their memories, and admins import.
type transferPage struct {
	Export  transferChoice
	Import  importChoice
	File    web.Field // to import
	Error   string
	Again   string // where an admin has to sign in first; empty: not needed
	Work    *jobState
	Outcome *importOutcome // the result of an import
}

// transferChoice is the input for an export.
type transferChoice struct {
	All, Files, Vectors, Credentials bool
}

// importChoice is the input for an import.
type importChoice struct {
	Replace, Look bool
}

// importOutcome is the result of an import, for the page.
type importOutcome struct {
	souvenir.ImportReport
	Looked bool // a dry run
	Kinds  []importedKind
}

// importedKind is the result for one kind of data.
type importedKind struct {
	Name string
	souvenir.ImportCount
}

// transferWork is the kind of job of the page.
var transferWork = []string{"import"}

func (s *Service) transfer(r *http.Request, c request.Caller) (web.Page, *transferPage, error) {
	again, err := s.signin.SignInAgain(r, c, "/transfer")
	data := &transferPage{
		Again:  again,
		Export: transferChoice{Files: true, Vectors: true},
		File: web.Field{Name: "file", Label: "File",
			Hint: "A file from an export, or one in the format of docs/export-format.md."},
		Work: s.jobs.state(r, "/transfer", transferWork),
	}
	if data.Work != nil {
		if outcome, ok := data.Work.Result.(importOutcome); ok {
			data.Outcome = &outcome
		}
	}
	return web.Page{Template: "transfer", Title: "Export and import", Part: "progress", Data: data}, data, err
}

func (s *Service) showTransfer(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, data, err := s.transfer(r, c)
	if c.User.Role != souvenir.RoleAdmin {
		data.Work, data.Outcome = nil, nil // for admins only
	}
	if web.FromScript(r) && (data.Work == nil || !data.Work.Running) {
		w.Header().Set("HX-Refresh", "true") // the page shows the outcome
	}
	return p, err
}

// exportStore sends an export: of the user's own data or, to an admin, of all users' data.
func (s *Service) exportStore(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	from, whose := c.Store, c.User.Name
	options := souvenir.ExportOptions{WithoutFiles: !values.Has("files"), WithoutVectors: !values.Has("vectors")}
	if values.Get("of") == "all" {
		if c.User.Role != souvenir.RoleAdmin {
			return nil, &failure.Error{Status: http.StatusForbidden,
				Message: "only admins can export all users' data; export your own"}
		}
		if again, err := s.signin.SignInAgain(r, c, "/transfer"); err != nil || again != "" {
			return web.Redirect(again), err
		}
		from, whose = s.store, "all"
		options.Credentials = values.Has("credentials")
	}
	name := exportName(whose, time.Now())
	if values.Has("receipt") {
		return nil, exportProven(r.Context(), from, w, name, options)
	}
	_, err = from.Upkeep().Export(r.Context(),
		&download{w: w, name: name + ".jsonl", kind: "application/x-ndjson"}, &options)
	return nil, err
}

// exportProven sends an archive of an export and its receipt, which is made once the export is complete.
func exportProven(ctx context.Context, from *souvenir.Store, w http.ResponseWriter, name string,
	options souvenir.ExportOptions) error {
	files := zip.NewWriter(&download{w: w, name: name + ".zip", kind: "application/zip"})
	export, err := files.Create(name + ".jsonl")
	if err != nil {
		return err
	}
	var signed souvenir.Receipt
	options.Receipt = &signed
	if _, err := from.Upkeep().Export(ctx, export, &options); err != nil {
		return err
	}
	proof, err := json.MarshalIndent(signed, "", "  ")
	if err != nil {
		return err
	}
	receipt, err := files.Create(name + ".receipt.json")
	if err == nil {
		_, err = receipt.Write(append(proof, '\n'))
	}
	if err != nil {
		return err
	}
	return files.Close()
}

// exportName is the file name of an export, without its ending. It keeps only characters that every file system
// accepts.
func exportName(whose string, now time.Time) string {
	plain := strings.Trim(strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return '-'
		}
		return r
	}, strings.ToLower(whose)), "-")
	if plain == "" {
		plain = "own"
	}
	return "souvenir-" + plain[:min(len(plain), 40)] + "-" + now.Format(time.DateOnly)
}

// importExport receives a file and begins to import it, or makes a dry run.
func (s *Service) importExport(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, part, err := s.readUpload(w, r)
	again, failed := s.signin.SignInAgain(r, c, "/transfer")
	if failed != nil {
		return nil, failed
	}
	if err == nil && again != "" {
		return web.Redirect(again), nil
	}
	if err == nil {
		err = s.beginImport(r, part, values)
	}
	if err == nil {
		return web.Redirect(s.site.Path("/transfer") + "#work"), nil
	}
	if status, _ := failure.Describe(err); status == http.StatusForbidden {
		return nil, err
	}
	p, data, failed := s.transfer(r, c)
	if failed != nil {
		return nil, failed
	}
	data.Import = importChoice{Replace: values.Get("conflict") == string(souvenir.ConflictReplace),
		Look: values.Has("look")}
	form := web.Form{Fields: []web.Field{data.File}}
	form.Refuse(err)
	data.File, data.Error = form.Fields[0], form.Error
	return web.Again(p, err)
}

// beginImport stores the upload in a temporary file, and begins to import it.
func (s *Service) beginImport(r *http.Request, sent io.Reader, values url.Values) error {
	conflict := souvenir.ConflictPolicy(values.Get("conflict"))
	if !slices.Contains([]souvenir.ConflictPolicy{"", souvenir.ConflictKeep, souvenir.ConflictReplace}, conflict) {
		return failure.Invalid("conflict", "conflict is "+failure.Quote(string(conflict))+"; expected keep or replace")
	}
	file, err := os.CreateTemp("", "souvenir-import-*.jsonl")
	if err != nil {
		return err
	}
	unnamed := os.Remove(file.Name()) // where open files can be removed, even a killed server does not leave it behind
	drop := func() {
		err := file.Close()
		if unnamed != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
		if err != nil {
			s.log.Warn("the temporary file of an import could not be removed", "file", file.Name(), "error", err)
		}
	}
	n, err := io.Copy(file, sent)
	switch {
	case err != nil:
		err = failure.Unreadable(err)
	case n == 0:
		err = failure.Invalid("file", "file is empty; choose an export")
	default:
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		look, title := values.Has("look"), "The import"
		if look {
			title = "Dry run of an import"
		}
		err = s.Begin(r, "import", title, func(ctx context.Context, progress souvenir.Progress) (any, error) {
			defer drop()
			return s.importFile(ctx, file, look, conflict, progress)
		})
	}
	if err != nil {
		drop()
	}
	return err
}

func (s *Service) importFile(ctx context.Context, file io.ReadSeeker, look bool, conflict souvenir.ConflictPolicy,
	progress souvenir.Progress) (any, error) {
	if look {
		if err := souvenir.CheckExport(ctx, file, &souvenir.ExportCheckOptions{Progress: progress}); err != nil {
			return nil, err
		}
		return importOutcome{Looked: true}, nil
	}
	report, err := s.store.Upkeep().Import(ctx, file, &souvenir.ImportOptions{OnConflict: conflict, Progress: progress})
	outcome := importOutcome{ImportReport: report}
	for _, kind := range slices.Sorted(maps.Keys(report.Counts)) {
		outcome.Kinds = append(outcome.Kinds, importedKind{strings.ReplaceAll(kind, "_", " "), report.Counts[kind]})
	}
	if err != nil && report.Line == 0 && len(outcome.Kinds) == 0 {
		return nil, err // nothing was imported
	}
	return outcome, err
}

// readUpload reads a form of a page of this server with a file after its fields, up to that file. It is streamed,
// since it may be larger than memory.
func (s *Service) readUpload(w http.ResponseWriter, r *http.Request) (url.Values, *multipart.Part, error) {
	values := url.Values{}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		if _, err := s.site.ReadForm(w, r); err != nil {
			return values, nil, err
		}
		return values, nil, failure.Invalid("file", "file is missing; choose one")
	}
	if err := s.site.CheckOrigin(r); err != nil {
		return values, nil, err
	}
	in, err := upload.Open(r, s.site.MaxBody)
	if err != nil {
		return values, nil, err
	}
	for {
		part, err := in.NextPart()
		if err != nil && err != io.EOF { //nolint:errorlint // wrapped, it is a truncated body
			return values, nil, failure.Unreadable(err)
		}
		if err == nil && part.FormName() != "file" {
			if len(values) >= upload.MaxFields {
				return values, nil, failure.Invalid("form",
					fmt.Sprintf("the form has more than %d fields, the maximum", upload.MaxFields))
			}
			value, err := io.ReadAll(io.LimitReader(part, upload.MaxField))
			if err != nil {
				return values, nil, failure.Unreadable(err)
			}
			values.Add(part.FormName(), string(value))
			continue
		}
		if err := web.CheckFormToken(r, values.Get(web.FormField)); err != nil {
			return values, nil, err
		}
		if err != nil || part.FileName() == "" {
			return values, nil, failure.Invalid("file", "file is missing; choose one")
		}
		in.InFile = true
		return values, part, nil
	}
}
