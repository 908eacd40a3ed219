# A server on a store of its own, for the scripts beside this file, which source it. Everything lies in the temporary
# folder $work and ends with the script.
#
#   start_server [FLAG...]     builds the program, makes the users and tokens, and serves
#
# It sets $work, $souvenir (the program), $db, $url, and the tokens $admin (of anna, an admin), $member (of ben, who reads
# anna's project atlas) and $limited (of anna, to read memories of atlas).
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

# need PROGRAM... fails, rather than skips, where a program is missing: a check that is left out in silence is none.
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
	db=$work/souvenir.db
	(cd "$root" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir)
	"$souvenir" user add anna --db "$db" --admin --password-stdin <<<"$(random_password)" >/dev/null
	"$souvenir" user add ben --db "$db" --password-stdin <<<"$(random_password)" >/dev/null
	admin=$("$souvenir" token add --db "$db" --user anna --name admin \
		--scope memory:read,memory:write,files:read,files:write,admin)
	member=$("$souvenir" token add --db "$db" --user ben --name member)
	: >"$work/stdout"
	"$souvenir" serve --db "$db" --listen 127.0.0.1:0 "$@" >"$work/stdout" 2>"$work/server.log" &
	server_pid=$!
	for _ in {1..200}; do
		url=$(sed -n 's/^listening on //p' "$work/stdout")
		[[ -z $url ]] || break
		if ! kill -0 "$server_pid" 2>/dev/null; then
			break
		fi
		sleep 0.1
	done
	if [[ -z $url ]]; then
		echo "the server did not start:" >&2
		cat "$work/server.log" >&2
		exit 1
	fi
	tool memory '{"action": "store", "project_id": "atlas", "content": "Atlas keeps its maps in tiles."}' >/dev/null
	request POST /api/projects/atlas/members -d '{"user": "ben", "role": "reader"}' >/dev/null
	limited=$("$souvenir" token add --db "$db" --user anna --name limited --scope memory:read --project atlas)
}

# stop_server ends the server as an operator does, and fails if it did not end in good order or the file is not sound.
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

# request METHOD PATH [CURL-ARGUMENT...] sends a request with the admin's token and fails unless it succeeds.
request() {
	local method=$1 path=$2
	shift 2
	curl --silent --show-error --fail-with-body -X "$method" -H "Authorization: Bearer $admin" -H 'Content-Type: application/json' "$@" "$url$path"
}

# tool NAME ARGUMENTS calls a tool.
tool() { request POST /tools/call -d "{\"name\": \"$1\", \"arguments\": $2}"; }

random_password() { head -c 18 /dev/urandom | base64; }
