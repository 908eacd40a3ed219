package upkeep

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// backupPage is the data of the page on which admins maintain the store's file.
type backupPage struct {
	File    string // path; empty: the store is in memory only, or in a database server
	Engine  string // of a database server with the store; empty: it is in a file or in memory
	Name    string // of a backup made today
	Size    int64  // approximate size of one, in bytes
	Free    int64
	Holds   []web.Fact
	Vectors []web.Fact
	Keep    web.Field // how many past versions of a memory to keep
	Error   string
	Again   string // where to sign in first; empty: not needed
	Work    *jobState
	Shown   []souvenir.Finding // of a check
	More    int                // findings left out
	Restore string             // the command
	Nightly string             // likewise
}

// shownFindings is how many findings a page lists.
const shownFindings = 50

// upkeep are the kinds of jobs of the page.
var upkeep = []string{"check", "repair", "reindex", "purge", "compact"}

func (s *Service) backup(r *http.Request, c request.Caller) (web.Page, *backupPage, error) {
	stats, err := s.store.Upkeep().Stats(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	configuration, err := s.store.Upkeep().Configuration(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	again, err := s.signin.SignInAgain(r, c, "/backup")
	if err != nil {
		return web.Page{}, nil, err
	}
	data := &backupPage{
		Again: again, File: configuration.Path, Name: backupName(time.Now()), Size: stats.DatabaseBytes - stats.FreeBytes,
		Free: stats.FreeBytes,
		Holds: []web.Fact{
			{Key: "Users", Value: web.Thousands(stats.Users)}, {Key: "Projects", Value: web.Thousands(stats.Projects)},
			{Key: "Memories", Value: web.Thousands(stats.Memories)},
			{Key: "Past versions", Value: web.Thousands(stats.Revisions)},
			{Key: "Files", Value: web.Thousands(stats.Files) + ", " + web.Bytes(stats.FileBytes)},
		},
		Vectors: []web.Fact{
			{Key: "Embedding model", Value: stats.Embedding.Model}, {Key: "Passages", Value: web.Thousands(stats.Passages)},
			{Key: "Waiting for vectors", Value: web.Thousands(stats.Embedding.Pending)},
		},
		Keep: web.Field{Name: "keep", Label: "Past versions to keep of each memory",
			Hint: "Keeps the newest; the others are deleted permanently. Empty keeps all."},
		Work: s.jobs.state(r, "/backup", upkeep),
	}
	if other := stats.Embedding.StoredModel; other != "" {
		data.Vectors = append(data.Vectors,
			web.Fact{Key: "Vectors of another model", Value: other + "; searches use words only"})
	}
	if stats.Embedding.Changing {
		data.Vectors = append(data.Vectors, web.Fact{Key: "Changing the model", Value: changedSoFar(stats.Embedding)})
	}
	if stats.Embedding.LastError != "" {
		data.Vectors = append(data.Vectors, web.Fact{Key: "Embedding", Value: "failed last time; the server's log says why"})
	}
	if data.Work != nil {
		if report, ok := data.Work.Result.(souvenir.CheckReport); ok {
			data.Shown = report.Findings[:min(len(report.Findings), shownFindings)]
			data.More = report.Total - len(data.Shown)
		}
	}
	switch data.File {
	case "":
		data.Engine = configuration.Engine
	case ":memory:":
		data.File = ""
	default:
		data.Restore = "souvenir restore " + data.Name + " --db " + shellQuoted(data.File)
		data.Nightly = "souvenir backup souvenir-$(date +%F).db --db " + shellQuoted(data.File)
	}
	return web.Page{Template: "backup", Title: "Backup and restore", Part: "progress", Data: data}, data, nil
}

func backupName(now time.Time) string { return "souvenir-" + now.Format(time.DateOnly) + ".db" }

// shellQuoted quotes a word for shells.
func shellQuoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (s *Service) showBackup(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if web.FromScript(r) { // it polls for progress
		work := s.jobs.state(r, "/backup", upkeep)
		if work == nil || !work.Running {
			w.Header().Set("HX-Refresh", "true") // the page shows the outcome
		}
		return web.Page{Template: "backup", Title: "Backup and restore", Part: "progress", Data: &backupPage{Work: work}}, nil
	}
	p, _, err := s.backup(r, c)
	return p, err
}

// downloadBackup sends a copy of the whole store, as of one moment.
func (s *Service) downloadBackup(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if _, err := s.site.ReadForm(w, r); err != nil {
		return nil, err
	}
	if again, err := s.signin.SignInAgain(r, c, "/backup"); err != nil || again != "" {
		return web.Redirect(again), err
	}
	_, err := s.store.Upkeep().BackupTo(r.Context(),
		&download{w: w, name: backupName(time.Now()), kind: "application/octet-stream"}, nil)
	return nil, err
}

// download is a response that browsers save as a file. It begins with the first byte, so that an earlier failure is
// an ordinary error.
type download struct {
	w          http.ResponseWriter
	name, kind string
	begun      bool
}

// Write sends a part.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.w.Header().Set("Content-Type", d.kind)
		d.w.Header().Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	}
	return d.w.Write(p)
}

