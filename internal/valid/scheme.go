package valid

import "strings"

// Scheme returns the scheme of the address of a database, in small letters: "x" is that of X://rest. It is "" for the
// path of a file, also with a drive of one letter.
func Scheme(place string) string {
	scheme, _, is := strings.Cut(place, "://")
	if !is || len(scheme) < 2 || strings.ContainsAny(scheme, `/\:.`) {
		return ""
	}
	return strings.ToLower(scheme)
}
