package db

// Caller is whom a transaction reads for: what a view of the store can see.
type Caller struct {
	User     int64   // row of the user, 0 for none
	Limited  bool    // sees data in projects only
	Projects []int64 // rows, when limited
}

// Walled is a Tx whose engine can hide rows that a caller may not see, as a second wall under the conditions of
// statements. A transaction begins without a caller, and sees everything.
type Walled interface {
	// ReadFor hides what a caller may not see from the statements that follow; nil hides nothing.
	ReadFor(c *Caller) error
	// Caller returns the caller, nil for none.
	Caller() *Caller
}

// ReadFor sets the caller of a transaction that only reads, if its engine has a second wall. What a writing transaction
// changes may concern others, such as a quota or a rule of a project: only its conditions decide.
func ReadFor(tx Tx, c *Caller) error {
	w, ok := tx.(Walled)
	if !ok || tx.Writable() {
		return nil
	}
	return w.ReadFor(c)
}

// Beyond runs fn without the second wall, for what a store keeps for all callers.
func Beyond(tx Tx, fn func() error) error {
	w, ok := tx.(Walled)
	if !ok || w.Caller() == nil {
		return fn()
	}
	c := w.Caller()
	if err := w.ReadFor(nil); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return w.ReadFor(c)
}
