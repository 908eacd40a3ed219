package valid

import (
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// The maximum lengths of the names of identities at a provider, in bytes.
const (
	MaxIssuer  = 512
	MaxSubject = 255 // OpenID Connect Core 1.0, section 2
)

const maxDescription = 4096

// Description checks a description; empty is none.
func Description(description string) error {
	if n := utf8.RuneCountInString(description); n > maxDescription {
		return fault.New(fault.KindTooLarge, "description", "{} is %d characters long; at most %d are allowed", n,
			maxDescription)
	}
	return Text("description", description)
}

// Email refuses text that cannot be an address. Only sending mail shows whether the address works.
func Email(email string) error {
	const most = 254 // RFC 5321, section 4.5.3.1.3, within angle brackets
	if email == "" {
		return nil
	}
	if err := Line("email", email, most); err != nil {
		return err
	}
	if local, domain, ok := strings.Cut(email, "@"); !ok || local == "" || domain == "" ||
		strings.ContainsAny(email, " <>,;") {
		return fault.Invalid("email", `{} is %s; expected an address such as "ann@example.com"`, fault.Show(email))
	}
	return nil
}

// Time refuses a time, in microseconds since 1970, that RFC 3339, and so JSON, cannot represent.
func Time(name string, micros int64) error {
	if year := time.UnixMicro(micros).UTC().Year(); year < 0 || year > 9999 {
		return fault.Invalid(name, "{} is in the year %d (UTC); expected a year from 0 to 9999", year)
	}
	return nil
}

// MaxKey is the maximum length of a memory's own key in bytes.
const MaxKey = 512

// Key checks a memory's own key: any text without U+0000 that is not empty and not too long.
func Key(key string) error {
	switch {
	case key == "":
		return fault.Invalid("key", "{} is empty; give the key that the memory is stored under")
	case len(key) > MaxKey:
		return fault.New(fault.KindTooLarge, "key", "{} has %d bytes; at most %d are allowed", len(key), MaxKey)
	}
	return Text("key", key)
}

// Category checks a category; empty is none.
func Category(category string) error {
	if category == "" {
		return nil
	}
	return Word("category", category)
}

// maxType is the maximum length of a type with its parameters in bytes.
const maxType = 255

// MIMEType brings a declared type to its usual form. Empty stays empty.
func MIMEType(declared string) (string, error) {
	if strings.TrimSpace(declared) == "" {
		return "", nil
	}
	mediaType, parameters, err := mime.ParseMediaType(declared)
	kind, subtype, found := strings.Cut(mediaType, "/")
	if err != nil || !found || kind == "" || subtype == "" || len(declared) > maxType {
		return "", fault.Invalid("mime_type",
			`{} is %s; expected a type such as "text/plain" or "image/png", at most %d bytes long`,
			fault.Show(declared), maxType)
	}
	formatted := mime.FormatMediaType(mediaType, parameters)
	if formatted == "" {
		return "", fault.Invalid("mime_type", "{} is %s, which has a parameter that cannot be written",
			fault.Show(declared))
	}
	return formatted, nil
}

// Expiry returns when something expires that is to expire at a time or after a while; the zero time for neither, which
// is never.
func Expiry(at time.Time, in time.Duration, now time.Time) (time.Time, error) {
	switch {
	case in == 0 && at.IsZero():
		return time.Time{}, nil
	case in != 0 && !at.IsZero():
		return time.Time{}, fault.Invalid("expires_at", "{} and {expires_in} are both given; give one of them")
	case in < 0:
		return time.Time{}, fault.Invalid("expires_in", "{} is %s; expected a positive duration, or 0 for never", in)
	case in > 0:
		at = now.Add(in)
	case !at.After(now):
		return time.Time{}, fault.Invalid("expires_at", "{} is %s, which is in the past; it is %s now",
			at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	case at.Year() > 9999: // RFC 3339 ends there
		return time.Time{}, fault.Invalid("expires_at",
			"{} is in the year %d; expected a year up to 9999, or no time for never", at.Year())
	}
	return at.UTC().Truncate(time.Microsecond), nil
}
