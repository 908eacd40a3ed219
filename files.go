package souvenir

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/arrival"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/files/filetype"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// File is a document kept beside the memories: its contents are in the store, too, and [Store.OpenFile] reads them. A
// file in a project belongs to the project: only its members see it. Any other file is visible to its owner only.
type File struct {
	ID string `json:"id"` // UUID
	// the memory it is linked to; empty: none, or none that is visible through this view
	MemoryID    string   `json:"memory_id"`
	Filename    string   `json:"filename"`  // as CleanFilename leaves it
	MIMEType    string   `json:"mime_type"` // RFC 2045, such as "text/plain; charset=utf-8"
	Size        int64    `json:"size"`      // bytes
	Description string   `json:"description"`
	Tags        []string `json:"tags"` // in the order given
	Category    string   `json:"category"`
	SHA256      string   `json:"sha256"` // of the bytes, as 64 hexadecimal digits
	Owner       string   `json:"owner"`  // user id of the user who stored it; for a file in a project, the project's owner
	// the project it is in: its memory's, or its own while it has no memory; empty: none
	ProjectID string    `json:"project_id,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Text      FileText  `json:"text"` // its text, as searches for documents find it
}

// FileSummary is a file as search results show it.
type FileSummary struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size"` // bytes
}

// Summary returns the file as search results show it.
func (f File) Summary() FileSummary { return FileSummary{f.ID, f.Filename, f.MIMEType, f.Size} }

// MarshalJSON returns the form of the interface: id, memory_id (null without one), filename, mime_type, size,
// description, tags, category, created_at (RFC 3339, UTC); and besides sha256, owner, project_id (left out without
// one), updated_at and text.
func (f File) MarshalJSON() ([]byte, error) {
	var memory *string
	if f.MemoryID != "" {
		memory = &f.MemoryID
	}
	type plain File
	f.Tags = jsonobject.List(f.Tags)
	return json.Marshal(struct {
		ID       string  `json:"id"`
		MemoryID *string `json:"memory_id"`
		plain
	}{f.ID, memory, plain(f)})
}

// GetFile returns a file's details. A file that does not exist, or that this view may not see, is ErrNotFound.
func (s *Store) GetFile(ctx context.Context, id string) (_ File, err error) {
	defer setGoNames[struct{}](&err, "file_id", "id")
	var f storedFile
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		f, err = s.file(tx, v, id)
		return err
	})
	return f.File, err
}

