package inspect

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// checkFiles reads all bytes of all files and compares them with their hashes.
func (in *inspection) checkFiles() error {
	var files []transfer.ExportFile
	err := db.Stream(in.tx, func(row db.Rows) error {
		var f transfer.ExportFile
		var tags string
		err := row.Scan(&f.Row, &f.ID, &f.Filename, &f.MIMEType, &f.Size, &f.SHA256, &f.Description, &f.Category, &f.Created,
			&f.Updated, &tags)
		for _, wrong := range []error{
			valid.Name("id", f.ID), f.Check(), valid.Time("created_at", f.Created), valid.Time("updated_at", f.Updated),
			checkStoredTags(tags),
		} {
			if wrong != nil && err == nil {
				in.find(Finding{Table: "file", ID: f.ID, Problem: wrong.Error()})
			}
		}
		files = append(files, transfer.ExportFile{Row: f.Row, ID: f.ID, Size: f.Size, SHA256: f.SHA256})
		return err
	}, `SELECT id, uid, filename, mime_type, size, sha256, description, category, created_at, updated_at,
			coalesce((SELECT string_agg(tag || `+db.Newline+`, '' ORDER BY position) FROM file_tag WHERE file_id = file.id), '')
		FROM file WHERE state IN ('stored', 'trashed') ORDER BY id`)
	if err != nil {
		return err
	}
	for i, f := range files {
		if err := in.checkChunks(f); err != nil {
			return err
		}
		in.progress("files", i+1, len(files))
	}
	in.report.Checked["file"] = len(files)
	var strays int
	if err := in.tx.QueryRow(`SELECT count(*) FROM file_chunk WHERE ` + kernel.FileOf(`id`) +
		` NOT IN (SELECT id FROM file)`).Scan(&strays); err != nil {
		return err
	}
	if strays > 0 {
		in.find(Finding{Table: "file_chunk", Problem: fmt.Sprintf("%d pieces belong to no file", strays), Repairable: true})
		in.repairs.chunks = true
	}
	return nil
}

// checkTexts checks that the texts of files, which searches for documents find, belong to stored files and are in the
// same places.
func (in *inspection) checkTexts() error {
	var astray, lost int
	if err := in.tx.QueryRow(`SELECT (SELECT count(*) FROM (`+filetext.Astray+`) a), (SELECT count(*) FROM (`+
		filetext.Lost+`) l)`).Scan(&astray, &lost); err != nil {
		return err
	}
	in.repairs.files = astray+lost > 0 || len(in.repairs.places) > 0
	if astray > 0 {
		in.find(Finding{Table: "file", Problem: fmt.Sprintf("%d texts of files belong to no file, or are in another place "+
			"than it",
			astray), Repairable: true})
	}
	if lost > 0 {
		in.find(Finding{Table: "file", Problem: fmt.Sprintf("%d files lack their extracted text", lost),
			Repairable: true})
	}
	return nil
}

// checkChunks compares the content of a file with its hashes.
func (in *inspection) checkChunks(f transfer.ExportFile) error {
	wrong := func(table, format string, args ...any) {
		in.find(Finding{Table: table, ID: f.ID, Problem: fmt.Sprintf(format, args...)})
	}
	key, sum, shut, err := in.s.Keys.Look(in.ctx, f.SHA256)
	if err != nil {
		return err
	}
	if shut != nil {
		in.closed(f, shut)
		return nil
	}
	whole, size, next, apart := sha256.New(), int64(0), int64(0), false
	err = db.Stream(in.tx, func(row db.Rows) error {
		var id int64
		var sum, data []byte
		var object string
		if err := row.Scan(&id, &sum, &data, &object); err != nil {
			return err
		}
		in.report.Checked["file_chunk"]++
		n := id & (1<<kernel.ChunkBits - 1)
		if n != next {
			wrong("file_chunk", "piece %d is missing", next)
		}
		if object != "" {
			var read bool
			var err error
			if data, read, err = in.readObject(f.ID, n, object, sum); err != nil {
				return err
			}
			if !read {
				apart, next = true, n+1
				return nil
			}
		}
		if got := sha256.Sum256(data); !bytes.Equal(got[:], sum) {
			wrong("file_chunk", "piece %d differs from what was stored: its SHA-256 does not match", n)
		} else if data, err = key.Open(n, data); err != nil {
			wrong("file_chunk", "piece %d differs from what was sealed, or is another one", n)
		}
		whole.Write(data)
		size, next = size+int64(len(data)), n+1
		return nil
	}, `SELECT id, sha256, data, coalesce(object, '') FROM file_chunk WHERE id BETWEEN ? AND ? ORDER BY id`,
		f.Row<<kernel.ChunkBits, (f.Row+1)<<kernel.ChunkBits-1)
	if err != nil || apart {
		return err
	}
	if size != f.Size {
		wrong("file", "has %d bytes, %d were stored", size, f.Size)
	} else if !bytes.Equal(whole.Sum(nil), sum) {
		wrong("file", "differs from what was stored: its SHA-256 does not match")
	}
	return nil
}

