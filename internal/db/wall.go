package db

// Caller identifies the user of a transaction and limits what it can see and change.
type Caller struct {
	User     int64   // row of the user, 0 for none
	Limited  bool    // sees data in projects only
	Projects []int64 // rows, when limited
}

// Walled is a Tx whose engine can hide rows that a caller may not see, and protect rows that a caller may not change,
// as a second wall behind the conditions of statements. A transaction begins without a caller: it sees and changes
// everything.
type Walled interface {
	// ActFor sets the caller of the statements that follow, not of those queued before; nil for none. A [Tx.Savepoint]
	// that is undone leaves the caller as it is.
	ActFor(c *Caller)
	// Caller returns the caller, nil for none.
	Caller() *Caller
}

// ActFor sets the caller of a transaction, if its engine has a second wall. [As] also sets back the one before.
func ActFor(tx Tx, c *Caller) {
	if w, ok := Stored(tx).(Walled); ok {
		w.ActFor(c)
	}
}

// As runs fn for a caller, nil for none. Afterwards, the transaction has the caller that it had before.
func As(tx Tx, c *Caller, fn func() error) error {
	w, ok := Stored(tx).(Walled)
	if !ok {
		return fn()
	}
	defer w.ActFor(w.Caller())
	w.ActFor(c)
	return fn()
}

// Beyond runs fn without the second wall: for data that a store keeps for all callers, and for a caller's changes to
// rows of others, such as the count of a quota.
func Beyond(tx Tx, fn func() error) error { return As(tx, nil, fn) }
