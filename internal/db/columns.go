package db

import "strings"

// Columns are the columns of a query, each with the destination of its value. A query with many columns lists them this
// way, so that column and destination cannot get out of step.
type Columns []Selected

// Selected is an expression of a query, the arguments that it binds, and a pointer to the destination of its value.
type Selected struct {
	SQL  string
	To   any
	Args []any
}

// SQL returns the expressions as the list that follows SELECT.
func (c Columns) SQL() string {
	expressions := make([]string, len(c))
	for i, s := range c {
		expressions[i] = s.SQL
	}
	return strings.Join(expressions, `, `)
}

// Args returns the arguments of the expressions, in their order.
func (c Columns) Args() []any {
	var all []any
	for _, s := range c {
		all = append(all, s.Args...)
	}
	return all
}

// To returns the destinations of the values, in order, for [Rows.Scan].
func (c Columns) To() []any {
	all := make([]any, len(c))
	for i, s := range c {
		all[i] = s.To
	}
	return all
}
