#!/usr/bin/env bash
# Breaks stores on purpose, as docs/reliability.md describes, and prints the counts: power failures, failing disks,
# interrupted migrations, damaged files, files of each older version, and servers killed during calls.
#
#   e2e/faults.sh [POINTS]
#   e2e/faults.sh --all
#
# POINTS is the number of faults of each kind; the default is 10000. 100 take some minutes. It needs Linux and Go. If
# SOUVENIR_TEST_POSTGRES has the address of a database, histories are also checked there.
#
# --all runs the long form of everything on that page, which takes about two days: these faults, kills on files,
# PostgreSQL and Citus, the long load, two versions side by side, and fuzzing. It goes on after a failure and ends
# non-zero. It needs what those scripts need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1-} == --all ]]; then
	cluster=${CITUS_CLUSTER:-../shared/citus/cluster.sh} work=$(mktemp -d) failed=
	trap '"$cluster" down "$work" >/dev/null; rm -rf "$work"' EXIT
	SOUVENIR_TEST_POSTGRES=$(PORT=$((20000 + RANDOM % 12000)) "$cluster" up "$work")
	export SOUVENIR_TEST_POSTGRES
	for form in faults.sh 'kills.sh file' 'kills.sh postgres' 'kills.sh citus' 'kills.sh soak' rolling.sh 'rolling.sh next' \
		fuzz.sh; do
		echo "== e2e/$form, $(date)"
		# shellcheck disable=SC2086 # a script and its argument
		e2e/$form || failed+=" '$form'"
	done
	[[ -z $failed ]] || echo "failed:$failed" >&2
	[[ -z $failed ]]
	exit
fi

points=${1:-10000}
export SOUVENIR_LONG_TESTS=1 CGO_ENABLED=0
counted='^ok|histories,|^FAIL|--- |points|crashes|damages|recovered|versions'

SOUVENIR_FAULTS=$points go test -vet=off -timeout 0 -v ./internal/testing/faulttest | grep -E "$counted"
# Each damage is checked, repaired and recovered, so this takes about a tenth of the points: a little more, since some
# kinds of damage find nothing to damage.
SOUVENIR_FAULTS=$(((points * 11 + 99) / 100)) go test -vet=off -timeout 0 -v \
	-run 'NoDamagedFile|RecoverOfAnyDamage|FilesOfVersions' ./internal/testing/systemtest | grep -E "$counted" | grep -v -- '--- PASS: .*/'
# Histories are checked with one server and with three.
SOUVENIR_TEST_HISTORIES=$(((points + 1) / 2)) go test -vet=off -timeout 0 -v -run TestHistoriesAreLinearizable \
	./internal/testing/systemtest | grep -E "$counted"
