#!/usr/bin/env bash
# Makes each call of docs/walks.md once and compares the files that it executed with the lists there: each listed file
# must be among them. Prints how many files each call executed, for the table.
#
#   e2e/walks.sh [-v]      with -v, also the executed files that a list leaves out
#
# It needs Go and Python 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS=-trimpath # as in .ci/run, to share compiled packages
module=$(go list -m)
go build -gcflags="$module/...=-N -l" -cover -covermode=atomic -coverpkg=./... -o "$work/walks" ./e2e/walks
GOCOVERDIR=$work "$work/walks" "$work/counters"
for walk in "$work"/counters/*/; do
	go tool covdata textfmt -i="$walk" -o="$work/$(basename "$walk").txt"
done
python3 - "$work" "$module" "${1-}" <<'PY'
import pathlib, re, sys
work, module, verbose = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "-v"
missing = 0
for part in pathlib.Path("docs/walks.md").read_text().split("\n## How many files")[0].split("\n## ")[1:]:
    name, _, text = part.partition("\n")
    listed = [f for line in re.findall(r"(?m)^\d+\. ([^:]*):", text) for f in re.findall(r"`([^`]+\.go)`", line)]
    lines = (work / (re.sub("[/ ]", "_", name) + ".txt")).read_text().splitlines()[1:]
    ran = {l.split(":")[0].removeprefix(module + "/") for l in lines if not l.endswith(" 0")}
    ran = {f for f in ran if not f.startswith("e2e/")}
    print(f"{name}: {len(ran)} files executed, {len(listed)} listed")
    for f in listed:
        if f not in ran:
            print("  listed, but not executed:", f)
            missing += 1
    if verbose:
        for f in sorted(ran - set(listed)):
            print("  not listed:", f)
sys.exit(missing > 0)
PY
