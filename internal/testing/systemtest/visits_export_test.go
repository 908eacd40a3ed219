package systemtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// exportVisits: a user's view exports what the user owns, and imports nothing.
var exportVisits = map[string]func(v visit){
	"Export": func(v visit) {
		var out bytes.Buffer
		summary, err := v.view.Upkeep().Export(v.Context(), &out, &ExportOptions{Credentials: true})
		if !errors.Is(err, ErrForbidden) || out.Len() > 0 || summary.Counts != nil {
			v.Errorf("Export with credentials gives %+v, %v and writes %d bytes, want ErrForbidden and nothing written",
				summary, err, out.Len())
		}
		summary, err = v.view.Upkeep().Export(v.Context(), &out, nil)
		v.check("Export", out.String(), err)
		if v.access.Projects != nil {
			if !errors.Is(err, ErrForbidden) || out.Len() > 0 || summary.Counts != nil {
				v.Errorf("Export gives %+v, %v and writes %d bytes, want ErrForbidden and nothing written", summary, err,
					out.Len())
			}
			return
		}
		if err != nil {
			v.Errorf("Export gives %v", err)
		}
		for line := range strings.Lines(out.String()) {
			var written struct{ Type, ID, Owner, User string }
			if err := json.Unmarshal([]byte(line), &written); err != nil {
				v.Error(err)
			}
			if whose := cmp.Or(written.Owner, written.User, v.access.User); whose != v.access.User ||
				written.Type == transfer.KindUser &&
					written.ID != whose {
				v.Errorf("Export writes data of %s: %s, want the visitor's alone", whose, line)
			}
		}
	},
	"Import": func(v visit) {
		before := rowsOf(v.T, v.n.store)
		_, err := v.view.Upkeep().Import(v.Context(),
			strings.NewReader(byHand(`{"type":"memory","content":"brought in","owner":"alice"}`)), nil)
		v.check("Import", nil, err)
		if !errors.Is(err, ErrForbidden) || rowsOf(v.T, v.n.store) != before {
			v.Errorf("Import gives %v, want ErrForbidden and no change", err)
		}
	},
}
