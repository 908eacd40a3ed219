package postgres

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	parentRow = `INSERT INTO memory (id, content) VALUES (?, ?)`
	childRow  = `INSERT INTO memory_tag (memory_id, tag) VALUES (?, ?)`
	countRow  = `INSERT INTO counted (id, n) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET n = excluded.n`
	apartRow  = `INSERT INTO counted (n, id) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET n = excluded.n`
	otherWork = `UPDATE setting SET value = 1`
)

// queued returns what Queue keeps of statements, each given as its text and arguments.
func queued(t *testing.T, all [][]any) (waiting []pending) {
	t.Helper()
	s := newStatements(10)
	for _, one := range all {
		query := one[0].(string)
		given, types, err := values(query, one[1:])
		if err != nil {
			t.Fatal(err)
		}
		p := pending{text: query}
		if shape := s.insertOf(query); shape != nil {
			p.row = &newRow{shape, given, types}
		}
		waiting = append(waiting, p)
	}
	return waiting
}

var tableOf = regexp.MustCompile(`^(?:INSERT INTO|UPDATE) (\w+)`)

// A row may move before another one only if neither refers to the other, and no statement writes a row twice.
func TestQueuedRowsAreMergedWhereTheirOrderDoesNotMatter(t *testing.T) {
	for name, c := range map[string]struct {
		queue [][]any
		want  string // the tables, each with the number of rows of its statement
	}{
		"rows of two shapes": {[][]any{{childRow, 1, "a"}, {countRow, 1, 1}, {childRow, 1, "b"}, {countRow, 2, 1}},
			"memory_tag 2, counted 2"},
		"a new parent after rows of others": {[][]any{{childRow, 1, "a"}, {parentRow, 2, "x"}, {childRow, 2, "a"},
			{parentRow, 3, "y"}, {childRow, 3, "b"}},
			"memory_tag 1, memory 2, memory_tag 2"},
		"one row twice in an ON CONFLICT": {[][]any{{countRow, 1, 1}, {countRow, 2, 1}, {countRow, 1, 2}},
			"counted 2, counted 1"},
		"one row twice, in bytes": {[][]any{{countRow, []byte("k"), 1}, {countRow, []byte("k"), 2}},
			"counted 1, counted 1"},
		"a conflict by another column than the first": {[][]any{{apartRow, 1, 1}, {apartRow, 2, 1}},
			"counted 1, counted 1"},
		"a column of two types": {[][]any{{childRow, 1, "a"}, {childRow, 1, 2}},
			"memory_tag 1, memory_tag 1"},
		"NULL beside values": {[][]any{{childRow, 1, nil}, {childRow, 1, "b"}},
			"memory_tag 2"},
		"NULLs alone": {[][]any{{childRow, nil, nil}, {childRow, nil, nil}},
			"memory_tag 1, memory_tag 1"},
		"another statement between": {[][]any{{childRow, 1, "a"}, {otherWork}, {childRow, 1, "b"}, {childRow, 1, "c"}},
			"memory_tag 1, setting 1, memory_tag 2"},
	} {
		var got []string
		for _, p := range merged(queued(t, c.queue)) {
			rows := 1
			if strings.Contains(p.text, "unnest") {
				rows = reflect.ValueOf(p.args[0]).Len()
			}
			got = append(got, fmt.Sprint(tableOf.FindStringSubmatch(p.text)[1], " ", rows))
		}
		if !slices.Equal(got, strings.Split(c.want, ", ")) {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, ", "), c.want)
		}
	}
}
