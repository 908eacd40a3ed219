package filetype

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// MaxFilename is the maximum length of a name in bytes, the limit of file systems.
	MaxFilename  = 255
	maxExtension = 32 // bytes kept as an extension when a name is cut, with its dot
)

// reservedNames are names of devices on Windows, with any extension:
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
var reservedNames = []string{
	"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9", "conin$", "conout$",
	"com¹", "com²", "com³", "lpt¹", "lpt²", "lpt³",
}

// CleanFilename returns a name that is safe to store on any system; "" if nothing is left. See CleanFilename of
// the root package.
func CleanFilename(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = norm.NFC.String(strings.Map(keptRune, strings.ToValidUTF8(name, "_")))
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = cutFilename(trimFilename(name)) // which can turn a long name into a reserved one
	stem, _, _ := strings.Cut(name, ".")
	if slices.Contains(reservedNames, strings.ToLower(strings.TrimSpace(stem))) {
		name = "_" + name
	}
	return cutFilename(name)
}

// keptRune drops characters that are invisible, or that change the apparent order of others.
func keptRune(r rune) rune {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Noncharacter_Code_Point, r),
		strings.ContainsRune("\u00ad\u180e\u200b\u2028\u2029\u2060\ufeff", r):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// trimFilename drops spaces at both ends and dots at the end, which Windows does not keep.
func trimFilename(name string) string {
	return strings.TrimLeft(strings.TrimRight(name, " ."), " ")
}

// cutFilename shortens a name to the limit of file systems; the extension stays.
func cutFilename(name string) string {
	if len(name) <= MaxFilename {
		return name
	}
	extension := path.Ext(name)
	if len(extension) > maxExtension {
		extension = ""
	}
	stem := name[:MaxFilename-len(extension)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return trimFilename(trimFilename(stem) + extension)
}
