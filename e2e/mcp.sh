#!/usr/bin/env bash
# Real MCP clients against the server and "souvenir mcp": both TypeScript SDKs, the Go SDK and the command line of the
# Inspector, each in every revision it supports, over HTTP and over streams. Then the protocol's conformance suite.
#
#   e2e/mcp.sh [--short]
#
# After npm's downloads, the short form takes about half a minute, and the full one some minutes. They differ in how
# much the Inspector does. It needs Go, curl, and Node 20 with npm and its registry, from which Node 22 comes.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

short=${1-}
install_clients
start_server --toolsets memory,chatgpt
(cd "$root" && CGO_ENABLED=0 go build -o "$work/gomcp" ./e2e/gomcp)
export PATH=$work/node_modules/.bin:$PATH
if [[ $(node --version) != v22.* ]]; then
	echo "$0: npm did not bring Node 22 but $(node --version)" >&2
	exit 1
fi
export SOUVENIR_AT=$url SOUVENIR=$souvenir DB=$db TOKEN=$admin PERSON_NAME=anna PERSON_PASSWORD=$password
failed=
(
	cd "$work"
	status=0
	timeout 600 node mcp.mjs $short || { echo "FAILED mcp.mjs" >&2; status=1; }
	timeout 300 ./gomcp || { echo "FAILED gomcp" >&2; status=1; }
	timeout 600 node conformance.mjs "$root/e2e/conformance-baseline.txt" || { echo "FAILED conformance.mjs" >&2; status=1; }
	exit "$status"
) || failed=yes

stop_server || failed=yes
# The log must not contain a token or an error.
check_log 'eyJ[A-Za-z0-9_-]{20,}|code=' || failed=yes
[[ -z $failed ]] || exit 1
echo "all clients did everything; the server ended in good order, its file is sound, and its log clean"
