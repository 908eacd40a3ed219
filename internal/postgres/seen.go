package postgres

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A page makes several calls on one snapshot, and each repeats queries of the ones before, such as for permissions. A
// read transaction answers a repeated statement with the same arguments from memory.

// seen caches the rows that a transaction has read.
type seen struct {
	rows map[string]known
	size int    // bytes, about
	next []read // to be read with the next statement; see Ahead

	name  string // of the plan; see ahead.go
	plan  *plan  // nil: there is none
	order []read // what was asked for, each once
	used  map[string]bool
}

func newSeen() *seen { return &seen{rows: map[string]known{}, used: map[string]bool{}} }

// known are the rows of a statement: all of them, or the first most.
type known struct {
	rows [][]driver.Value
	most int // 0: all
}

// get returns the rows of a statement, if they have been read.
func (s *seen) get(key string, most int) (rows [][]driver.Value, ok bool) {
	k, ok := s.rows[key]
	return k.rows, ok && (k.most == 0 || k.most == most)
}

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

// varies matches statements whose result does not depend on the snapshot alone, or that write.
var varies = regexp.MustCompile(`(?i)\b((clock|statement)_timestamp|random|gen_random_uuid|nextval|currval|` +
	`set_config|current_setting|pg_\w+)\s*\(|\b(INSERT|UPDATE|DELETE|MERGE)\b`)

// ofSnapshot are functions that varies would match, and whose result a snapshot decides, until its transaction writes.
var ofSnapshot = regexp.MustCompile(
	`\bpg_(current_snapshot|snapshot_xip|snapshot_xmax|current_xact_id_if_assigned|control_system)\(`)

// isConstant reports whether a query returns the same rows whenever it runs on a snapshot.
func isConstant(query string) bool {
	return kindOf(query) == reads && !varies.MatchString(ofSnapshot.ReplaceAllString(query, "("))
}

// key is different for statements with different texts, arguments or callers.
func (s *seen) key(c *db.Caller, text string, args []any) string {
	who := ""
	if c != nil {
		who = fmt.Sprint(*c)
	}
	key := []byte(who)
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

func (s *seen) keep(key string, rows [][]driver.Value, most int) {
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
	s.rows[key] = known{rows, most}
}