// workOnFile begins a job on the store's file.
func (s *Service) workOnFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	kind := values.Get("work")
	keep := 0
	if typed := strings.TrimSpace(values.Get("keep")); kind == "purge" && typed != "" {
		if keep, err = strconv.Atoi(typed); err != nil || keep < 1 {
			err = failure.Invalid("keep", "keep is "+failure.Quote(typed)+
				"; expected a whole number, 1 or more, or nothing to keep all")
		}
	}
	if err == nil {
		var title string
		var run func(context.Context, souvenir.Progress) (any, error)
		if title, run, err = s.workOf(kind, keep); err == nil {
			err = s.Begin(r, kind, title, run)
		}
	}
	if err == nil {
		return web.Redirect(s.site.Path("/backup") + "#work"), nil
	}
	p, data, failed := s.backup(r, c)
	if failed != nil {
		return nil, failed
	}
	form := web.Form{Fields: []web.Field{data.Keep}}
	form.Refuse(err)
	data.Keep, data.Error = form.Fields[0], form.Error
	data.Keep.Value = values.Get("keep")
	return web.Again(p, err)
}

// workOf returns the function of a kind of job, and its name.
func (s *Service) workOf(kind string, keep int) (title string,
	run func(context.Context, souvenir.Progress) (any, error), err error) {
	check := func(repair bool) func(context.Context, souvenir.Progress) (any, error) {
		return func(ctx context.Context, progress souvenir.Progress) (any, error) {
			return orNothing(s.store.Upkeep().Check(ctx, &souvenir.CheckOptions{Repair: repair, Progress: progress}))
		}
	}
	switch kind {
	case "check":
		return "Check", check(false), nil
	case "repair":
		return "Repair", check(true), nil
	case "reindex":
		return "Rebuild of the index", func(ctx context.Context, progress souvenir.Progress) (any, error) {
			return nil, s.store.Upkeep().Reindex(ctx, &souvenir.ReindexingOptions{Progress: progress})
		}, nil
	case "purge":
		return "Cleanup", func(ctx context.Context, _ souvenir.Progress) (any, error) {
			return orNothing(s.store.Upkeep().Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: keep}))
		}, nil
	case "compact":
		return "Freeing disk space", func(ctx context.Context, _ souvenir.Progress) (any, error) { return s.compact(ctx) },
			nil
	}
	return "", nil, failure.Invalid("work", "work is "+failure.Quote(kind)+"; expected "+strings.Join(upkeep, ", "))
}

// orNothing returns a result, or nil if there is an error.
func orNothing[T any](result T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

// compact frees the space of deleted rows, and reports the sizes.
func (s *Service) compact(ctx context.Context) (any, error) {
	before, err := s.store.Upkeep().Stats(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.store.Upkeep().Compact(ctx); err != nil {
		return nil, err
	}
	after, err := s.store.Upkeep().Stats(ctx)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("The store had %s and has %s now.", web.Bytes(before.DatabaseBytes),
			web.Bytes(after.DatabaseBytes)),
		nil
}