// closed reports a file that cannot be opened with its key.
func (in *inspection) closed(f transfer.ExportFile, cause error) {
	if !errors.Is(cause, keyring.ErrErased) {
		in.find(Finding{Table: "file", ID: f.ID, Problem: "its key differs from what was stored"})
		return
	}
	in.find(Finding{Table: "file", ID: f.ID, Repairable: true, Problem: "its content was erased with its owner's key: " +
		"the store comes from an older backup; a repair removes the file"})
	in.repairs.erased = append(in.repairs.erased, f.Row)
}

// suspect is a chunk whose object is missing or has another content.
type suspect struct {
	file, key string
	chunk     int64
}

// readObject reads the content of a chunk from object storage. If read is false, it failed and recorded that.
func (in *inspection) readObject(file string, chunk int64, key string, sum []byte) (data []byte, read bool, err error) {
	in.report.Checked["file_object"]++
	data, err = in.s.Objects.Content(in.ctx, key, sum)
	switch {
	case errors.Is(err, objects.ErrNone):
		in.unread++
		return nil, false, nil
	case errors.Is(err, objects.ErrDamaged):
		in.suspects = append(in.suspects, suspect{file, key, chunk})
		return nil, false, nil
	}
	return data, err == nil, err
}

// checkSuspects reports damaged objects, unless they were deleted with their file since.
func (in *inspection) checkSuspects() error {
	for _, s := range in.suspects {
		held, err := in.s.Objects.Held(in.ctx, s.key)
		if err != nil {
			return err
		}
		if held {
			in.find(Finding{Table: "file_object", ID: s.file,
				Problem: fmt.Sprintf("piece %d is missing in the object storage, or differs from what was stored", s.chunk)})
		}
	}
	return nil
}

// unheld is the condition that a kept object has no chunk.
const unheld = `state = 'stored' AND NOT EXISTS (SELECT 1 FROM file_chunk k WHERE k.object = file_object.key)`

// checkObjects compares the list of objects with the chunks. It cannot find objects without a row.
func (in *inspection) checkObjects() error {
	var unlisted, unneeded int
	if err := in.tx.QueryRow(`SELECT (SELECT count(*) FROM file_chunk k WHERE k.object IS NOT NULL AND NOT EXISTS
		(SELECT 1 FROM file_object o WHERE o.key = k.object AND o.state = 'stored')),
		(SELECT count(*) FROM file_object WHERE `+unheld+`)`).Scan(&unlisted, &unneeded); err != nil {
		return err
	}
	if unlisted > 0 {
		in.find(Finding{Table: "file_object", Repairable: true,
			Problem: fmt.Sprintf("%d objects with pieces of files are not listed, or listed as deletable", unlisted)})
	}
	if unneeded > 0 {
		in.find(Finding{Table: "file_object", Repairable: true,
			Problem: fmt.Sprintf("%d objects are listed as content of files, but no piece has them", unneeded)})
	}
	in.repairs.objects = unlisted > 0 || unneeded > 0
	if in.unread > 0 {
		in.find(Finding{Table: "file_object", Problem: fmt.Sprintf("%d pieces of files are in an object storage that was "+
			"not given, and were not checked", in.unread)})
	}
	return nil
}
