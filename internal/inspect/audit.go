package inspect

import (
	"context"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
)

// checkAudit checks the chain of the audit log.
func (in *inspection) checkAudit() error {
	report, err := audit.Verify(in.tx, nil)
	if err != nil {
		return err
	}
	in.report.Checked["audit"] = int(report.Entries)
	for _, p := range report.Problems {
		in.find(Finding{Table: "audit", ID: strconv.FormatInt(p.Seq, 10), Problem: p.Problem, Repairable: in.accept})
		if in.repairs.audit = append(in.repairs.audit, p); len(in.repairs.audit) == MaxFindings {
			break
		}
	}
	return nil
}

// acceptAudit records in the audit log that an operator has accepted its problems.
func (s Store) acceptAudit(ctx context.Context, problems []audit.Problem) error {
	e := s.Actor
	e.Action, e.Kind = audit.Accept, "audit"
	return s.DB.Write(ctx, func(tx db.Tx) error {
		return audit.Append(tx, e, audit.Accepted(problems))
	})
}
