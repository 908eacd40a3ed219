"""Lets @modelcontextprotocol/server-memory store a small graph: servermemory.py INDEX.JS OUT"""

import json
import os
import subprocess
import sys

server = subprocess.Popen(["node", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, MEMORY_FILE_PATH=os.path.abspath(sys.argv[2])))


def send(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    server.stdin.flush()


def call(id, method, params):
    send({"id": id, "method": method, "params": params})
    answer = json.loads(server.stdout.readline())
    if "error" in answer or answer["result"].get("isError"):
        sys.exit(f"{method}: {answer}")


call(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}})
send({"method": "notifications/initialized", "params": {}})
call(2, "tools/call", {"name": "create_entities", "arguments": {"entities": [
    {"name": "Anna", "entityType": "person", "observations": ["is allergic to peanuts", "speaks Norwegian"]},
    {"name": "Atlas", "entityType": "project", "observations": ["deploys on Thursdays"]},
    {"name": 'Größe "X"', "entityType": "person", "observations": ["línea 1\nlínea 2"]}]}})
call(3, "tools/call", {"name": "create_relations", "arguments": {"relations": [
    {"from": "Anna", "to": "Atlas", "relationType": "works on"},
    {"from": "Atlas", "to": "Anna", "relationType": "is led by"}]}})
call(4, "tools/call", {"name": "add_observations", "arguments": {"observations": [
    {"entityName": "Atlas", "contents": ["uses PostgreSQL"]}]}})
server.stdin.close()
sys.exit(server.wait())
