package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// FileDetails are the texts in a file's row.
type FileDetails struct{ Name, Type, Description, Category string }

// SealedFile has the arguments for the details of a file.
type SealedFile struct{ Name, Type, Description, Category any }

// Seal seals the details for the owner of the file, a row in the users; see [sealedrows.SealText].
func (d FileDetails) Seal(tx db.Tx, owner int64) (sealed SealedFile, err error) {
	for _, text := range []struct {
		column sealedrows.SealedColumn
		plain  string
		to     *any
	}{
		{sealedrows.FileName, d.Name, &sealed.Name}, {sealedrows.FileType, d.Type, &sealed.Type},
		{sealedrows.FileDescription, d.Description, &sealed.Description},
		{sealedrows.FileCategory, d.Category, &sealed.Category},
	} {
		if *text.to, err = sealedrows.SealText(tx, owner, text.column, text.plain); err != nil {
			return sealed, err
		}
	}
	return sealed, nil
}

// SealFile is [FileDetails.Seal] for the present owner of a file.
func SealFile(tx db.Tx, file int64, d FileDetails) (sealed SealedFile, err error) {
	owner, err := ownerOfFile(tx, file)
	if err != nil {
		return sealed, err
	}
	return d.Seal(tx, owner)
}

// UpdateFile stores the details of a file, and the memory or the project that it is in; 0: none.
func UpdateFile(tx db.Tx, file int64, d FileDetails, memory, project, now int64) error {
	sealed, err := SealFile(tx, file, d)
	if err != nil {
		return err
	}
	if memory != 0 {
		project = 0 // its memory's
	}
	_, err = tx.Exec(`UPDATE file SET filename = ?, description = ?, category = ?, memory_id = ?, project_id = ?, `+
		`updated_at = ? WHERE id = ?`, sealed.Name, sealed.Description, sealed.Category, db.OrNull(memory),
		db.OrNull(project), now, file)
	return err
}

// SealTextOf returns the arguments for the details of a file's text, and for the places in it.
func SealTextOf(tx db.Tx, file int64, info, places string) (sealedInfo, sealedPlaces any, err error) {
	owner, err := ownerOfFile(tx, file)
	if err != nil {
		return nil, nil, err
	}
	return sealTextOf(tx, owner, info, places)
}

func sealTextOf(tx db.Tx, owner int64, info, places string) (sealedInfo, sealedPlaces any, err error) {
	if sealedInfo, err = sealedrows.SealText(tx, owner, sealedrows.FileInfo, info); err == nil {
		sealedPlaces, err = sealedrows.SealText(tx, owner, sealedrows.FilePlaces, places)
	}
	return sealedInfo, sealedPlaces, err
}

// ownerOfFile returns the owner of a file, a row in the users; 0 in a store without user keys.
func ownerOfFile(tx db.Tx, file int64) (owner int64, err error) {
	if !sealedrows.Seals(tx) {
		return 0, nil
	}
	err = tx.QueryRow(`SELECT owner_id FROM file WHERE id = ?`, file).Scan(&owner)
	return owner, err
}

// KeyGiver seals the keys of files again, before they belong to another owner.
type KeyGiver interface {
	Give(tx db.Tx, owner int64, condition string, args ...any) error
}

// GiveFiles gives an owner the files of other owners for which a condition on the table holds: their keys and rows are
// sealed for the new owner. It returns their size, and whether there are any.
func GiveFiles(tx db.Tx, owner int64, keys KeyGiver, condition string, arg any) (size int64, given bool, err error) {
	err = tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE owner_id <> ? AND `+condition, owner,
		arg).Scan(&size)
	if err == nil {
		err = keys.Give(tx, owner, condition, arg)
	}
	if err == nil {
		err = sealForOwner(tx, owner, condition, arg)
	}
	if err != nil {
		return 0, false, err
	}
	moved, err := tx.Exec(`UPDATE file SET owner_id = ? WHERE owner_id <> ? AND `+condition, owner, owner, arg)
	return size, moved.RowsAffected > 0, err
}

// sealForOwner seals the rows of files of other owners for which a condition holds.
func sealForOwner(tx db.Tx, owner int64, condition string, arg any) error {
	if !sealedrows.Seals(tx) {
		return nil
	}
	type file struct {
		row          int64
		info, places string
		FileDetails
	}
	var all []file
	err := tx.Each(func(row db.Rows) error {
		var f file
		err := row.Scan(&f.row, &f.info, &f.places, &f.Name, &f.Type, &f.Description, &f.Category)
		all = append(all, f)
		return err
	}, `SELECT id, text_info, text_places, filename, mime_type, description, category FROM file
		WHERE owner_id <> ? AND `+condition,
		owner, arg)
	if err != nil {
		return err
	}
	for _, f := range all {
		sealed, err := f.Seal(tx, owner)
		if err != nil {
			return err
		}
		info, places, err := sealTextOf(tx, owner, f.info, f.places)
		if err != nil {
			return err
		}
		tags, err := db.Column[string](tx, `SELECT tag FROM file_tag WHERE file_id = ? ORDER BY position`, f.row)
		if err != nil {
			return err
		}
		if err := replaceFileTags(tx, owner, f.row, tags); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE file SET text_info = ?, text_places = ?, filename = ?, mime_type = ?, description = ?,
			category = ? WHERE id = ?`, info, places, sealed.Name, sealed.Type, sealed.Description, sealed.Category,
			f.row); err != nil {
			return err
		}
	}
	return nil
}
