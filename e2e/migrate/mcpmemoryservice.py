"""mcpmemoryservice.py FILE   lets mcp-memory-service store memories, an association and a new version in its database."""
import asyncio
import sys

import pysqlite3  # that of Python may be built without extensions

sys.modules["sqlite3"] = pysqlite3
from mcp_memory_service.models.memory import Memory  # noqa: E402
from mcp_memory_service.storage.graph import GraphStorage  # noqa: E402
from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage  # noqa: E402
from mcp_memory_service.utils.hashing import generate_content_hash  # noqa: E402

DEPLOY, TEA, GONE = "The deploy window is Tuesday at 10.", "我喜欢喝乌龙茶。", "To be deleted"
OLD, NEW = "Anna works in Kiel.", "Anna works in Bremen."


async def main(path):
    storage = SqliteVecMemoryStorage(path)
    await storage.initialize()
    for content, tags, kind, metadata in [
            (DEPLOY, ["berth", "deploy"], "decision", {"source": "cursor", "n": 3}),
            (TEA, ["茶"], "observation", {}), (GONE, [], None, {}), (OLD, ["anna"], "fact", {})]:
        stored, why = await storage.store(Memory(content=content, content_hash=generate_content_hash(content), tags=tags,
                                                 memory_type=kind, metadata=metadata))
        assert stored, why
    await storage.delete(generate_content_hash(GONE))
    changed, why, _ = await storage.update_memory_versioned(generate_content_hash(OLD), NEW, reason="She moved.")
    assert changed, why
    await GraphStorage(path).store_association(generate_content_hash(DEPLOY), generate_content_hash(TEA), 0.8,
                                               ["semantic"], {})


asyncio.run(main(sys.argv[1]))
