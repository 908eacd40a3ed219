"""many.py FOLDER [COUNT]   writes the data of other programs with COUNT memories each (30,000), to measure imports.

They are the sources that are files of text, in the forms that the programs write; a text has 8 to 31 words of 5,000.
"""
import json
import os
import random
import sys
from datetime import datetime, timedelta, timezone

folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30_000
rng = random.Random(1)
syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "on")]
words = sorted({"".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(9_000)})[:5_000]
began = datetime(2025, 1, 1, tzinfo=timezone.utc)


def text(i):
    said = " ".join(rng.choices(words, k=rng.randint(8, 31)))
    return f"{said.capitalize()} {i}."


def at(i):
    return began + timedelta(minutes=i)


def uid(i):
    return f"{i:08x}-0000-4000-8000-000000000000"


def write(name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)


# mem0's list
write("mem0/all.json", json.dumps({"results": [
    {"id": uid(i), "memory": text(i), "hash": f"{i:032x}", "metadata": {"project": f"p{i % 7}", "n": i},
     "categories": [f"c{i % 11}"], "created_at": at(i).isoformat(), "updated_at": at(i).isoformat(), "user_id": "ann"}
    for i in range(count)]}))

# a graph: every entity has two observations and a relation
lines = [{"type": "entity", "name": f"Entity {i}", "entityType": f"kind {i % 9}", "observations": [text(i), text(i)]}
         for i in range(count)]
lines += [{"type": "relation", "from": f"Entity {i}", "to": f"Entity {rng.randrange(count)}", "relationType": "knows"}
          for i in range(count)]
write("server-memory/memory.jsonl", "\n".join(json.dumps(line, ensure_ascii=False) for line in lines))

# notes, a hundred in a folder
for i in range(count):
    write(f"basic-memory/f{i // 100}/Note {i}.md", f"---\ntitle: Note {i}\ntype: note\npermalink: f{i // 100}/note-{i}\n"
          f"tags:\n- t{i % 13}\ncreated: '{at(i).isoformat()}'\n---\n\n# Note {i}\n\n## Observations\n- [fact] {text(i)} #t\n\n"
          f"## Relations\n- relates_to [[Note {rng.randrange(count)}]]\n")

# conversations of 60 messages
chats, claudes = [], []
for c in range(count // 60):
    mapping, messages, parent = {"root": {"id": "root", "parent": None, "message": None}}, [], "root"
    for n in range(60):
        i = c * 60 + n
        said = text(i)
        mapping[uid(i)] = {"id": uid(i), "parent": parent, "message": {
            "id": uid(i), "create_time": at(i).timestamp(), "author": {"role": ("user", "assistant")[n % 2]},
            "content": {"content_type": "text", "parts": [said]}, "metadata": {}}}
        parent = uid(i)
        messages.append({"uuid": uid(i), "sender": ("human", "assistant")[n % 2], "created_at": at(i).isoformat(),
                         "text": said, "content": [{"type": "text", "text": said}], "attachments": []})
    chats.append({"id": uid(c), "conversation_id": uid(c), "title": f"Chat {c}", "current_node": parent, "mapping": mapping})
    claudes.append({"uuid": uid(c), "name": f"Chat {c}", "chat_messages": messages})
write("chatgpt/conversations.json", json.dumps(chats))
write("claude/conversations.json", json.dumps(claudes))
