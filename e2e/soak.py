"""Writes memories from several programs into one file at once, and looks whether each is there, once.

    soak.py SOUVENIR FILE URL TOKEN USER COUNT SECONDS

Four "souvenir mcp" processes and the server at URL store COUNT memories each, a few at a time. Then every memory of the
file is listed by one more process. It fails when a call is refused, when a memory is lost or there twice, when a process ends
badly or says anything, or after SECONDS.
"""

import collections
import http.client
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.parse

PROCESSES = 4
AT_ONCE = 8  # calls that each program is asked at the same time

souvenir, db, url, token, user, count, seconds = sys.argv[1:]
count, deadline = int(count), time.monotonic() + float(seconds)
failures = queue.Queue()
done = collections.Counter()
slowest = collections.Counter()


def fail(text):
    failures.put(text)
    raise SystemExit(1)


def content(writer, i):
    return f"Writer {writer} noted thing {i}: the kettle of room {i % 97} is number {i * 7919 % 10007}."


class Process:
    """A "souvenir mcp" process; any number of threads may call."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [souvenir, "mcp", "--db", db, "--user", user, "--log-level", "info", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lock = threading.Lock()
        self.asked = 0
        self.waiting = {}
        self.said = b""
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=self.listen)]
        for reader in self.readers:
            reader.start()
        self.ask(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}},
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            try:
                answer = json.loads(line)
                self.waiting.pop(answer["id"]).put(answer)
            except (ValueError, KeyError):
                failures.put(f"a process wrote {line!r}")

    def listen(self):
        self.said = self.process.stderr.read()

    def send(self, message):
        line = json.dumps(message).encode() + b"\n"
        with self.lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def ask(self, method, params):
        answer = queue.Queue()
        with self.lock:
            self.asked += 1
            mine = self.asked
            self.waiting[mine] = answer
        self.send({"jsonrpc": "2.0", "id": mine, "method": method, "params": params})
        try:
            got = answer.get(timeout=max(1, deadline - time.monotonic()))
        except queue.Empty:
            fail(f"{method} was not answered in time")
        if "result" not in got:
            fail(f"{method}: {got}")
        return got["result"]

    def memory(self, arguments):
        result = self.ask("tools/call", {"name": "memory", "arguments": arguments})
        if result.get("isError"):
            fail(f"{arguments['action']}: {result['content'][0]['text']}")
        return json.loads(result["content"][0]["text"])

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        for reader in self.readers:
            reader.join()
        if status != 0 or b"level=WARN" in self.said or b"level=ERROR" in self.said or b"lock" in self.said:
            fail(f"a process ended with exit status {status} and said: {self.said.decode()}")


class Server:
    """The server; each thread has a connection of its own."""

    def __init__(self):
        self.local = threading.local()
        self.address = urllib.parse.urlsplit(url)

    def memory(self, arguments):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(
                self.address.hostname, self.address.port, timeout=max(1, deadline - time.monotonic())
            )
        connection = self.local.connection
        connection.request(
            "POST",
            "/tools/call",
            json.dumps({"name": "memory", "arguments": arguments}),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            fail(f"POST /tools/call: {answer.status} {body!r}")
        return json.loads(json.loads(body)["content"][0]["text"])


def write(target, name, next_one):
    """Stores one memory after the other until all are stored."""
    try:
        while failures.empty():
            with next_one["lock"]:
                i = next_one["i"]
                next_one["i"] += 1
            if i >= count:
                return
            if time.monotonic() > deadline:
                fail(f"writer {name} has stored {i} of {count} memories, and the time is over")
            began = time.monotonic()
            stored = target.memory({"action": "store", "content": content(name, i)})
            slowest[name] = max(slowest[name], time.monotonic() - began)
            if not stored.get("id"):
                fail(f"a store is answered with {stored}")
            done[name] += 1
    except SystemExit:
        pass
    except Exception as error:  # ends the soak, not only the thread
        failures.put(f"writer {name}: {error!r}")


def main():
    writers = {str(n): Process() for n in range(PROCESSES)}
    writers["server"] = Server()
    began = time.monotonic()
    threads = []
    for name, target in writers.items():
        next_one = {"lock": threading.Lock(), "i": 0}
        threads += [threading.Thread(target=write, args=(target, name, next_one)) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    if failures.empty():
        found, offset = collections.Counter(), 0
        reader = Process("--read-only")
        while True:
            page = reader.memory({"action": "search", "limit": 100, "offset": offset, "sort_order": "created_at_asc"})
            for group in page["results"]:
                for memory in group["memories"]:
                    found[memory["content"]] += 1
            offset += 100
            if not page["has_more"]:
                break
        reader.end()
        expected = {content(name, i) for name in writers for i in range(count)}
        lost = [c for c in expected if found[c] == 0]
        twice = [c for c in expected if found[c] > 1]
        if lost or twice:
            failures.put(
                f"{len(lost)} memories are lost and {len(twice)} are there more than once, such as {(lost + twice)[:3]}"
            )
    for name, target in writers.items():
        if isinstance(target, Process):
            try:
                target.end()
            except SystemExit:
                pass
    if not failures.empty():
        while not failures.empty():
            print(failures.get(), file=sys.stderr)
        return 1
    total = sum(done.values())
    print(
        f"{total} memories of {len(writers)} writers in {took:.1f} s, {total / took:.0f} a second; the slowest store took "
        f"{max(slowest.values()):.2f} s; none is lost, none is there twice"
    )
    return 0


status = main()
sys.stdout.flush()
os._exit(status)  # a thread may still wait for an answer that will not come
