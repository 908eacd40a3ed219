#!/usr/bin/env bash
# Takes the pictures of docs/dashboard.md, from the demonstration, and keeps them in docs/dashboard: light, dark and on
# a phone, as WebP of at most 150 KB. Look at each afterwards. It needs Go, Node 20 with npm and its registry, and
# Chromium with fonts.
#
#   e2e/screenshots.sh
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

need go node npm
find_browser
cp -r "$root"/e2e/dashboard/* "$work"
(cd "$work" && npm install --no-package-lock --no-audit --no-fund --loglevel=error)
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$work/souvenir" ./cmd/souvenir)
"$work/souvenir" demo --no-open --listen 127.0.0.1:0 >"$work/demo" 2>&1 &
server_pid=$!
for _ in {1..200}; do
	link=$(sed -n 's/^ *\(http.*sign-in?key=.*\)$/\1/p' "$work/demo")
	[[ -z $link ]] || break
	sleep 0.1
done
(cd "$work" && BROWSER=$browser LINK=$link FOLDER=$root/docs/dashboard node screenshots.mjs)
kill -TERM "$server_pid" # it deletes its store
wait "$server_pid" || true
server_pid=
