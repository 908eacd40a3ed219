#!/usr/bin/env bash
# The pages in a real browser, without scripts, from the link of the first start on: set-up, invitation, sign-in,
# profile, users; by keyboard alone; wrong input. axe checks each page, in light and dark, wide and on a phone.
#
#   e2e/pages.sh [FOLDER]      leaves screenshots in the folder, if one is named
#
# It takes half a minute, and needs Go, Node 20 with npm and its registry, and Chromium.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

need go node npm
find_browser
shots=${1:+$(realpath -m "$1")}
[[ -z $shots ]] || mkdir -p "$shots"
cp "$root"/e2e/pages/* "$work"
(cd "$work" && npm install --no-package-lock --no-audit --no-fund --loglevel=error >"$work/npm.log" 2>&1) || {
	cat "$work/npm.log" >&2
	exit 1
}
souvenir=$work/souvenir db=$work/souvenir.db
(cd "$root" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir)
# The browser reaches the server by a name and without TLS, where it sends less of the data that distinguishes sites.
serve --public-url http://memory.test
for _ in {1..200}; do
	link=$(grep -o 'http://[^ ]*/setup?invitation=[^ ]*' "$work/server.log" || true)
	[[ -z $link ]] || break
	sleep 0.1
done
(cd "$work" && BROWSER=$browser LISTENING=$url SETUP=$link SHOTS=$shots timeout 480 node pages.mjs)
stop_server
check_log
if [[ $(grep -c 'inv_' "$work/server.log") != 1 ]]; then
	echo "the log has the link of the set-up more than once, or another invitation" >&2
	exit 1
fi
