package souvenir

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// refusedSealed are the methods, besides those of Accounts and Upkeep, that a sealed view refuses.
var refusedSealed = []string{"AddMember", "UpdateMember", "DeleteMember", "InvitedMembers", "Snapshot", "Transaction"}

func TestSealedViewsRefuseWiderAccess(t *testing.T) {
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"), Options{}))
	open := st.Store
	st.Store = open.Sealed()
	refused := slices.Concat(refusedSealed, methodNames(open.Accounts()), methodNames(open.Upkeep()))
	undone := errors.New("undone")
	calls := st.calls()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		var failed error
		called := func(ctx context.Context) error { failed = calls[name](ctx); return undone }
		if slices.Contains(notInTransactions, name) && name != "WaitEmbedded" {
			continue // tested by every other test of views
		}
		// The context of the operator's transaction lends it nothing.
		if err := open.Transaction(t.Context(), called); !errors.Is(err, undone) {
			t.Errorf("the transaction with %s gives %v, want %v", name, err, undone)
		}
		want := slices.Contains(refused, name)
		refusedIn := errors.Is(failed, ErrInvalid) && argumentOf(failed) == "ctx"
		if got := errors.Is(failed, ErrForbidden) || refusedIn; got != want {
			t.Errorf("%s of a sealed view gives %v; refused: got %v, want %v", name, failed, got, want)
		}
		if !want {
			continue
		}
		if err := calls[name](t.Context()); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s of a sealed view gives %v; want ErrForbidden", name, err)
		}
	}
	if err := st.Close(); !errors.Is(err, ErrForbidden) {
		t.Errorf("Close of a sealed view gives %v; want ErrForbidden", err)
	}
	if _, err := open.GetMemory(t.Context(), st.memory); err != nil {
		t.Errorf("afterwards the store is no longer open: %v", err)
	}
}

func argumentOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Argument
	}
	return ""
}

// Every store that a sealed view returns, or that is behind one of its handles, is sealed, and its As only narrows.
func TestResultsOfSealedViewsStaySealed(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "sealed.db"), Options{})
	mine := mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "of ann", ProjectID: "p"})
	other := mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "of ann, elsewhere", ProjectID: "q"})
	mustAdd(t, s.As(Access{User: "bob"}), NewMemory{Content: "of bob"})
	sealed := s.As(Access{User: "ann", Projects: []string{"p"}, ReadOnly: true}).Sealed()

	for method := range reflect.TypeFor[*Store]().Methods() {
		for i := range method.Type.NumOut() {
			out := method.Type.Out(i)
			known := slices.Contains([]string{"As", "Sealed"}, method.Name)
			if out == reflect.TypeFor[*Store]() && !known {
				t.Errorf("%s returns a store; see that it is sealed", method.Name)
			}
			if out.Kind() == reflect.Pointer && out != reflect.TypeFor[*Store]() {
				for inner := range out.Methods() {
					for j := range inner.Type.NumOut() {
						if inner.Type.Out(j) == reflect.TypeFor[*Store]() {
							t.Errorf("%s of %s returns a store", inner.Name, method.Name)
						}
					}
				}
			}
		}
	}
	for name, behind := range map[string]*Store{"Accounts": sealed.Accounts().s, "Upkeep": sealed.Upkeep().s,
		"Insights": sealed.Insights().s, "Trash": sealed.Trash().s, "Conversation": sealed.Conversation("c").store,
		"Sealed": sealed.Sealed(), "As": sealed.As(Access{User: "ann"}),
		"Accounts of a namespace": sealed.Accounts().Namespace("x").s} {
		if !behind.sealed || behind.operator || behind.access.User != "ann" || !behind.access.ReadOnly ||
			!slices.Equal(behind.access.Projects, []string{"p"}) {
			t.Errorf("%s has the store %+v; want it sealed", name, behind.access)
		}
	}
	if n := reflect.TypeFor[Access]().NumField(); n != 5 {
		t.Errorf("Access has %d fields; see that narrowed limits the new one, and count it here, want 5", n)
	}
	for _, c := range []struct {
		access Access
		want   error
	}{
		{Access{}, nil}, {Access{User: "ann", Projects: []string{"p"}}, nil},
		{Access{User: "bob"}, ErrForbidden}, {Access{User: LocalUser}, ErrForbidden},
		{Access{Namespace: "crm"}, ErrForbidden}, {Access{User: "ann", Namespace: "crm"}, ErrForbidden},
		{Access{User: "ann", Projects: []string{"q"}}, ErrForbidden},
		{Access{User: "ann", Projects: []string{"p", "q"}}, ErrForbidden}, {Access{Projects: []string{}}, ErrNotFound},
	} {
		view := sealed.As(c.access)
		if _, err := view.GetMemory(t.Context(), mine.ID); !errors.Is(err, c.want) {
			t.Errorf("As(%+v) of a sealed view reads with %v; want %v", c.access, err, c.want)
		}
		if _, err := view.As(Access{User: "ann"}).GetMemory(t.Context(), other.ID); err == nil {
			t.Errorf("As(%+v) and As again reach another project, want an error", c.access)
		}
		if _, err := view.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: "p"}); err == nil {
			t.Errorf("As(%+v) of a sealed view that is read-only writes, want an error", c.access)
		}
	}
}
