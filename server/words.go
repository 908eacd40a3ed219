package server

import (
	"cmp"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
)

// pageWords are the functions that the templates have.
func pageWords() template.FuncMap {
	return template.FuncMap{
		"ago":        func(t time.Time) string { return ago(t, time.Now()) },
		"machine":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"full":       func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"day":        untilDay,
		"scope":      scopeInWords,
		"browser":    browserName,
		"sentence":   sentence,
		"count":      count,
		"thousands":  thousands,
		"bytes":      bytesInWords,
		"markdown":   formatted,
		"htmxConfig": func() string { return htmxConfig },
	}
}

// ago says how far a time lies in the past or the future, as people do.
func ago(t, now time.Time) string {
	distance := now.Sub(t).Abs()
	switch {
	case t.IsZero():
		return "never"
	case distance < time.Minute:
		return "just now"
	case t.After(now):
		return "in " + span(distance)
	}
	return span(distance) + " ago"
}

// span is a length of time in one unit, to the nearest.
func span(distance time.Duration) string {
	unit, noun := 365*day, "year"
	switch {
	case distance < time.Hour-time.Minute/2:
		unit, noun = time.Minute, "minute"
	case distance < 2*day-time.Hour/2:
		unit, noun = time.Hour, "hour"
	case distance < 60*day:
		unit, noun = day, "day"
	case distance < 2*365*day:
		unit, noun = 30*day, "month"
	}
	return count(int((distance+unit/2)/unit), noun)
}

// inWords says how long somebody has to wait, rounded up.
func inWords(wait time.Duration) string {
	if wait <= 90*time.Second {
		return count(seconds(wait), "second")
	}
	return count(int((wait+time.Minute-1)/time.Minute), "minute")
}

// seconds are whole ones, rounded up, and at least one.
func seconds(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}

// count is a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay"):
		return thousands(n) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return thousands(n) + " " + noun + "s"
}

// thousands is a number with its digits in groups of three.
func thousands(n int) string {
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

// bytesInWords is a size as people read it, in units of 1,024 bytes.
func bytesInWords(n int64) string {
	size, unit := float64(n), 0
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return count(int(n), "byte")
	}
	for size /= 1024; size >= 1024 && unit < len(units)-1; size /= 1024 {
		unit++
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[unit]
}

// scopeInWords says to a person what a scope allows.
func scopeInWords(scope souvenir.Scope) string {
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
		return "Manage your tokens, OAuth clients and who shares your projects"
	case souvenir.ScopeAdmin:
		return "Manage users and the whole service"
	}
	return string(scope)
}

// sentence makes a sentence of an error, which is none by itself.
func sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	if size == 0 {
		return message
	}
	message = string(unicode.ToUpper(first)) + message[size:]
	if strings.HasSuffix(message, ".") || strings.HasSuffix(message, "!") || strings.HasSuffix(message, "?") {
		return message
	}
	return message + "."
}

const (
	day = 24 * time.Hour
)

// browserName is what a person would call a browser that says of itself what it does in User-Agent: most of that is
// history. It is for people to tell their sign-ins apart, and nothing is decided by it.
func browserName(userAgent string) string {
	first := func(names [][2]string) string {
		for _, name := range names {
			if strings.Contains(userAgent, name[0]) {
				return name[1]
			}
		}
		return ""
	}
	// In this order: most browsers name others, too.
	browser := first([][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"Chromium/", "Chromium"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	})
	system := first([][2]string{
		{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	})
	if browser != "" && system != "" {
		return browser + " on " + system
	}
	return cmp.Or(browser, system, shortened(userAgent), "a browser without a name")
}

// shortened is a text that fits into a line.
func shortened(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// maxShownName is the most characters of a name that are shown: enough for a name, and too few for a story.
const maxShownName = 60

// shortName is a name as it is shown.
func shortName(name string) string {
	if utf8.RuneCountInString(name) > maxShownName {
		return string([]rune(name)[:maxShownName]) + "…"
	}
	return name
}

// untilDay is the day until which the trash keeps something.
func untilDay(t time.Time) string { return t.UTC().Format("2 January 2006") }
