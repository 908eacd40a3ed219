// Package check decodes the dashboard strictly, with the types that Grafana publishes. It is a module of its own, so
// that nothing else needs them.
package check

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// decoded returns a dashboard without unknown fields, with all that Grafana's types require, and with valid values.
func decoded(content []byte) (dashboard.Dashboard, error) {
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(content); !empty(err) {
		return d, err
	}
	return d, d.Validate()
}

// empty says whether an error is none, or a list without errors, which Grafana's types return, too.
func empty(err error) bool {
	var found cog.BuildErrors
	return err == nil || errors.As(err, &found) && len(found) == 0
}

func TestGrafanasTypesKnowEveryFieldOfTheDashboard(t *testing.T) {
	cog.NewRuntime().RegisterPanelcfgVariant(stat.VariantConfig())
	cog.NewRuntime().RegisterPanelcfgVariant(timeseries.VariantConfig())
	cog.NewRuntime().RegisterDataqueryVariant(prometheus.VariantConfig())
	content, err := os.ReadFile("../souvenir.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := decoded(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 {
		t.Errorf("got %d panels, want at least 20", len(d.Panels))
	}
	// The types must be able to refuse something.
	for right, wrong := range map[string]string{`"schemaVersion"`: `"schemaNumber"`, `"gridPos"`: `"gridPosition"`,
		`"expr"`: `"query"`, `"fiscalYearStartMonth": 0`: `"fiscalYearStartMonth": 12`,
		`"graphMode": "`: `"graphMode": 5, "unknown": "`} {
		changed := strings.Replace(string(content), right, wrong, 1)
		if changed == string(content) {
			t.Errorf("the dashboard has no %s, want it there", right)
		}
		if _, err := decoded([]byte(changed)); err == nil {
			t.Errorf("got no error for %s in place of %s, want one", wrong, right)
		}
	}
}
