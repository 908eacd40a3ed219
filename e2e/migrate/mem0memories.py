"""mem0memories.py FOLDER   lets mem0ai store memories in a local Qdrant, with embeddings of eight numbers from a server here."""
import base64
import hashlib
import http.server
import json
import os
import struct
import sys
import threading


class Embedder(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        data = []
        for i, text in enumerate(texts):
            vector = [(b - 128) / 128 for b in hashlib.sha256(text.encode()).digest()[:8]]
            if asked.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack("<8f", *vector)).decode()
            data.append({"object": "embedding", "index": i, "embedding": vector})
        answer = json.dumps({"object": "list", "model": "m", "data": data,
                             "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


folder = sys.argv[1]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Embedder)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(OPENAI_API_KEY="none", MEM0_TELEMETRY="False", MEM0_DIR=folder)
from mem0 import Memory  # noqa: E402  reads the variables

service = {"openai_base_url": f"http://127.0.0.1:{server.server_address[1]}/v1", "api_key": "none"}
memory = Memory.from_config({
    "vector_store": {"provider": "qdrant", "config": {
        "path": f"{folder}/qdrant", "on_disk": True, "collection_name": "mem0", "embedding_model_dims": 8}},
    "history_db_path": f"{folder}/history.db",
    "llm": {"provider": "openai", "config": service},
    "embedder": {"provider": "openai", "config": {**service, "embedding_dims": 8}},
})
memory.add("The deploy window is Tuesday at 10.", user_id="ann", infer=False, metadata={"project": "berth", "n": 3})
memory.add([{"role": "user", "content": "我喜欢喝乌龙茶。"}, {"role": "assistant", "content": "Noted."}],
           user_id="ann", agent_id="cursor", run_id="r1", infer=False)
changed = memory.add("To be changed", user_id="bob", infer=False)
memory.update(changed["results"][0]["id"], "Changed to this")
memory.add("Expired long ago", user_id="ann", infer=False, expiration_date="2020-01-31")
deleted = memory.add("To be deleted", user_id="bob", infer=False)
memory.delete(deleted["results"][0]["id"])
with open(f"{folder}/all.json", "w", encoding="utf-8") as out:  # the list of docs/migrating.md
    json.dump(memory.get_all(filters={"user_id": "ann"}, top_k=1_000_000, show_expired=True), out, ensure_ascii=False)
