package souvenir

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// checkFiles reads all bytes of all files and compares them with their hashes.
func (in *inspection) checkFiles() error {
	var files []exportFile
	err := in.tx.Each(func(row db.Rows) error {
		var f exportFile
		var tags string
		err := row.Scan(&f.row, &f.id, &f.filename, &f.mimeType, &f.size, &f.sha256, &f.description, &f.category, &f.created, &f.updated, &tags)
		for _, wrong := range []error{
			check.Name("id", f.id), f.check(), checkTime("created_at", f.created), checkTime("updated_at", f.updated), checkStoredTags(tags),
		} {
			if wrong != nil && err == nil {
				in.find(Finding{Table: "file", ID: f.id, Problem: wrong.Error()})
			}
		}
		files = append(files, exportFile{row: f.row, id: f.id, size: f.size, sha256: f.sha256})
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
	if err := in.tx.QueryRow(`SELECT count(*) FROM file_chunk WHERE id >> ? NOT IN (SELECT id FROM file)`, chunkBits).Scan(&strays); err != nil {
		return err
	}
	if strays > 0 {
		in.find(Finding{Table: "file_chunk", Problem: fmt.Sprintf("%d pieces belong to no file", strays), Repairable: true})
		in.repairs.chunks = true
	}
	return nil
}

func (in *inspection) checkChunks(f exportFile) error {
	wrong := func(table, format string, args ...any) {
		in.find(Finding{Table: table, ID: f.id, Problem: fmt.Sprintf(format, args...)})
	}
	whole, size, next := sha256.New(), int64(0), int64(0)
	err := in.tx.Each(func(row db.Rows) error {
		var id int64
		var sum, data []byte
		if err := row.Scan(&id, &sum, &data); err != nil {
			return err
		}
		in.report.Checked["file_chunk"]++
		n := id & (1<<chunkBits - 1)
		if n != next {
			wrong("file_chunk", "piece %d is missing", next)
		}
		if got := sha256.Sum256(data); !bytes.Equal(got[:], sum) {
			wrong("file_chunk", "piece %d is not what was stored: its SHA-256 is another", n)
		}
		whole.Write(data)
		size, next = size+int64(len(data)), n+1
		return nil
	}, `SELECT id, sha256, data FROM file_chunk WHERE id BETWEEN ? AND ? ORDER BY id`, f.row<<chunkBits, (f.row+1)<<chunkBits-1)
	if err != nil {
		return err
	}
	if size != f.size {
		wrong("file", "has %d bytes, %d were stored", size, f.size)
	} else if !bytes.Equal(whole.Sum(nil), f.sha256) {
		wrong("file", "is not what was stored: its SHA-256 is another")
	}
	return nil
}
