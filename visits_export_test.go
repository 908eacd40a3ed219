package souvenir

import (
	"bytes"
	"errors"
	"strings"
)

// exportVisits: a view of a user gets nothing of the whole store, and brings nothing in.
var exportVisits = map[string]func(v visit){
	"Export": func(v visit) {
		var out bytes.Buffer
		summary, err := v.view.Export(v.Context(), &out, &ExportOptions{Credentials: true})
		v.check("Export", out.String(), err)
		if !errors.Is(err, ErrForbidden) || out.Len() > 0 || summary.Counts != nil {
			v.Errorf("Export gives %+v, %v and writes %d bytes", summary, err, out.Len())
		}
	},
	"Import": func(v visit) {
		before := rowsOf(v.T, v.n.Store)
		_, err := v.view.Import(v.Context(), strings.NewReader(byHand(`{"type":"memory","content":"brought in","owner":"alice"}`)), nil)
		v.check("Import", nil, err)
		if !errors.Is(err, ErrForbidden) || rowsOf(v.T, v.n.Store) != before {
			v.Errorf("Import gives %v", err)
		}
	},
}