// FileStatus is a file's place in the store, as the caller sees it.
type FileStatus struct {
	Owner     string `json:"owner"`                // user id of its owner; for a file in a project, the project's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it is in; empty: none that is visible through this view. ProjectOwner is the user id of the project's
	// owner: OWNER/ID names the project unambiguously.
	ProjectID    string `json:"project_id,omitempty"`
	ProjectOwner string `json:"project_owner,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it
}

// FileStatus returns a file's place in the store. A file that does not exist, or that this view may not see, is
// ErrNotFound.
func (h *Insights) FileStatus(ctx context.Context, id string) (_ FileStatus, err error) {
	defer setGoNames[struct{}](&err, "file_id", "id")
	s := h.s
	var status FileStatus
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		f, err := s.file(tx, v, id)
		if err != nil {
			return err
		}
		status = FileStatus{Owner: f.Owner, ProjectID: f.ProjectID, Writable: f.writable && !s.access.ReadOnly}
		project := f.project
		if f.ProjectID == "" {
			project = 0
		}
		owners, err := kernel.OwnersOf(tx, v.Namespace, f.Owner, project)
		status.OwnerName, status.ProjectOwner = owners.Name, owners.ProjectOwner
		return err
	})
	return status, err
}

// FileList says which files [Store.Files] returns, and in which order. A file must match every field that is set; a
// memory or project that is not visible has no files.
type FileList struct {
	MemoryID    string   // only files linked to this memory
	ProjectID   string   // only files that are in this project
	ProjectName string   // the project by name
	Category    string   // only files of this category
	Tags        []string // files with any of these tags
	Filename    string   // only files whose name contains this, ignoring the case of Latin letters
	MIMEType    string   // only files of this type, ignoring its parameters: text/plain, or image/* for all images

	// Sort is one of the four orders by time; empty means SortCreatedDesc, the newest first.
	Sort SortOrder
}

// Files iterates over all visible files that match when it begins. It holds no lock and no transaction while the caller
// works, so the loop may call other methods: each file is returned as it is when its turn comes, and deleted files are
// skipped. The sequence ends after the first error.
func (s *Store) Files(ctx context.Context, l FileList) iter.Seq2[File, error] {
	return portions.ByRow(256, func() (_ []int64, err error) {
		defer setGoNames[FileList](&err)
		return s.fileRows(ctx, l)
	}, func(rows []int64) (found []File, err error) {
		err = s.read(ctx, func(tx db.Tx, v viewer) error {
			found, err = s.loadInOrder(tx, v, rows)
			return err
		})
		return found, err
	})
}

// fileRows returns the rows of the files of a listing, in its order.
func (s *Store) fileRows(ctx context.Context, l FileList) (rows []int64, err error) {
	files, order, err := l.checked()
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		rows, err = files.Rows(tx, v, order)
		return err
	})
	return rows, err
}

// checked returns the condition on a file and the order, in SQL.
func (l FileList) checked() (files filter.Files, order string, err error) {
	sort := cmp.Or(l.Sort, SortCreatedDesc)
	if !slices.Contains(sortOrders[1:], sort) {
		return files, "", invalid("sort_order", "{} is %s; lists are sorted by time; expected %s", show(string(sort)),
			oneOf(sortOrders[1:]))
	}
	files = filter.Files{MemoryID: l.MemoryID, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Category: l.Category,
		Tags: l.Tags, Filename: l.Filename, MIMEType: l.MIMEType}
	return files, sort.byTime().SQL(`f`), files.Check()
}

// MaxFileLimit is the most files that [Store.FilePage] returns at once.
const MaxFileLimit = 1000

// FileQuery asks for a page of files.
type FileQuery struct {
	FileList     // which files, in which order
	Limit    int // files to return, 1 to 1,000; zero means 1,000
	Offset   int // files to skip, 0 or more; beyond the last file the page is empty
}

// FilePage is a page of files.
type FilePage struct {
	Files  []File `json:"files"`  // never nil
	Total  int    `json:"total"`  // matching files, on all pages
	Offset int    `json:"offset"` // as in the query
	Limit  int    `json:"limit"`  // as applied
}

// HasMore reports whether there are files after this page.
func (p FilePage) HasMore() bool { return p.Offset+len(p.Files) < p.Total }

// MarshalJSON returns files (never null), total, offset, limit and has_more.
func (p FilePage) MarshalJSON() ([]byte, error) {
	type plain FilePage
	p.Files = jsonobject.List(p.Files)
	return json.Marshal(struct {
		plain
		HasMore bool `json:"has_more"`
	}{plain(p), p.HasMore()})
}

// FilePage returns a page of the visible files that match, and their total number. Files stored or deleted between two
// pages shift the following ones; [Store.Files] lists the files of one moment.
func (s *Store) FilePage(ctx context.Context, q FileQuery) (_ FilePage, err error) {
	defer setGoNames[FileQuery](&err)
	q.Limit = cmp.Or(q.Limit, MaxFileLimit)
	if err := checkPage(q.Limit, MaxFileLimit, q.Offset); err != nil {
		return FilePage{}, err
	}
	files, order, err := q.checked()
	if err != nil {
		return FilePage{}, err
	}
	p := FilePage{Offset: q.Offset, Limit: q.Limit}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		rows, err := files.Rows(tx, v, order)
		if err != nil {
			return err
		}
		p.Total = len(rows)
		rows = rows[min(q.Offset, len(rows)):]
		p.Files, err = s.loadInOrder(tx, v, rows[:min(q.Limit, len(rows))])
		return err
	})
	return p, err
}

// loadInOrder returns the files of these rows that exist and are visible, in the order of the rows.
func (s *shared) loadInOrder(tx db.Tx, v viewer, rows []int64) ([]File, error) {
	found, err := s.loadFiles(tx, v, `f.id IN `+db.Integers, db.List(rows))
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	slices.SortFunc(found, func(a, b storedFile) int { return place[a.row] - place[b.row] })
	files := []File{}
	for _, f := range found {
		files = append(files, f.File)
	}
	return files, err
}

// FileUpdate describes a change of a file's details. Fields that are not set change nothing.
type FileUpdate struct {
	Filename    *string  // the new name, kept as CleanFilename leaves it
	Description *string  // the new description
	Category    *string  // the new category
	Tags        []string // the new tags; nil keeps the current ones, a non-nil empty slice removes them

	// MemoryID links the file to this memory instead of the current one; the file then is in its project. Empty unlinks
	// the file, which stays in that project. Nil keeps the link.
	MemoryID *string

	// Project moves a file that is linked to no memory, or is being unlinked, to a project; the zero value moves it out of
	// its project. An unknown project is created. Nil keeps the project.
	Project *ProjectRef
}

// UpdateFile changes a file's details and returns it. Only its owner can move it to another project, directly or by a
// link; in another user's project it then belongs to that project.
func (s *Store) UpdateFile(ctx context.Context, id string, u FileUpdate) (_ File, err error) {
	defer setGoNames[FileUpdate](&err, "file_id", "id")
	if err := u.check(); err != nil {
		return File{}, err
	}
	if err := s.rewriteFileUpdate(ctx, &u); err != nil {
		return File{}, err
	}
	var changed storedFile
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		before, err := s.fileForWriting(tx, v, id)
		if err != nil {
			return err
		}
		after := before
		u.describe(&after.File)
		if err := s.relink(tx, &v, u, before, &after); err != nil {
			return err
		}
		if changed = before; reflect.DeepEqual(after, before) {
			return nil
		}
		now, err := recency.OfChange(tx, s.now(), before.UpdatedAt)
		if err != nil {
			return err
		}
		details := kernel.FileDetails{Name: after.Filename, Description: after.Description, Category: after.Category}
		if err := kernel.UpdateFile(tx, before.row, details, after.memory, after.project, now); err != nil {
			return err
		}
		if after.project != before.project {
			owner, err := kernel.OwnerOfProject(tx, v, after.project)
			if err == nil {
				err = s.writing().GiveFile(tx, v, owner, before.row)
			}
			if err != nil {
				return err
			}
		}
		if !slices.Equal(after.Tags, before.Tags) {
			if err := kernel.ReplaceFileTags(tx, before.row, after.Tags); err != nil {
				return err
			}
		}
		changed, err = s.file(tx, v, id)
		return err
	})
	s.wakeTexts(ctx)
	return changed.File, err
}

// check validates the change and brings the tags to their stored form.
func (u *FileUpdate) check() error {
	if u.Description != nil {
		if err := valid.Description(*u.Description); err != nil {
			return err
		}
	}
	if u.Category != nil {
		if err := valid.Category(*u.Category); err != nil {
			return err
		}
	}
	if u.Project != nil {
		if u.MemoryID != nil && *u.MemoryID != "" {
			return linkedAndPlaced()
		}
		if err := valid.Project(u.Project.ID, u.Project.Name); err != nil {
			return err
		}
	}
	if u.Tags == nil {
		return nil
	}
	tags, err := valid.Tags(u.Tags, MaxTags)
	u.Tags = append([]string{}, tags...)
	return err
}

// describe applies the changes that depend on nothing else.
func (u FileUpdate) describe(f *File) {
	if u.Filename != nil {
		f.Filename = CleanFilename(*u.Filename)
	}
	if u.Description != nil {
		f.Description = *u.Description
	}
	if u.Category != nil {
		f.Category = *u.Category
	}
	if u.Tags != nil && !slices.Equal(u.Tags, f.Tags) {
		f.Tags = u.Tags
	}
}

// relink applies the changes of the file's memory and project.
func (s *Store) relink(tx db.Tx, v *viewer, u FileUpdate, before storedFile, after *storedFile) error {
	switch {
	case u.MemoryID != nil && *u.MemoryID != "":
		m, err := arrival.MemoryToLink(tx, *v, *u.MemoryID)
		if err != nil {
			return err
		}
		after.memory, after.project = m.Row, m.ProjectRow
	case u.MemoryID != nil:
		after.memory = 0
	}
	if u.Project != nil {
		if after.memory != 0 {
			return invalid("project_id",
				"file %s is linked to a memory and is in its project; move the memory, or unlink the file", show(before.ID))
		}
		var err error
		if after.project, err = s.writing().ProjectForWrite(tx, v, u.Project.ID, u.Project.Name); err != nil {
			return err
		}
	}
	if after.project != before.project && before.Owner != s.access.User {
		return newError(KindForbidden, "file_id", "file %s belongs to %s; only its owner can move it to another project",
			show(before.ID), kernel.UserName(tx, *v, before.Owner))
	}
	return nil
}

// storedFile is a file with its rows.
type storedFile struct {
	File
	row      int64
	memory   int64         // 0 for none
	project  int64         // it is in; 0 for none
	writable bool          // the caller may change it
	key      *keyring.File // of its content; nil: the content is not sealed
	shut     error         // why its key cannot open its content
}

// file returns a visible file by id.
func (s *Store) file(tx db.Tx, v viewer, id string) (storedFile, error) {
	found, err := s.loadFiles(tx, v, `f.uid IN (?, ?) ORDER BY f.uid = ? DESC`, id, valid.CanonicalID(id), id)
	if err != nil {
		return storedFile{}, err
	}
	if len(found) == 0 {
		return storedFile{}, newError(KindNotFound, "file_id", "{} %s not found, or you have no access to it", show(id))
	}
	return found[0], nil
}

// fileForWriting returns a file that the caller may change: an invisible one is ErrNotFound, a read-only one
// ErrForbidden.
func (s *Store) fileForWriting(tx db.Tx, v viewer, id string) (storedFile, error) {
	f, err := s.file(tx, v, id)
	if err == nil && !f.writable {
		err = kernel.SharedReadOnly(tx, v, "file_id", "file", id, f.Owner)
	}
	return f, err
}

// filesOf returns the files of some memories (rows), the newest of each first. Memories without a visible file are left
// out.
func (s *Store) filesOf(tx db.Tx, v viewer, memories []int64) (map[int64][]File, error) {
	if len(memories) == 0 {
		return nil, nil
	}
	found, err := s.loadFiles(tx, v, `f.memory_id IN `+db.Integers+` ORDER BY f.created_at DESC, f.uid`, db.List(memories))
	if err != nil {
		return nil, err
	}
	files := map[int64][]File{}
	for _, f := range found {
		files[f.memory] = append(files[f.memory], f.File)
	}
	return files, nil
}

// loadFiles reads the visible files that satisfy a condition, as [kernel.LoadFiles] does.
func (s *shared) loadFiles(tx db.Tx, v viewer, condition string, args ...any) ([]storedFile, error) {
	found, err := kernel.LoadFiles(tx, v, condition, args...)
	files := make([]storedFile, len(found))
	for i, k := range found {
		f := &files[i]
		*f = storedFile{row: k.Row, memory: k.Memory, project: k.Project, writable: k.Writable,
			File: File{ID: k.ID, MemoryID: k.MemoryID, Filename: k.Name, MIMEType: k.Type, Size: k.Size,
				Description: k.Description, Tags: k.Tags, Category: k.Category, Owner: k.Owner, ProjectID: k.ProjectID,
				CreatedAt: kernel.ToTime(k.Created), UpdatedAt: kernel.ToTime(k.Updated),
				Text: fileText(filetext.StatusOf(k.TextState, k.TextInfo))}}
		if err == nil {
			var sum []byte
			f.key, sum, f.shut, err = s.ring.Look(tx.Context(), k.Record)
			f.SHA256 = hex.EncodeToString(sum)
		}
	}
	return files, err
}

// CleanFilename returns a name under which a file can be stored on any system: without folders (with either separator),
// control characters, characters that change the writing direction, and anything that Windows reserves; in Unicode's
// normalization form C; at most 255 bytes, keeping the extension. A name with nothing left becomes "file". Cleaning a
// clean name changes nothing.
func CleanFilename(name string) string { return cmp.Or(filetype.CleanFilename(name), "file") }

// DeleteFile deletes a file. It goes to the trash, from which [Trash.Restore] restores it under its id, unless
// Options.KeepTrash turns the trash off. With Erase it is erased, which only the owner of its place may do; for others
// who may write there it is ErrForbidden.
func (s *Store) DeleteFile(ctx context.Context, id string, options *DeletionOptions) (err error) {
	defer setGoNames[struct{}](&err, "file_id", "id")
	ctx = db.Freeing(ctx)
	if options.orDefault().Erase {
		return s.eraseFile(ctx, id)
	}
	if s.options.KeepTrash < 0 {
		return s.removeStoredFile(ctx, id, func(db.Tx, viewer, storedFile) error { return nil })
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		f, err := s.fileForWriting(tx, v, id)
		if err != nil {
			return err
		}
		return s.newTrasher(tx, v, trash.FullPortion()).File(f.trashed())
	})
}

// trashed returns the file as the trash takes it.
func (f storedFile) trashed() trash.File {
	return trash.File{Row: f.row, Project: f.project, ID: f.ID, Filename: f.Filename, Size: f.Size}
}

// removeStoredFile deletes a file for good, if allowed permits it. The bytes of a large one are removed in several
// transactions, so that others can write in between.
func (s *Store) removeStoredFile(ctx context.Context, id string, allowed func(db.Tx, viewer, storedFile) error) error {
	ctx = db.Freeing(ctx)
	var f storedFile
	err := s.write(ctx, func(tx db.Tx, v viewer) (err error) {
		if f, err = s.fileForWriting(tx, v, id); err != nil {
			return err
		}
		if err := allowed(tx, v, f); err != nil {
			return err
		}
		return trash.RemoveFile(tx, f.row, f.ID)
	})
	if err != nil || f.Size <= (kernel.DeleteBatch-1)*kernel.ChunkSize {
		return err
	}
	if err := kernel.RemoveFile(context.WithoutCancel(ctx), s.db, f.row); err != nil {
		s.log.WarnContext(ctx, "could not remove the bytes of a deleted file yet", "file", id, "error", err)
	}
	return nil
}

func (s *Store) eraseFile(ctx context.Context, id string) error {
	err := s.removeStoredFile(ctx, id, func(tx db.Tx, v viewer, f storedFile) error {
		owner, err := trash.OwnerOfFile(tx, f.row)
		if err == nil && owner != v.User {
			err = newError(KindForbidden, "file_id",
				"file %s belongs to another user, who alone can erase it; without Erase it goes to the trash", show(id))
		}
		return err
	})
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}
