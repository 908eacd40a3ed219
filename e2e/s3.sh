#!/usr/bin/env bash
# Files in object storage on a real server: versitygw, a gateway for the protocol of Amazon S3 over a folder, from Go's
# module proxy. The tests of package s3 run on it, and the program keeps its files there: while the storage goes away
# and comes back, moved to the database and back, copied, and erased.
#
#   e2e/s3.sh
#
# It needs Go and curl. SOUVENIR_VERSITYGW names a gateway that is already built; otherwise this builds one, which takes
# about two minutes of processor time.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

version=v1.8.0
gateway_pid=

end_gateway() {
	[[ -n $gateway_pid ]] || return 0
	kill -KILL "$gateway_pid" 2>/dev/null || true
	wait "$gateway_pid" 2>/dev/null || true
	gateway_pid=
}
trap 'end_gateway; end_all' EXIT

gateway=${SOUVENIR_VERSITYGW-}
if [[ -z $gateway ]]; then
	gateway=$work/bin/versitygw
	(cd "$work" && CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN=$work/bin go install -ldflags='-s -w' \
		"github.com/versity/versitygw/cmd/versitygw@$version")
fi

port=$((20000 + RANDOM % 12000))
access=e2e-access
secret=secret$(random_password | tr -dc 'a-zA-Z0-9')
bucket=$work/buckets/files
mkdir -p "$bucket" "$work/sidecar"
start_gateway() {
	ROOT_ACCESS_KEY=$access ROOT_SECRET_KEY=$secret "$gateway" --port "127.0.0.1:$port" --quiet \
		posix --sidecar "$work/sidecar" "$work/buckets" >>"$work/gateway.log" 2>&1 &
	gateway_pid=$!
	for _ in {1..100}; do
		! curl --silent --output /dev/null "http://127.0.0.1:$port/" || return 0
		sleep 0.1
	done
	cat "$work/gateway.log" >&2
	return 1
}

# objects counts the objects with the content of files in the bucket.
objects() { find "$bucket" -type f ! -name 'owner-*' | wc -l; }

# want WHAT GOT WANTED fails if the two differ.
want() {
	[[ $2 == "$3" ]] || {
		echo "$1: got $2, want $3" >&2
		tail -n 20 "$work/server.log" >&2
		return 1
	}
}

# soon WANTED waits until the bucket has this number of objects.
soon() {
	for _ in {1..600}; do
		[[ $(objects) != "$1" ]] || return 0
		sleep 0.1
	done
	want "objects after a minute" "$(objects)" "$1"
}

# status METHOD PATH [CURL-ARGUMENT...] prints the status of an answer, whose body is in $work/answer.
status() {
	local method=$1 path=$2
	shift 2
	curl --silent --output "$work/answer" --write-out '%{http_code}' -X "$method" -H "Authorization: Bearer $admin" "$@" \
		"$url$path"
}

# upload FILE stores a file and sets $id.
upload() {
	want "uploading $1" "$(status POST /api/files/upload -F "file=@$1")" 200
	id=$(grep -o '"id": *"[^"]*"' "$work/answer" | head -n 1 | cut -d '"' -f 4)
}

# same id FILE fails unless the server has the file unchanged.
same() {
	want "downloading" "$(status GET "/api/files/$1")" 200
	cmp "$work/answer" "$2"
}

start_gateway
(cd "$root" && SOUVENIR_TEST_S3=http://$access:$secret@127.0.0.1:$port/files \
	CGO_ENABLED=0 GOFLAGS=-trimpath go test -vet=off -count=1 ./s3)
want "objects after the tests" "$(objects)" 0

echo "$secret" >"$work/secret"
export SOUVENIR_S3_ENDPOINT=http://127.0.0.1:$port SOUVENIR_S3_BUCKET=files SOUVENIR_S3_PREFIX=souvenir/
export SOUVENIR_S3_ACCESS_KEY=$access SOUVENIR_S3_SECRET_KEY_FILE=$work/secret
start_server
head -c 3000000 /dev/urandom >"$work/large"
echo "The tide is low." >"$work/small"
upload "$work/large"
large=$id
upload "$work/small"
small=$id
want "objects of both files" "$(objects)" 13
same "$large" "$work/large"
same "$small" "$work/small"

# Without the storage: requests that need it get 503, the others still work.
end_gateway
want "uploading without the storage" "$(status POST /api/files/upload -F "file=@$work/small")" 503
want "downloading without the storage" "$(status GET "/api/files/$small")" 503
grep -q 'object storage' "$work/answer"
tool memory '{"action": "store", "content": "The storage is away."}' >/dev/null
want "listing without the storage" "$(status GET /api/files)" 200
start_gateway
same "$large" "$work/large"

# There and back, while the server runs.
"$souvenir" files move --to database --db "$db"
soon 0
same "$large" "$work/large"
"$souvenir" files move --to objects --db "$db"
want "objects after the move" "$(objects)" 13
same "$large" "$work/large"

# A copy in another place, and one without objects.
"$souvenir" copy --from "$db" --to "$work/copy.db" | grep -q 'all rows match'
want "objects of the store and its copy" "$(objects)" 26
"$souvenir" copy --from "$work/copy.db" --to "$work/tables.db" --new-files database | grep -q 'all rows match'
env -u SOUVENIR_S3_BUCKET -u SOUVENIR_S3_ENDPOINT -u SOUVENIR_S3_PREFIX -u SOUVENIR_S3_ACCESS_KEY \
	-u SOUVENIR_S3_SECRET_KEY_FILE "$souvenir" check --db "$work/tables.db" >/dev/null
want "objects of the store and its copy" "$(objects)" 26

# A changed object is detected.
one=$(find "$bucket" -type f -size -2k ! -name 'owner-*' | head -n 1)
cp "$one" "$work/kept"
echo "The tide is high" >"$one"
if "$souvenir" check --db "$db" >"$work/check" && "$souvenir" check --db "$work/copy.db" >"$work/check"; then
	echo "the check did not find the changed object" >&2
	exit 1
fi
grep -q 'differs from what was stored' "$work/check"
cp "$work/kept" "$one"

# After files are erased, no object is left. The server deletes them by itself.
want "deleting" "$(status DELETE "/api/files/$large")" 200
want "objects of a file in the trash" "$(objects)" 26
"$souvenir" user add root --admin --password-stdin --db "$work/copy.db" <<<"$(random_password)" >/dev/null
"$souvenir" user delete anna --with-memories --db "$work/copy.db" >/dev/null
"$souvenir" purge --db "$work/copy.db" >/dev/null
want "objects after erasing the copy's user" "$(objects)" 13
"$souvenir" trash empty --yes --user anna --db "$db" >/dev/null
soon 1
same "$small" "$work/small"
stop_server
check_log "$secret" "$work/server.log" "$work/gateway.log"
echo "the files were in the bucket, and only there, until they were erased"
