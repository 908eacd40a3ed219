package filter

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Files selects the files of a listing. A file must match every field that is set.
type Files struct {
	MemoryID    string
	ProjectID   string
	ProjectName string
	Category    string
	Tags        []string // any of them
	Filename    string   // a part of the name
	MIMEType    string   // text/plain, or image/* for all images
}

// Check validates the fields and brings the tags to their stored form.
func (f *Files) Check() (err error) {
	if err := valid.Project(f.ProjectID, f.ProjectName); err != nil {
		return err
	}
	if err := valid.Category(f.Category); err != nil {
		return err
	}
	if err := valid.UTF8("filename", f.Filename); err != nil {
		return err
	}
	if kind, ok := strings.CutSuffix(f.MIMEType, "/*"); f.MIMEType != "" &&
		(!ok || kind == "" || strings.Contains(kind, "/")) {
		if found, err := valid.MIMEType(f.MIMEType); err != nil || found != f.MIMEType || strings.Contains(found, ";") {
			return fault.Invalid("mime_type",
				"{} is %s; expected a type without parameters, such as text/plain, or image/* for all images",
				fault.Show(f.MIMEType))
		}
	}
	f.Tags, err = valid.Tags(f.Tags, MaxAlternatives)
	return err
}

// Rows returns the rows of the matching files that the viewer can see, in an order (SQL on f).
func (f *Files) Rows(tx db.Tx, v kernel.Viewer, order string) ([]int64, error) {
	condition, args := v.VisibleFile()
	if f.MemoryID != "" {
		memory, memoryArgs := v.Visible()
		condition += ` AND m.uid IN (?, ?) AND ` + memory + v.Alive(`m`)
		args = slices.Concat(args, []any{f.MemoryID, valid.CanonicalID(f.MemoryID)}, memoryArgs)
	}
	if f.ProjectID != "" || f.ProjectName != "" {
		project, err := naming.Find(tx, v, f.ProjectID, f.ProjectName)
		if err != nil || project == nil {
			return nil, err
		}
		condition += ` AND ` + kernel.ProjectOfFile + ` = ?`
		args = append(args, project.Row)
	}
	if len(f.Tags) > 0 {
		tagged, tagArgs, err := FileTagged(tx, v, f.Tags, true)
		if err != nil {
			return nil, err
		}
		condition += ` AND ` + tagged
		args = append(args, tagArgs...)
	}
	if sealedrows.Seals(tx) && (f.Category != "" || f.Filename != "" || f.MIMEType != "") {
		return f.sealedRows(tx, condition, order, args)
	}
	if f.Category != "" {
		condition += ` AND f.category = ?`
		args = append(args, f.Category)
	}
	if f.Filename != "" {
		condition += ` AND ` + db.Within + `(lower(f.filename), lower(?)) > 0`
		args = append(args, f.Filename)
	}
	if f.MIMEType != "" {
		kind := f.kind()
		condition += ` AND substr(f.mime_type || ?, 1, length(?)) = ?`
		args = append(args, ";", kind, kind)
	}
	return db.Column[int64](tx, `SELECT f.id `+kernel.FromFile+` WHERE `+condition+` ORDER BY `+order, args...)
}

// sealedRows completes Rows where names, types and categories are sealed: it opens them for all files that match the
// other conditions.
func (f *Files) sealedRows(tx db.Tx, condition, order string, args []any) (rows []int64, err error) {
	kind := f.kind()
	err = tx.Each(func(row db.Rows) error {
		var id int64
		var filename, mimeType, category string
		err := row.Scan(&id, &filename, &mimeType, &category)
		if (f.Category == "" || category == f.Category) &&
			strings.Contains(db.Lower(filename), db.Lower(f.Filename)) && strings.HasPrefix(mimeType+";", kind) {
			rows = append(rows, id)
		}
		return err
	}, `SELECT f.id, f.filename, f.mime_type, f.category `+kernel.FromFile+` WHERE `+condition+` ORDER BY `+order, args...)
	return rows, err
}

// kind returns the prefix of matching types with ";" appended, since parameters follow a semicolon.
func (f *Files) kind() string {
	kind, all := strings.CutSuffix(f.MIMEType, "*")
	if !all && kind != "" {
		kind += ";"
	}
	return kind
}

// FileTagged returns the condition that a file has one of some tags, without regard to case unless they are exact. It
// has the form of the index on file_tag.
func FileTagged(tx db.Tx, v kernel.Viewer, tags []string, exact bool) (condition string, args []any, err error) {
	owners, err := v.Owners(tx)
	if err != nil {
		return "", nil, err
	}
	has, args, err := sealedrows.HasTag(tx, owners, `t.tag`, tags...)
	if err == nil && exact {
		var forms []string
		forms, err = sealedrows.Forms(tx, sealedrows.Tag, owners, tags...)
		has, args = has+` AND t.tag IN `+db.Texts, append(args, db.List(forms))
	}
	return `f.id IN (SELECT t.file_id FROM file_tag t WHERE ` + has + `)`, args, err
}
