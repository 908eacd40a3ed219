#!/usr/bin/env bash
# Requests that no honest client sends: broken, slow, huge or devious. The server must answer each correctly or drop
# it, and go on. Then it is stopped during uploads; it must shut down cleanly, with an intact file and a clean log.
#
#   e2e/attack.sh
#
# It takes about 75 seconds, most of them waiting for the server's timeouts. It needs Go, curl and Python 3.9 or later.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

need python3
start_server --max-file 32MiB --log-level debug
python3 "$root/e2e/attack.py" "$url" "$admin" "$member" "$limited"

# A server that is stopped in the middle of an upload must shut down cleanly: stop_server fails otherwise, and checks
# the file.
upload_slowly() {
	head -c 20000000 /dev/zero | curl --silent --output /dev/null --limit-rate 4M -H "Authorization: Bearer $admin" \
		-F 'file=@-;filename=slow.bin' "$url/api/files/upload" || true
}
for _ in 1 2 3; do upload_slowly & uploads+=($!); done
sleep 1
stop_server
wait "${uploads[@]}"
check_log
echo "uploads that were going on when the server was told to end, ended in good order; the file is sound, and the log clean"
