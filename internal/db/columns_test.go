package db_test

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func TestColumnsKeepExpressionsPlacesAndArgumentsInOneOrder(t *testing.T) {
	var id int64
	var name string
	var old bool
	c := db.Columns{
		{SQL: `id`, To: &id},
		{SQL: `coalesce(name, ?)`, To: &name, Args: []any{"none"}},
		{SQL: `age BETWEEN ? AND ?`, To: &old, Args: []any{60, 90}},
	}
	if got, want := c.SQL(), `id, coalesce(name, ?), age BETWEEN ? AND ?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := c.Args(); !slices.Equal(got, []any{"none", 60, 90}) {
		t.Errorf("the arguments are %v, want %v", got, []any{"none", 60, 90})
	}
	if got := c.To(); !slices.Equal(got, []any{&id, &name, &old}) {
		t.Errorf("the places are %v, want those of id, name and old", got)
	}
}
