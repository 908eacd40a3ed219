package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Profile identifies how vectors, and the terms beside them, were made. Only vectors of one profile are compared; a
// file with another profile is embedded and indexed again.
type Profile struct {
	Model      string
	Dimensions int
	Key        string
}

// ProfileOf is the profile of an embedder that takes texts of at most maxInput bytes.
func ProfileOf(model string, dimensions, maxInput int) Profile {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%d\x00%d", model, dimensions, maxInput,
		text.SplitterVersion, text.TermsVersion))
	return Profile{Model: model, Dimensions: dimensions, Key: hex.EncodeToString(sum[:])}
}

// OwnProfile is the profile of vectors that callers supply. Their model is the callers' concern.
func OwnProfile(dimensions int) Profile {
	return Profile{Model: OwnVectors, Dimensions: dimensions, Key: fmt.Sprintf("%s:%d", OwnVectors, dimensions)}
}

// ProfileRow returns the row of a profile, and creates it, as of now, if it is missing.
func ProfileRow(tx db.Tx, p Profile, now int64) (int64, error) {
	rows, err := db.Column[int64](tx, `SELECT id FROM profile WHERE key = ?`, p.Key)
	if err != nil {
		return 0, err
	}
	if len(rows) > 0 {
		return rows[0], nil
	}
	return db.Insert(tx, `INSERT INTO profile (key, model, dimensions, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		p.Key, p.Model, p.Dimensions, now)
}
