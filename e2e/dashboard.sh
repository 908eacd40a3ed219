#!/usr/bin/env bash
# The dashboard in a real browser, with scripts: every page on an empty store, a small one, one full of hostile text and
# one of 100,000 memories. axe checks each page, in light and dark, on a phone and on a wide screen. The test reports
# errors in the browser, files loaded from elsewhere, pages that are too wide, too large or too slow, and targets too
# small for a finger. Then it carries out the users' tasks, by mouse, by keyboard, and without scripts, on a wide screen
# and on a phone.
#
#   e2e/dashboard.sh [--short] [FOLDER]      leaves screenshots in the folder, if one is named
#
# The short form leaves out the empty store, the large one and most tasks, and checks each page of the hostile one once.
# E2E_STORES names a folder where the stores are kept for the next time; E2E_PASSES selects some of the stores, and ONLY
# some of the flows (projects,files), without the check of each page. E2E_PATIENCE says how many times longer everything
# may take than on an idle machine. It needs Go, Node 20 with npm and its registry, and Chromium.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

read -ra stores <<<"${E2E_PASSES:-empty small phone hostile large}"
short= # phone is the small one again, for the tasks
if [[ ${1-} == --short ]]; then
	stores=(small hostile) short=true
	shift
fi
need go node npm
find_browser
shots=${1:+$(realpath -m "$1")}
[[ -z $shots ]] || mkdir -p "$shots"
kept=${E2E_STORES:-$work/stores}
mkdir -p "$kept"
cp -r "$root"/e2e/dashboard/* "$work"
(cd "$work" && npm install --no-package-lock --no-audit --no-fund --loglevel=error >"$work/npm.log" 2>&1) || {
	cat "$work/npm.log" >&2
	exit 1
}
souvenir=$work/souvenir
(cd "$root" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir && go build -o "$work/seed" ./e2e/seed)
# The paths of all pages for signed-in users, as in the server's route table: none may be missing.
routes=$(cd "$root" && go test ./server -run '^TestPagesAreListed$' -count=1 -v | sed -n 's/^page //p')
[[ -n $routes ]]

declare -A filling=([empty]='-memories 0' [small]='-memories 40' [hostile]='-hostile' [large]='-memories 100000')
failed=
for pass in "${stores[@]}"; do
	began=$EPOCHREALTIME
	store=$pass look=
	[[ $pass != phone ]] || store=small look=phone
	if [[ ! -f $kept/$store.json ]]; then
		rm -f "$kept/$store.db"
		# shellcheck disable=SC2086 # two words
		"$work/seed" ${filling[$store]} "$kept/$store.db" >"$work/seeded"
		mv "$work/seeded" "$kept/$store.json"
	fi
	db=$work/souvenir.db
	rm -f "$db"*
	cp "$kept/$store.db" "$db"
	more=()
	if [[ $store == small ]]; then # an admin changes its schedule
		mkdir "$work/backups-$pass"
		more=(--backup-to "$work/backups-$pass")
	fi
	serve "${more[@]}" --public-url http://memory.test
	(cd "$work" && BROWSER=$browser LISTENING=$url SOUVENIR=$souvenir DB=$db STORE=$store LOOK=$look SEEDED=$(<"$kept/$store.json") ROUTES=$routes SHORT=$short SHOTS=$shots \
		timeout $((1200 * ${E2E_PATIENCE:-1})) node dashboard.mjs) || failed+=" $pass"
	stop_server
	check_log
	printf '%s: %.0f s\n' "$pass" "$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')"
done
if [[ -n $failed ]]; then
	echo "something is wrong with the dashboard, on the stores:$failed" >&2
	exit 1
fi
