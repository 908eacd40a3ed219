package web

import (
	"cmp"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// pageWords returns the functions of the templates.
func pageWords() template.FuncMap {
	return template.FuncMap{
		"ago":     func(t time.Time) string { return Ago(t, time.Now()) },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"full":    func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"day":     Date,
		"clock":   func(t time.Time, zone *time.Location) string { return t.In(zone).Format("15:04") },
		"call":    func(call any, base string) calledAt { return calledAt{call, base} },
		"callrow": func(call any, base string, names bool, zone *time.Location) callRow {
			return callRow{calledAt{call, base}, names, zone}
		},
		"other":  otherThan,
		"places": func(group menuGroup, base string) placesAt { return placesAt{group, base} },
		"pausing": func(p frame, action, field, id, name, next string, since time.Time) pausing {
			if next != "" {
				next = p.Base + next
			}
			return pausing{p.Base, p.CSRF, action, field, id, name, next, !since.IsZero()}
		},
		"scope":      ScopeMeaning,
		"browser":    BrowserName,
		"sentence":   Sentence,
		"count":      Count,
		"thousands":  Thousands,
		"bytes":      Bytes,
		"markdown":   Markdown,
		"htmxConfig": func() string { return htmxConfig },
	}
}

// calledAt is a recorded call for the template of its sentence, with the base of the links in it.
type calledAt struct {
	Call any
	Base string
}

// callRow is a recorded call for the template of its line.
type callRow struct {
	calledAt
	Names bool // with the user's
	Zone  *time.Location
}

// placesAt is a part of the menu for the template of its links.
type placesAt struct {
	menuGroup
	Base string
}

// pausing is a form that pauses a client, or resumes it.
type pausing struct {
	Base, CSRF, Action, Field, ID, Name string

	Next   string // the page to go back to; empty: that of all clients
	Paused bool
}

// Ago returns the distance of a time from now, in words.
func Ago(t, now time.Time) string {
	distance := now.Sub(t).Abs()
	switch {
	case t.IsZero():
		return "never"
	case distance < time.Minute:
		return "just now"
	case t.After(now):
		return "in " + Span(distance)
	}
	return Span(distance) + " ago"
}

// Span formats a duration in one unit, rounded.
func Span(distance time.Duration) string {
	unit, noun := 365*Day, "year"
	switch {
	case distance < time.Hour-time.Minute/2:
		unit, noun = time.Minute, "minute"
	case distance < 2*Day-time.Hour/2:
		unit, noun = time.Hour, "hour"
	case distance < 60*Day:
		unit, noun = Day, "day"
	case distance < 2*365*Day:
		unit, noun = 30*Day, "month"
	}
	return Count(int((distance+unit/2)/unit), noun)
}

// Wait formats the time to wait, rounded up.
func Wait(wait time.Duration) string {
	if wait <= 90*time.Second {
		return Count(Seconds(wait), "second")
	}
	return Count(int((wait+time.Minute-1)/time.Minute), "minute")
}

// Seconds returns whole seconds, rounded up, and at least one.
func Seconds(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}

// Count formats a number with its noun.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay"):
		return Thousands(n) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands formats a number with its digits in groups of three.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bytes formats a size in units of 1,024 bytes.
func Bytes(n int64) string {
	size, unit := float64(n), 0
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return Count(int(n), "byte")
	}
	for size /= 1024; size >= 1024 && unit < len(units)-1; size /= 1024 {
		unit++
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[unit]
}

// ScopeMeaning describes for a person what a scope allows.
func ScopeMeaning(scope souvenir.Scope) string {
	switch scope {
	case souvenir.ScopeMemoryRead:
		return "Read your memories, rules and to-dos"
	case souvenir.ScopeMemoryWrite:
		return "Store, change and delete memories, rules and to-dos"
	case souvenir.ScopeFilesRead:
		return "Read your files"
	case souvenir.ScopeFilesWrite:
		return "Upload, change and delete files"
	case souvenir.ScopeAccount:
		return "Manage your tokens, OAuth clients and project members"
	case souvenir.ScopeAdmin:
		return "Manage users and the whole service"
	}
	return string(scope)
}

// Sentence turns an error message into a sentence.
func Sentence(message string) string {
	message = strings.TrimSpace(message)
	first, size := utf8.DecodeRuneInString(message)
	if size == 0 {
		return message
	}
	message = string(unicode.ToUpper(first)) + message[size:]
	if last, _ := utf8.DecodeLastRuneInString(message); strings.ContainsRune(".!?…。", last) {
		return message
	}
	return message + "."
}

// Day is 24 hours.
const Day = 24 * time.Hour

// BrowserName returns a browser's common name from its User-Agent, which is mostly historical. It helps people to
// recognize their sign-ins, and decides nothing.
func BrowserName(userAgent string) string {
	first := func(names [][2]string) string {
		for _, name := range names {
			if strings.Contains(userAgent, name[0]) {
				return name[1]
			}
		}
		return ""
	}
	// In this order: most browsers also name others.
	browser := first([][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"Chromium/", "Chromium"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	})
	system := first([][2]string{
		{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"CrOS", "ChromeOS"},
		{"Mac OS X", "macOS"}, {"Linux", "Linux"},
	})
	if browser != "" && system != "" {
		return browser + " on " + system
	}
	return cmp.Or(browser, system, Shortened(userAgent), "an unknown browser")
}

// Shortened cuts a text to the length of a line.
func Shortened(text string) string {
	const most = 60
	return shorten.Within(text, most)
}

// maxShownName is the maximum number of visible characters of a name: enough for a name, and too few for a message.
const maxShownName = 60

// ShortName returns a name as pages show it.
func ShortName(name string) string {
	return shorten.After(name, maxShownName)
}

// Date formats the day until which the trash keeps an item.
func Date(t time.Time) string { return t.Format("2 January 2006") }
