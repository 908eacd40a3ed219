#!/usr/bin/env bash
# migrate.sh [FOLDER] makes the files that the tests of internal/migrate read, with the other programs themselves, and
# imports them twice. It needs Go, Node 20, npm, Python 3.10, PyPI and the network. New notes of basic-memory need
# Python 3.12; PYTHON312 names its program, by default python3.12. Without it, the recorded notes are imported.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${1:-$work/out}
mkdir -p "$out"

npm install --silent --prefix "$work/npm" @modelcontextprotocol/server-memory@2026.8.31
rm -f "$out/server-memory.jsonl"
python3 e2e/migrate/servermemory.py \
  "$work/npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js" "$out/server-memory.jsonl"
rm -rf "$out/chromem"
(cd e2e/migrate/chromem && go run . "$out/chromem")

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q mem0ai==2.2.1 qdrant-client==1.20.0 mcp-memory-service==12.4.0 pysqlite3-binary
"$work/venv/bin/python" e2e/migrate/mem0memories.py "$work/mem0" 2>/dev/null
"$work/venv/bin/python" e2e/migrate/mcpmemoryservice.py "$work/sqlite_vec.db" 2>/dev/null
gzip -9 -n -c "$work/mem0/qdrant/collection/mem0/storage.sqlite" >"$out/mem0-qdrant.sqlite.gz"
cp "$work/mem0/all.json" "$out/mem0-all.json"
gzip -9 -n -c "$work/mem0/history.db" >"$out/mem0-history.db.gz"
gzip -9 -n -c "$work/sqlite_vec.db" >"$out/mcp-memory-service.db.gz"

notes=internal/migrate/testdata/basic-memory
python312=${PYTHON312:-python3.12}
if "$python312" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
  notes=$out/basic-memory
  "$python312" -m venv "$work/notes"
  "$work/notes/bin/pip" install -q basic-memory==0.24.1
  e2e/migrate/basicmemory.sh "$work/notes/bin/basic-memory" "$notes"
else
  echo "basic-memory: $python312 is not Python 3.12 or newer; the recorded notes are imported"
fi

CGO_ENABLED=0 go build -o "$work/souvenir" ./cmd/souvenir
for source in "server-memory $out/server-memory.jsonl" "chromem $out/chromem/plain" "chromem $out/chromem/compressed.gob" \
  "mem0 $work/mem0" "mem0 $out/mem0-all.json" "basic-memory $notes" "mcp-memory-service $work/sqlite_vec.db"; do
  read -r from path <<<"$source"
  for try in 1 2; do
    "$work/souvenir" import --db "$work/store.db" --from "$from" "$path" | sed "s/^/$from $try: /"
  done
done
