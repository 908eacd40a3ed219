#!/usr/bin/env bash
# Schemathesis against the server: requests made from /openapi.json, right and wrong ones, and each answer compared with what
# the document says; first as an admin, then with a token that may hardly do anything. Then the log is read: no server
# error, no panic, no token; and the file is checked.
#
#   e2e/schemathesis.sh [--short] [SCHEMATHESIS-FLAG...]
#
# The short form takes about a minute, the full one some five. It needs Go, curl, Python 3.10 or later with venv, and PyPI.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

schemathesis_version=4.32.5

seconds=240 seconds_tokens=30 seconds_limited=45 examples=300
if [[ ${1-} == --short ]]; then
	seconds=25 seconds_tokens=5 seconds_limited=8 examples=20
	shift
fi

need python3
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$schemathesis_version"
start_server --max-file 1MiB

# run_as TOKEN SECONDS [FLAG...] runs all checks but those that the configuration takes out.
run_as() {
	local token=$1 most=$2
	shift 2
	(
		cd "$work"
		./venv/bin/schemathesis --config-file "$root/e2e/schemathesis.toml" run "$url/openapi.json" \
			--header "Authorization: Bearer $token" --max-examples "$examples" --max-time "$most" \
			--request-timeout 20 --no-color --generation-database none --suppress-health-check all --continue-on-failure "$@"
	)
}

# Tokens are deleted apart, with one that may go: whatever is listed is deleted, and everything behind that would be 401.
run_as "$admin" "$seconds" --exclude-operation-id delete_api_mcp_tokens_id "$@"
spare=$("$souvenir" token add --db "$db" --user ben --name spare)
run_as "$spare" "$seconds_tokens" --include-path-regex '^/api/mcp-tokens' "$@"
# What it is refused is right, so that nothing is said of data that is accepted.
run_as "$limited" "$seconds_limited" --phases coverage,fuzzing --exclude-checks positive_data_acceptance "$@"

if [[ $(curl --silent --output /dev/null --write-out '%{http_code}' -H "Authorization: Bearer $admin" "$url/api/projects") != 200 ]]; then
	echo "the admin's token ended on the way, so that little was reached" >&2
	exit 1
fi
stop_server
check_log
awk 'match($0, /route="[^"]+"/) { route = substr($0, RSTART + 7, RLENGTH - 8); match($0, /status=[0-9]+/); n[substr($0, RSTART + 7, RLENGTH - 7)]++ }
	END { printf "answers by status:"; for (s in n) printf " %s: %d", s, n[s]; print "" }' "$work/server.log"
echo "the server ended in good order, its file is sound, and its log clean"
