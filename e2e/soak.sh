#!/usr/bin/env bash
# Four "souvenir mcp" processes and the server write 10,000 memories each into one file, at the same time. Afterwards,
# every memory must be there exactly once, no call may have failed because of a lock, and the file must be intact.
#
#   e2e/soak.sh [--short]
#
# The short form writes 300 each, in a few seconds. It needs Go, curl and Python 3.9 or later.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

count=10000 seconds=1200
if [[ ${1-} == --short ]]; then
	count=300 seconds=120
fi

need python3
start_server
python3 "$root/e2e/soak.py" "$souvenir" "$db" "$url" "$admin" anna "$count" "$seconds"
stop_server
check_log 'level=WARN|lock'
cat "$work/check"
