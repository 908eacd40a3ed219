// Package params reads the parameters of addresses.
package params

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// timeForm is the form of a time. It is stricter than [time.Parse], which also accepts 9:00 and a comma.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// Time reads a time from a query; zero if missing.
func Time(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	given := query.Get(name)
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || !timeForm.MatchString(given) {
		return time.Time{}, failure.Invalid(name, name+" is "+failure.Quote(given)+
			"; expected a time of RFC 3339, such as 2026-03-01T09:00:00Z")
	}
	return at, nil
}

// Word reads an enumerated word from a query; empty if missing.
func Word[S ~string](query url.Values, name string, allowed ...S) (S, error) {
	given := S(query.Get(name))
	if !query.Has(name) || slices.Contains(allowed, given) {
		return given, nil
	}
	words := make([]string, len(allowed))
	for i, one := range allowed {
		words[i] = string(one)
	}
	return "", failure.Invalid(name, name+" is "+failure.Quote(string(given))+"; expected "+strings.Join(words, ", "))
}

// MaxOffset is the largest offset in a query: every JSON parser and every processor can represent it.
const MaxOffset = 1<<31 - 1

// Number reads a whole number from a query; 0 if missing. An empty one is an error: a value is probably missing.
func Number(query url.Values, name string, least, most int) (int, error) {
	if !query.Has(name) {
		return 0, nil
	}
	given := query.Get(name)
	n, err := strconv.Atoi(given)
	if err != nil || n < least || n > most || given != strconv.Itoa(n) { // +5 and 007 are not JSON numbers
		return 0, failure.Invalid(name, name+" is "+failure.Quote(given)+"; expected a whole number from "+
			strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n, nil
}

// MaxTokenDays is the maximum lifetime of a token, in days.
const MaxTokenDays = 36_500
