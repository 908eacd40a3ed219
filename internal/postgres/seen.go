package postgres

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A page is made of several calls on one snapshot, and each asks for much that the ones before have asked for: who may
// see what. A transaction for reading answers a statement that comes again, with the same arguments, by itself.

// seen is what a transaction has read.
type seen struct {
	rows map[string][][]driver.Value
	size int // bytes, about

	name  string // of the plan; see ahead.go
	plan  *plan  // nil: there is none
	order []read // what was asked for, each once
	used  map[string]bool
}

func newSeen() *seen { return &seen{rows: map[string][][]driver.Value{}, used: map[string]bool{}} }

// note remembers a statement for the next plan. Long arguments are not worth it.
func (s *seen) note(key string, st statement, args []any, most int) {
	if s.name == "" || s.used[key] || len(key) > len(st.text)+mostArguments {
		return
	}
	if _, kept := s.rows[key]; kept {
		s.used[key] = true
		s.order = append(s.order, read{key, st, args, most})
	}
}

// mostSeen bounds the bytes that a transaction keeps, mostOfOne those of a statement.
const mostSeen, mostOfOne = 1 << 20, 64 << 10

const mostArguments = 4 << 10

// varies matches statements whose result does not depend on the snapshot alone.
var varies = regexp.MustCompile(
	`(?i)\b((clock|statement)_timestamp|random|gen_random_uuid|nextval|currval|set_config|current_setting|pg_\w+)\s*\(`)

// key is different for statements with different texts, arguments, rows or callers.
func (s *seen) key(c *db.Caller, text string, args []any, most int) string {
	who := ""
	if c != nil {
		who = fmt.Sprint(*c)
	}
	key := []byte(fmt.Sprintf("%s %d", who, most))
	for _, arg := range args {
		key = fmt.Appendf(key, " %T ", arg)
		switch v := arg.(type) {
		case string:
			key = strconv.AppendQuote(key, v)
		case []byte:
			key = fmt.Appendf(key, "%x", v)
		default: // numbers and booleans
			key = fmt.Append(key, v)
		}
	}
	return string(append(append(key, ' '), text...))
}

func (s *seen) keep(key string, rows [][]driver.Value) {
	size := len(key)
	for _, row := range rows {
		size += 24
		for _, value := range row {
			switch v := value.(type) {
			case []byte:
				return // the caller may change it
			case string:
				size += len(v)
			}
			size += 16
		}
	}
	if size > mostOfOne || s.size+size > mostSeen {
		return
	}
	s.size += size
	s.rows[key] = rows
}
