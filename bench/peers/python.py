"""Measures peers written in Python or JavaScript on the texts and vectors that `go run ./peers -export FOLDER` wrote.

    python3 -m venv env && env/bin/pip install -r peers/requirements.txt
    env/bin/pip install --no-deps mcp-memory-service==12.4.0  # without torch, as it gets the vectors
    npm install --prefix FOLDER @modelcontextprotocol/server-memory@2026.8.31
    env/bin/python peers/python.py FOLDER 1000,10000 [PEER,...] >results && go run ./peers -with results

Each peer works in a process of its own, and gets the vectors instead of making them, so adding is cheaper for it.
mem0ai and mcp-memory-service store one memory at a time, as their tools do. mem0ai stores texts as they are (without
a language model). server-memory has no vectors: it finds entities that contain the words of a question as they stand.
The script prints one result a line, in the form that peers.go reads.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

RESULTS = 10


def chroma(place):
    import chromadb

    client = chromadb.PersistentClient(place, settings=chromadb.Settings(anonymized_telemetry=False))
    table = client.get_or_create_collection("texts", metadata={"hnsw:space": "cosine"})

    def add(first, texts, vectors):
        for i in range(0, len(texts), 5000):
            part = slice(i, i + 5000)
            table.add(
                ids=[str(first + i + n) for n in range(len(texts[part]))],
                documents=texts[part],
                embeddings=vectors[part],
            )

    def nearest(_, vector):
        found = table.query(query_embeddings=[vector], n_results=RESULTS, include=["documents"])
        return [int(n) for n in found["ids"][0]]

    return add, nearest


def lance(place):
    import lancedb
    import pyarrow

    db = lancedb.connect(place)
    schema = pyarrow.schema(
        [("id", pyarrow.int64()), ("text", pyarrow.string()), ("vector", pyarrow.list_(pyarrow.float32(), 256))]
    )
    table = db.create_table("texts", schema=schema, exist_ok=True)

    def add(first, texts, vectors):
        rows = [{"id": first + i, "text": t, "vector": v} for i, (t, v) in enumerate(zip(texts, vectors))]
        table.add(rows)

    def nearest(_, vector):
        found = table.search(vector).distance_type("cosine").limit(RESULTS).select(["id", "text", "_distance"])
        return [row["id"] for row in found.to_list()]

    return add, nearest


class Given:
    """An embedding model that knows the vectors of all texts."""

    embedding_dimension = 256

    def __init__(self):
        self.vectors = {}

    def embed(self, text, *_, **__):  # mem0ai
        return self.vectors[text].tolist()

    def embed_batch(self, texts, *_, **__):
        return [self.embed(text) for text in texts]

    def encode(self, texts, *_, **__):  # mcp-memory-service
        return np.asarray([self.vectors[text] for text in texts])


def mem0(place):
    os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="not used", MEM0_DIR=os.path.join(place, "mem0"))
    from mem0 import Memory

    store = {"path": os.path.join(place, "qdrant"), "embedding_model_dims": 256, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": {**store, "collection_name": "texts"}},
            "history_db_path": os.path.join(place, "history.db"),
        }
    )
    memory.embedding_model = given = Given()

    def add(first, texts, vectors):
        for i, (text, vector) in enumerate(zip(texts, vectors)):
            given.vectors = {text: vector}
            memory.add(text, user_id="ann", metadata={"number": first + i}, infer=False)

    def nearest(text, vector):
        given.vectors = {text: vector}
        found = memory.search(text, filters={"user_id": "ann"}, top_k=RESULTS, threshold=0.0)
        return [m["metadata"]["number"] for m in found["results"]]

    return add, nearest


def memory_service(place):
    import pysqlite3  # loads sqlite-vec, which the sqlite3 of some Pythons cannot

    sys.modules["sqlite3"] = pysqlite3
    os.environ["MCP_MEMORY_BASE_DIR"] = place
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage, given, loop = SqliteVecMemoryStorage(os.path.join(place, "store.db")), Given(), asyncio.new_event_loop()

    async def model():
        storage.embedding_model, storage.embedding_dimension = given, 256

    storage._initialize_embedding_model = model
    loop.run_until_complete(storage.initialize())

    def add(first, texts, vectors):
        for i, (text, vector) in enumerate(zip(texts, vectors)):
            given.vectors = {text: vector}
            memory = Memory(
                content=text, content_hash=generate_content_hash(text), tags=[], metadata={"number": first + i}
            )
            stored, why = loop.run_until_complete(storage.store(memory, skip_semantic_dedup=True))
            if not stored:
                raise RuntimeError(why)

    def nearest(text, vector):
        given.vectors = {text: vector}
        found = loop.run_until_complete(storage.retrieve(text, n_results=RESULTS))
        return [hit.memory.metadata["number"] for hit in found]

    return add, nearest


def server_memory(place):
    environment = {**os.environ, "MEMORY_FILE_PATH": os.path.join(place, "memory.jsonl")}
    server = os.path.join(sys.argv[1], "node_modules", ".bin", "mcp-server-memory")
    process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    calls = 0

    def send(message):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    def call(method, params):
        nonlocal calls
        calls += 1
        send({"id": calls, "method": method, "params": params})
        while (answer := json.loads(process.stdout.readline())).get("id") != calls:
            pass
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(answer)
        return answer["result"]

    client = {"name": "bench", "version": "1"}
    call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    send({"method": "notifications/initialized"})

    def add(first, texts, _):
        for i, text in enumerate(texts):
            entity = {"name": str(first + i), "entityType": "memory", "observations": [text]}
            call("tools/call", {"name": "create_entities", "arguments": {"entities": [entity]}})

    def found(text, _):
        answer = call("tools/call", {"name": "search_nodes", "arguments": {"query": text}})
        entities = json.loads(answer["content"][0]["text"])["entities"]
        return [int(entity["name"]) for entity in entities][:RESULTS]

    return add, found


PEERS = {
    "chromadb": chroma,
    "lancedb (no index)": lance,
    "mem0ai": mem0,
    "mcp-memory-service": memory_service,
    "server-memory": server_memory,
}
WORDS = ["server-memory"]  # these search by words


def read(folder, name, count):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        texts = file.read().split("\n")[:count]
    vectors = np.fromfile(os.path.join(folder, name + ".f32"), dtype="<f4").reshape(-1, 256)[:count]
    return texts, vectors


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    return 0


def measure(folder, name, size, place, stage):
    if stage == "add":
        texts, vectors = read(folder, "texts", size)
        add, _ = PEERS[name](place)
        start = time.perf_counter()
        for first in range(0, size, 10_000):
            add(first, texts[first : first + 10_000], vectors[first : first + 10_000])
        rate = size / (time.perf_counter() - start)
        files = (os.path.join(at, f) for at, _, names in os.walk(place) for f in names)
        return {"per_second": rate, "bytes": sum(os.path.getsize(f) for f in files)}
    questions = [(text, vector) for text, vector in zip(*read(folder, "questions", None))]
    start = time.perf_counter()
    _, nearest = PEERS[name](place)
    nearest(*questions[0])
    opened = time.perf_counter() - start
    for _ in range(2):
        took, found = [], []
        for question in questions:
            start = time.perf_counter()
            found.append(nearest(*question))
            took.append(1000 * (time.perf_counter() - start))
    took.sort()
    times = {"median_ms": took[len(took) // 2], "p99_ms": took[len(took) * 99 // 100]}
    result = {"open_ms": 1000 * opened}
    if name in WORDS:
        return {**result, "words": times}  # in a process of its own, whose memory is not measured
    return {**result, "vector": times, "found": found, "resident_mib": resident()}


def main():
    if len(sys.argv) == 6:
        folder, name, size, place, stage = sys.argv[1:]
        json.dump(measure(folder, name, int(size), place, stage), sys.stdout)
        return
    folder, sizes, names = sys.argv[1], sys.argv[2], sys.argv[3].split(",") if len(sys.argv) > 3 else PEERS
    for size in sizes.split(","):
        for name in names:
            with tempfile.TemporaryDirectory() as place:
                result = {"peer": name, "size": int(size)}
                for stage in ("add", "search"):
                    command = [sys.executable, __file__, folder, name, size, place, stage]
                    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
                    result.update(json.loads(output))
                print(json.dumps(result), flush=True)


main()
