package server

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
)

// noticeParameter says, in the address of a page, what was done by the form that led there. It chooses a text of notices, and
// is none itself: nobody can have the pages say something by a link.
const noticeParameter = "done"

var notices = map[string]string{
	"restored":              "It is restored.",
	"erased":                "It is erased for good.",
	"emptied":               "The trash is empty, but for what others own.",
	"undone":                "That is taken back.",
	"nothing-to-merge":      "Only one of them is left: there is nothing to merge any more.",
	"nothing-changed":       "Nothing had to be changed: what you chose was so already.",
	"project":               "The project is there. Say below what it is about, or let an agent store into it.",
	"project-deleted":       "The project is deleted, with its memories.",
	"project-trashed":       "The project is deleted, with its memories. It can be restored from the trash.",
	"accepted":              "You are a member of this project. Your agents can use it from now on.",
	"declined":              "The invitation is declined.",
	"blocked":               "The invitation is declined, and its sender is blocked.",
	"unblocked":             "They can send you invitations again.",
	"left":                  "You left the project. What you stored there stays with it.",
	"ticked":                "The to-do is saved.",
	"memory-unchanged":      "Nothing was different, so nothing was changed.",
	"unchanged":             "The text is as it was: there was nothing to save.",
	"signed-out":            "You are signed out.",
	"signed-out-everywhere": "You are signed out everywhere.",
	"profile":               "Your profile is saved.",
	"password":              "Your password is changed. Your other browsers are signed out. Tokens and applications go on, and can be ended below.",
	"password-grants":       "Your password is changed. Your other browsers are signed out and your applications disconnected. Tokens go on.",
	"password-tokens":       "Your password is changed. Your other browsers are signed out and your tokens revoked. Applications go on.",
	"password-all":          "Your password is changed. Your other browsers are signed out, your applications disconnected and your tokens revoked.",
	"linked":                "The account there is linked. You can sign in with it from now on.",
	"unlinked":              "You cannot sign in with that account any more. Browsers that are signed in stay so.",
	"session":               "That browser is signed out.",
	"sessions":              "Your other browsers are signed out.",
	"token":                 "The token is not valid any more.",
	"stopped":               "It is being stopped. What it has done so far stays.",
	"client":                "The client is deactivated. Whoever had let it in is cut off.",
	"application":           "The application is not connected any more.",
	"user-disabled":         "The user is disabled. All sign-ins, tokens and applications of theirs have ended.",
	"user-enabled":          "The user may sign in again.",
	"user-admin":            "The user is an admin now.",
	"user-user":             "The user is no admin any more.",
	"file":                  "The file is stored.",
	"files":                 "The files are stored.",
	"file-deleted":          "The file is deleted.",
	"file-trashed":          "The file is deleted. It can be restored from the trash.",
	"invitation":            "The invitation is taken back. Its link does not work any more.",
}

// done is where a form leads that has done something: a page that says so.
func (s *Server) done(path, notice string) redirect {
	return redirect(s.path(withNotice(path, noticeParameter, notice)))
}

// withNotice is the address of a page that says what was done last, and nothing of what was done before.
func withNotice(path, parameter, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path // paths are this server's own
	}
	query := u.Query()
	query.Del(noticeParameter)
	query.Del(undoParameter)
	query.Set(parameter, value)
	u.RawQuery = query.Encode()
	return u.String()
}

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
