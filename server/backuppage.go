package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// backupPage is what the page shows on which admins keep the store's file in order.
type backupPage struct {
	File    string // path; empty: the store is in memory alone
	Name    string // of a backup of today
	Size    int64  // bytes of one, about
	Free    int64
	Holds   []fact
	Vectors []fact
	Keep    field // how many former states of a memory stay
	Error   string
	Anew    string // where to sign in first; empty: not needed
	Work    *jobState
	Shown   []souvenir.Finding // of a check
	More    int                // findings that are not shown
	Restore string             // the command
	Nightly string             // likewise
}

// shownFindings is how many faults a page lists.
const shownFindings = 50

// upkeep are the kinds of work of the page.
var upkeep = []string{"check", "repair", "reindex", "purge", "compact"}

func (s *Server) backup(r *http.Request, c caller) (page, *backupPage, error) {
	stats, err := s.store.Stats(r.Context())
	if err != nil {
		return page{}, nil, err
	}
	configuration, err := s.store.Configuration(r.Context())
	if err != nil {
		return page{}, nil, err
	}
	anew, err := s.signInAnew(r, c, "/backup")
	if err != nil {
		return page{}, nil, err
	}
	data := &backupPage{
		Anew: anew, File: configuration.Path, Name: backupName(time.Now()), Size: stats.DatabaseBytes - stats.FreeBytes, Free: stats.FreeBytes,
		Holds: []fact{
			{"Users", thousands(stats.Users)}, {"Projects", thousands(stats.Projects)}, {"Memories", thousands(stats.Memories)},
			{"Former states", thousands(stats.Revisions)}, {"Files", thousands(stats.Files) + ", " + bytesInWords(stats.FileBytes)},
		},
		Vectors: []fact{
			{"Embedding model", stats.Embedding.Model}, {"Passages", thousands(stats.Passages)}, {"Waiting for their vectors", thousands(stats.Embedding.Pending)},
		},
		Keep: field{Name: "keep", Label: "Former states of each memory to keep", Hint: "The newest ones; the others are gone for good. Empty keeps all."},
		Work: s.working.state(r, "/backup", upkeep),
	}
	if stats.Embedding.Changing {
		data.Vectors = append(data.Vectors, fact{"Changing the model", changedSoFar(stats.Embedding)})
	}
	if stats.Embedding.LastError != "" {
		data.Vectors = append(data.Vectors, fact{"Embedding", "failed last time; the server's log says why"})
	}
	if data.Work != nil {
		if report, ok := data.Work.Result.(souvenir.CheckReport); ok {
			data.Shown = report.Findings[:min(len(report.Findings), shownFindings)]
			data.More = report.Total - len(data.Shown)
		}
	}
	if data.File == ":memory:" {
		data.File = ""
	} else {
		data.Restore = "souvenir restore " + data.Name + " --db " + shellQuoted(data.File)
		data.Nightly = "souvenir backup souvenir-$(date +%F).db --db " + shellQuoted(data.File)
	}
	return page{template: "backup", title: "Backup and restore", part: "progress", data: data}, data, nil
}

func backupName(now time.Time) string { return "souvenir-" + now.Format(time.DateOnly) + ".db" }

// shellQuoted is a word as shells read it.
func shellQuoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (s *Server) showBackup(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if ofScript(r) { // which asks how far the work is
		work := s.working.state(r, "/backup", upkeep)
		if work == nil || !work.Running {
			w.Header().Set("HX-Refresh", "true") // the page tells how it ended
		}
		return page{template: "backup", title: "Backup and restore", part: "progress", data: &backupPage{Work: work}}, nil
	}
	p, _, err := s.backup(r, c)
	return p, err
}

// downloadBackup sends a copy of the whole store, as it is at one moment.
func (s *Server) downloadBackup(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if _, err := s.readForm(w, r); err != nil {
		return nil, err
	}
	if anew, err := s.signInAnew(r, c, "/backup"); err != nil || anew != "" {
		return redirect(anew), err
	}
	_, err := s.store.BackupTo(r.Context(), &download{w: w, name: backupName(time.Now()), kind: "application/vnd.sqlite3"}, nil)
	return nil, err
}

// download makes an answer that browsers save as a file, once there is something in it: what fails before is an error as elsewhere.
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

// workOnFile begins a piece of work on the store's file.
func (s *Server) workOnFile(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	kind := values.Get("work")
	keep := 0
	if typed := strings.TrimSpace(values.Get("keep")); kind == "purge" && typed != "" {
		if keep, err = strconv.Atoi(typed); err != nil || keep < 1 {
			err = invalid("keep", "keep is "+quoted(typed)+"; a whole number is needed, 1 or more, or nothing to keep all")
		}
	}
	if err == nil {
		var title string
		var run func(context.Context, souvenir.Progress) (any, error)
		if title, run, err = s.workOf(kind, keep); err == nil {
			err = s.begin(r, kind, title, run)
		}
	}
	if err == nil {
		return redirect(s.path("/backup") + "#work"), nil
	}
	p, data, failed := s.backup(r, c)
	if failed != nil {
		return nil, failed
	}
	form := pageForm{Fields: []field{data.Keep}}
	form.refuse(err)
	data.Keep, data.Error = form.Fields[0], form.Error
	data.Keep.Value = values.Get("keep")
	return again(p, err)
}

// workOf is what a kind of work does, and its name.
func (s *Server) workOf(kind string, keep int) (title string, run func(context.Context, souvenir.Progress) (any, error), err error) {
	check := func(repair bool) func(context.Context, souvenir.Progress) (any, error) {
		return func(ctx context.Context, progress souvenir.Progress) (any, error) {
			return orNothing(s.store.Check(ctx, &souvenir.CheckOptions{Repair: repair, Progress: progress}))
		}
	}
	switch kind {
	case "check":
		return "The check of the file", check(false), nil
	case "repair":
		return "The repair of the file", check(true), nil
	case "reindex":
		return "Making the index again", func(ctx context.Context, progress souvenir.Progress) (any, error) {
			return nil, s.store.Reindex(ctx, &souvenir.ReindexOptions{Progress: progress})
		}, nil
	case "purge":
		return "Deleting what is of no more use", func(ctx context.Context, _ souvenir.Progress) (any, error) {
			return orNothing(s.store.Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: keep}))
		}, nil
	case "compact":
		return "Giving free room back", func(ctx context.Context, _ souvenir.Progress) (any, error) { return s.compact(ctx) }, nil
	}
	return "", nil, invalid("work", "work is "+quoted(kind)+"; allowed are "+strings.Join(upkeep, ", "))
}

// orNothing is a result, or with an error none.
func orNothing[T any](result T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

// compact gives free room in the file back to the system, and says how much it was.
func (s *Server) compact(ctx context.Context) (any, error) {
	before, err := s.store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.store.Compact(ctx); err != nil {
		return nil, err
	}
	after, err := s.store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("The file had %s and has %s now.", bytesInWords(before.DatabaseBytes), bytesInWords(after.DatabaseBytes)), nil
}
