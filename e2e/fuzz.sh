#!/usr/bin/env bash
# Fuzzes each target for a time, one after the other, and prints a table row for each: how many inputs were tried, how
# many reached new code, and whether one failed. docs/reliability.md has the counts.
#
#   e2e/fuzz.sh [-t 10m] [-p WORKERS] [-o FILE] [PATTERN]
#
# PATTERN selects among lines such as "./tools FuzzCall". With -o, rows are also appended to a file, and targets in it
# are skipped, so that an interrupted run can continue. A failing input is kept in the package's testdata. It exits
# nonzero if a target failed. All targets take about ten hours; it needs Go.
#
# SQLite is compiled without instrumentation, which would slow every statement and lead the fuzzer to no code of this
# project. So this script stands in for the compiler, with its own build cache.
set -euo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
if [[ ${1-} == --tool ]]; then
	shift
	args=()
	for arg; do
		[[ $arg == -d=libfuzzer && " $* " == *' -p modernc.org/'* ]] || args+=("$arg")
	done
	exec "${args[@]}"
fi
cd "$(dirname "$script")/.."

time=10m
workers=2
file=/dev/null
while getopts t:p:o: option; do
	case $option in
	t) time=$OPTARG ;;
	p) workers=$OPTARG ;;
	o) file=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $file == /dev/null ]] || touch "$file"
export CGO_ENABLED=0
GOCACHE=${XDG_CACHE_HOME:-$HOME/.cache}/souvenir-fuzz
export GOCACHE
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets() {
	local tests name
	git ls-files '*_test.go' | while read -r tests; do
		for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$tests"); do
			echo "./$(dirname "$tests") $name"
		done
	done | sort
}

# fuzz FOLDER NAME runs a target in its module. It limits the minimization of an input to ten tries: by default the
# fuzzer takes a minute for each, and a target that needs a store tried nine inputs in forty seconds.
fuzz() {
	(cd "$1" && go test -toolexec "$script --tool" -vet=off -run '^$' -fuzz "^$2\$" -fuzztime "$time" \
		-fuzzminimizetime 10x -parallel "$workers" -timeout 0 .)
}

while read -r folder name; do
	grep -qF "| \`$folder\` | \`$name\` |" "$file" && continue
	result=ok
	if ! fuzz "$folder" "$name" >"$log" 2>&1 </dev/null; then
		# The fuzzer occasionally reports its own deadline as a failure.
		if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
			result=FAILED
			status=1
			cat "$log" >&2
		fi
	fi
	last=$(grep -o 'execs: [0-9]*.*new interesting: [0-9]*' "$log" | tail -n 1) || true
	execs=$(sed -E 's/execs: ([0-9]*).*/\1/' <<<"$last")
	kept=$(sed -E 's/.*new interesting: ([0-9]*)/\1/' <<<"$last")
	echo "| \`$folder\` | \`$name\` | $time | ${execs:-0} | ${kept:-0} | $result |" | tee -a "$file"
done < <(targets | grep -E -- "${1-}")
exit "$status"
