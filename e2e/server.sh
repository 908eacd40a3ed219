# A server on a new store, for the scripts beside this file, which source it. Everything is in the temporary folder
# $work and ends with the script.
#
#   start_server [FLAG...]     builds the program, makes the users and tokens, and serves
#
# It sets $work, $souvenir (the program), $db (unless it is set), $url, $password (of anna), and the tokens $admin (of
# anna, an admin), $member (of ben, who reads anna's project atlas) and $limited (of anna, to read memories of atlas).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
server_pid=
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

end_all() {
	if [[ -n $server_pid ]]; then # the script has failed, and the server may not even have begun to listen to signals
		kill -KILL "$server_pid" 2>/dev/null || true
		wait "$server_pid" 2>/dev/null || true
	fi
	rm -rf "$work"
}

# need PROGRAM... fails, rather than skips, if a program is missing: a silently skipped check is not a check.
need() {
	local program
	for program in "$@"; do
		if ! command -v "$program" >/dev/null; then
			echo "$0: $program is missing, and without it this checks nothing" >&2
			exit 1
		fi
	done
}

start_server() {
	need go curl
	souvenir=$work/souvenir
	db=${db:-$work/souvenir.db}
	(cd "$root" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir)
	password=$(random_password)
	"$souvenir" user add anna --db "$db" --admin --password-stdin <<<"$password" >/dev/null
	"$souvenir" user add ben --db "$db" --password-stdin <<<"$(random_password)" >/dev/null
	admin=$("$souvenir" token add --db "$db" --user anna --name admin \
		--scope memory:read,memory:write,files:read,files:write,account,admin)
	member=$("$souvenir" token add --db "$db" --user ben --name member \
		--scope memory:read,memory:write,files:read,files:write,account)
	serve "$@"
	tool memory '{"action": "store", "project_id": "atlas", "content": "Atlas keeps its maps in tiles."}' >/dev/null
	"$souvenir" project member add atlas ben --role reader --owner anna --db "$db" >/dev/null
	limited=$("$souvenir" token add --db "$db" --user anna --name limited --scope memory:read --project atlas)
}

# serve [FLAG...] serves $db, sets $server_pid, and sets $url when the server listens.
serve() {
	: >"$work/stdout" # so that it is there before the server's shell makes it
	"$souvenir" serve --db "$db" --listen 127.0.0.1:0 "$@" >"$work/stdout" 2>"$work/server.log" &
	server_pid=$!
	for _ in {1..200}; do
		url=$(sed -n 's/^listening on //p' "$work/stdout")
		[[ -z $url ]] || return 0
		if ! kill -0 "$server_pid" 2>/dev/null; then
			break
		fi
		sleep 0.1
	done
	echo "the server did not start:" >&2
	cat "$work/server.log" >&2
	exit 1
}

# install_clients copies the scripts of e2e/clients, with the npm packages that they need, into $work. If E2E_PACKAGES
# names a folder, the packages are kept there, so that several scripts install them only once.
install_clients() {
	local packages=${E2E_PACKAGES:-$work}
	need node npm
	cp "$root"/e2e/clients/* "$work"
	mkdir -p "$packages"
	if ! cmp -s "$root/e2e/clients/package.json" "$packages/installed.json"; then
		[[ $packages == "$work" ]] || cp "$root/e2e/clients/package.json" "$packages"
		(cd "$packages" && npm install --no-package-lock --no-audit --no-fund --loglevel=error) >"$work/npm.log" 2>&1 || {
			cat "$work/npm.log" >&2
			exit 1
		}
		cp "$root/e2e/clients/package.json" "$packages/installed.json"
	fi
	[[ $packages == "$work" ]] || ln -s "$packages/node_modules" "$work/node_modules"
}

# stop_server stops the server as an operator does, and fails if it does not shut down cleanly or the file is damaged.
stop_server() {
	local status=0
	[[ -n $server_pid ]] || return 0
	kill -TERM "$server_pid" 2>/dev/null || true
	wait "$server_pid" || status=$?
	server_pid=
	if [[ $status -ne 0 ]]; then
		echo "the server ended with exit status $status:" >&2
		tail -n 20 "$work/server.log" >&2
		return 1
	fi
	"$souvenir" check --db "$db" >"$work/check" || {
		cat "$work/check" >&2
		return 1
	}
}

# find_browser sets $browser; it installs Chromium if it can (Debian, as root).
find_browser() {
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
	if [[ -z $browser && $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
		apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium >/dev/null
		browser=$(command -v chromium || true)
	fi
	if [[ -z $browser ]]; then
		echo "$0: chromium is missing, and without it the pages are not tried" >&2
		exit 1
	fi
}

# check_log [PATTERN [LOG...]] fails if a log contains a token, a session, an error, or a match of the pattern.
check_log() {
	local pattern='(mcp|ses)_[A-Za-z0-9]{8,}|panic|level=ERROR'
	[[ $# -eq 0 ]] || pattern+="|$1"
	shift $(($# > 0))
	[[ $# -gt 0 ]] || set -- "$work/server.log"
	if grep -hE "$pattern" "$@" >&2; then
		echo "the log tells what it must not, or the server failed" >&2
		return 1
	fi
}

# request METHOD PATH [CURL-ARGUMENT...] sends a request with the admin's token and fails unless it succeeds.
request() {
	local method=$1 path=$2
	shift 2
	curl --silent --show-error --fail-with-body -X "$method" -H "Authorization: Bearer $admin" -H 'Content-Type: application/json' "$@" "$url$path"
}

# tool NAME ARGUMENTS calls a tool.
tool() { request POST /tools/call -d "{\"name\": \"$1\", \"arguments\": $2}"; }

random_password() { head -c 18 /dev/urandom | base64; }
