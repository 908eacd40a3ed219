#!/usr/bin/env bash
# What a client finds over HTTP: it loads evaluation sets into a new server with the tool memory, asks their questions,
# and prints recall, MRR, nDCG and latency. The results must agree with the figures of the Go API in
# docs/benchmarks.md.
#
#   e2e/retrieval.sh EVAL SET.jsonl.gz...
#
# EVAL is the evaluation program, eval_http.py, and the sets are its data; neither is part of this repository. It needs
# Go, curl and Python 3.9 or later.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

if [[ $# -lt 2 ]]; then
	sed -n '2,/^source/{s/^# \{0,1\}//p}' "$0" >&2
	exit 2
fi
need python3
eval=$1
shift
start_server
for set in "$@"; do
	python3 "$eval" "$url" --token "$admin" --data "$set" --quiet
done
stop_server
echo "the server ended in good order, and its file is sound"
