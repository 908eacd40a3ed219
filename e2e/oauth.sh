#!/usr/bin/env bash
# Real OAuth and MCP clients against the server, each from the bare address to a tool call. A script that posts the
# pages' forms acts as the person who signs in and authorizes them. Then a real browser does so.
#
#   e2e/oauth.sh [--short]
#
# It takes about half a minute, the short form somewhat less, and both several times as long on a busy machine. It
# needs Go, curl, Node 20 with npm and its registry, and Chromium, which it installs if it can (Debian, as root).
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

short=${1-}

find_browser
install_clients
start_server
(cd "$root" && go build -o "$work/goclients" ./e2e/goclients)

# A second server on the same file, which people on the local network reach by a name and without TLS.
: >"$work/stdout2"
"$souvenir" serve --db "$db" --listen 127.0.0.1:0 --public-url http://memory.test >"$work/stdout2" 2>"$work/server2.log" &
second_pid=$!
trap 'kill -KILL "$second_pid" 2>/dev/null || true; end_all' EXIT
for _ in {1..100}; do
	in_the_house=$(sed -n 's/^listening on //p' "$work/stdout2")
	[[ -z $in_the_house ]] || break
	sleep 0.1
done
if [[ -z $in_the_house ]]; then
	echo "the second server did not start:" >&2
	cat "$work/server2.log" >&2
	exit 1
fi

export SOUVENIR_AT=$url PERSON_NAME=anna PERSON_PASSWORD=$password
CLIENT_ID=team
CLIENT_SECRET=$("$souvenir" client add --db "$db" --user anna --id "$CLIENT_ID" --name Team --redirect-uri https://app.example/callback --json |
	node -pe 'JSON.parse(require("fs").readFileSync(0)).client_secret')
export CLIENT_ID CLIENT_SECRET
failed=
(
	cd "$work"
	status=0
	for client in oauth4webapi sdk client mcp-remote; do
		timeout 240 node "$client.mjs" || { echo "FAILED $client" >&2; status=1; }
	done
	./goclients || { echo "FAILED goclients" >&2; status=1; }
	BROWSER=$browser SOUVENIR_IN_THE_HOUSE=http://memory.test SOUVENIR_IN_THE_HOUSE_AT=$in_the_house \
		timeout 480 node browser.mjs $short || { echo "FAILED browser" >&2; status=1; }
	exit "$status"
) || failed=yes

kill -TERM "$second_pid"
wait "$second_pid" || failed=yes
stop_server || failed=yes
# Neither log may contain a token, a code, a session or an error.
check_log 'eyJ[A-Za-z0-9_-]{20,}|code=' "$work/server.log" "$work/server2.log" || failed=yes
[[ -z $failed ]] || exit 1
echo "all clients were let in; the server ended in good order, its file is sound, and its log clean"
