#!/usr/bin/env bash
# Breaks stores on purpose, as docs/reliability.md describes, and prints the counts: power failures, failing disks,
# interrupted migrations, damaged files, files of each older version, and servers killed during calls.
#
#   e2e/faults.sh [POINTS]
#
# POINTS is the number of faults of each kind; the default is 10000. 100 take some minutes. It needs Linux and Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

points=${1:-10000}
export SOUVENIR_LONG_TESTS=1 CGO_ENABLED=0
counted='^ok|histories,|^FAIL|--- |points|crashes|damages|recovered|versions'

SOUVENIR_FAULTS=$points go test -vet=off -timeout 0 -v ./internal/testing/faulttest | grep -E "$counted"
# Each damage is checked, repaired and recovered, so this takes a tenth of the points.
SOUVENIR_FAULTS=$(((points + 9) / 10)) go test -vet=off -timeout 0 -v \
	-run 'NoDamagedFile|RecoverOfAnyDamage|FilesOfEachVersion' ./internal/testing/systemtest | grep -E "$counted" | grep -v -- '--- PASS: .*/'
# Histories are checked with one server and with three.
SOUVENIR_TEST_HISTORIES=$(((points + 1) / 2)) go test -vet=off -timeout 0 -v -run TestHistoriesAreLinearizable \
	./internal/testing/systemtest | grep -E "$counted"
