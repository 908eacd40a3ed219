package sqlite

// Each runs a query and calls fn for each of its rows, until fn returns an error.
func (tx *Tx) Each(fn func(*Rows) error, query string, args ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Column runs a query of one column and returns its values.
func Column[T any](tx *Tx, query string, args ...any) ([]T, error) {
	var values []T
	err := tx.Each(func(row *Rows) error {
		var v T
		err := row.Scan(&v)
		values = append(values, v)
		return err
	}, query, args...)
	return values, err
}

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }
