#!/usr/bin/env bash
# Schemathesis against the server: valid and invalid requests made from /openapi.json, with each answer compared with
# the document; first as an admin, then with a token of minimal access. Afterwards the log must have no server error,
# no panic and no token, and the file must be intact.
#
#   e2e/schemathesis.sh [--short] [SCHEMATHESIS-FLAG...]
#
# The short form takes about a minute and sends the same requests each time, except for ids and times from the server.
# The full one takes about five, and Schemathesis prints its seed at the end; repeat it with --seed. It needs Go, curl,
# Python 3.10 or later with venv, and PyPI.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

# The length of a run: the full form ends after a time, the short one after a number of examples. A run limited by time
# would not be repeatable.
how=(--max-examples 300 --generation-database none) everything=(--max-time 240) tokens=(--max-time 30) refused=(--max-time 45)
if [[ ${1-} == --short ]]; then
	how=(--max-examples 20 --generation-deterministic) everything=() tokens=() refused=() # no seed: it follows from the examples
	shift
fi

need python3
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$root/e2e/requirements.txt"
start_server --max-file 1MiB

# run_as TOKEN [FLAG...] runs all checks except those that the configuration excludes.
run_as() {
	local token=$1
	shift
	(
		cd "$work"
		./venv/bin/schemathesis --config-file "$root/e2e/schemathesis.toml" run "$url/openapi.json" \
			--header "Authorization: Bearer $token" "${how[@]}" \
			--request-timeout 20 --no-color --suppress-health-check all --continue-on-failure "$@"
	)
}

# Tokens are deleted in a separate run, with an expendable token: every listed token is deleted, and all later requests
# would get 401.
run_as "$admin" "${everything[@]}" --exclude-operation-id delete_api_mcp_tokens_id "$@"
spare=$("$souvenir" token add --db "$db" --user ben --name spare --scope memory:read,memory:write,account)
run_as "$spare" "${tokens[@]}" --include-path-regex '^/api/mcp-tokens' "$@"
# Its requests are refused on purpose, so the check of accepted data does not apply.
run_as "$limited" "${refused[@]}" --phases coverage,fuzzing --exclude-checks positive_data_acceptance "$@"

if [[ $(curl --silent --output /dev/null --write-out '%{http_code}' -H "Authorization: Bearer $admin" "$url/api/projects") != 200 ]]; then
	echo "the admin's token ended on the way, so that little was reached" >&2
	exit 1
fi
stop_server
check_log
awk 'match($0, /route="[^"]+"/) { route = substr($0, RSTART + 7, RLENGTH - 8); match($0, /status=[0-9]+/); n[substr($0, RSTART + 7, RLENGTH - 7)]++ }
	END { printf "answers by status:"; for (s in n) printf " %s: %d", s, n[s]; print "" }' "$work/server.log"
echo "the server ended in good order, its file is sound, and its log clean"
