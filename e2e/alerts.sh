#!/usr/bin/env bash
# Checks the alerts for Prometheus, runs their tests, and runs them again with each alert in turn left out: the tests
# must notice. It needs promtool, in Debian from the package prometheus; PROMTOOL names another one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../packaging/prometheus"
promtool=${PROMTOOL:-promtool}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$promtool" check rules alerts.yaml
"$promtool" test rules alerts_test.yaml
cp alerts_test.yaml "$work"
for alert in $(sed -n 's/^ *- alert: //p' alerts.yaml); do
	sed "s/- alert: $alert\$/- alert: Another/" alerts.yaml >"$work/alerts.yaml"
	! "$promtool" test rules "$work/alerts_test.yaml" >/dev/null 2>&1 || { echo "no test notices that $alert is gone" >&2; exit 1; }
done
echo "ok: a test fails without each alert"
