package db

import "strings"

// Columns are the columns of a query, each with the place that its value goes to. A query with many columns lists them
// this way, so that none can be added, left out or moved without its place.
type Columns []Selected

// Selected is an expression of a query, the arguments that it binds, and a pointer to where its value goes.
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

// To returns the places of the values, in order, for [Rows.Scan].
func (c Columns) To() []any {
	all := make([]any, len(c))
	for i, s := range c {
		all[i] = s.To
	}
	return all
}
