#!/usr/bin/env bash
# Runs each query of the dashboard for Grafana, and each alert, in a real Prometheus that scrapes a real server, with
# the variables replaced as Grafana replaces them, for all servers and for selected ones. Each query must give numbers.
# About a minute. It shows that the queries work, not that Grafana loads the file.
#
# It needs Go, curl, Python 3.9 or later and prometheus, in Debian the package prometheus; PROMETHEUS names another one.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

prometheus=${PROMETHEUS:-prometheus}
need python3 "$prometheus"
scraper=
end_scraper() {
	[[ -z $scraper ]] || { kill -TERM "$scraper" 2>/dev/null && wait "$scraper"; } || true
	end_all
}
trap end_scraper EXIT

mkdir "$work/backups" "$work/prometheus"
start_server --metrics 127.0.0.1:0 --backup-to "$work/backups" --index-memory 64MiB
metrics=$(sed -n 's|.*metrics=http://\([0-9.:]*\)/metrics.*|\1|p' "$work/server.log" | head -1)

# The published configuration, for this address, and more often; Prometheus evaluates alerts once a minute by default.
sed "s/127.0.0.1:9464/$metrics/; s/15s/1s/; 1a global: {evaluation_interval: 1s}" \
	"$root/packaging/prometheus/prometheus.yaml" >"$work/prometheus/prometheus.yaml"
cp "$root/packaging/prometheus/alerts.yaml" "$work/prometheus"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$prometheus" --config.file="$work/prometheus/prometheus.yaml" --storage.tsdb.path="$work/prometheus/data" \
	--web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
scraper=$!

for i in {1..40}; do
	tool memory "{\"action\": \"store\", \"content\": \"Kettle $i is blue.\"}" >/dev/null
	tool memory '{"action": "search", "query": "which colour has the kettle?"}' >/dev/null
	tool memory '{"action": "retrieve", "memory_id": "none"}' &>/dev/null || true
	curl -s -o /dev/null "$url/memories" -H 'Authorization: Bearer mcp_wrong'
	sleep 0.5
done
python3 "$root/e2e/panels.py" "$root/packaging/grafana/souvenir.json" "http://127.0.0.1:$port" ||
	{ tail -5 "$work/prometheus.log" >&2; exit 1; }
stop_server
