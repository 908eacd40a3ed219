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

// timeForm is the form of a time that [time.Parse] is not strict about: it takes 9:00 and a comma, too.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// Time reads a time of a query; zero when it is not there.
func Time(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	given := query.Get(name)
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || !timeForm.MatchString(given) {
		return time.Time{}, failure.Invalid(name, name+" is "+failure.Quote(given)+
			"; a time of RFC 3339 is needed, such as 2026-03-01T09:00:00Z")
	}
	return at, nil
}

// Word reads a word of a query that is one of some; empty when it is not there.
func Word[S ~string](query url.Values, name string, allowed ...S) (S, error) {
	given := S(query.Get(name))
	if !query.Has(name) || slices.Contains(allowed, given) {
		return given, nil
	}
	words := make([]string, len(allowed))
	for i, one := range allowed {
		words[i] = string(one)
	}
	return "", failure.Invalid(name, name+" is "+failure.Quote(string(given))+"; allowed are "+strings.Join(words, ", "))
}

// MaxOffset is the largest offset that a query may have: what every program that reads JSON can count to, and every
// processor.
const MaxOffset = 1<<31 - 1

// Number reads a whole number of a query; 0 when it is not there. An empty one is none: what was to be filled in there
// is missing.
func Number(query url.Values, name string, least, most int) (int, error) {
	if !query.Has(name) {
		return 0, nil
	}
	given := query.Get(name)
	n, err := strconv.Atoi(given)
	if err != nil || n < least || n > most || given != strconv.Itoa(n) { // +5 and 007 are no numbers of JSON's
		return 0, failure.Invalid(name, name+" is "+failure.Quote(given)+"; a whole number from "+strconv.Itoa(least)+" to "+
			strconv.Itoa(most)+" is needed")
	}
	return n, nil
}

// MaxTokenDays is the most days for which a token can be made.
const MaxTokenDays = 36_500
