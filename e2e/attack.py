#!/usr/bin/env python3
"""Requests that no honest client sends, and what must come back: attack.py URL ADMIN MEMBER LIMITED (three tokens).

Standard library only. Prints a line for each attack, and exits 1 if any answer is not as it should be.
"""
import concurrent.futures
import hashlib
import http.client
import json
import re
import socket
import sys
import time
import urllib.parse

url, admin, member, limited = sys.argv[1:5]
host, port = urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port
failures = []


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers}, body

    def json(self):
        return json.loads(self.body)


def send(method, path, body=None, token=admin, headers=(), timeout=30):
    c = http.client.HTTPConnection(host, port, timeout=timeout)
    c.putrequest(method, path, skip_accept_encoding=True)
    if token:
        c.putheader("Authorization", "Bearer " + token)
    for name, value in headers:
        c.putheader(name, value)
    if body is not None:
        if isinstance(body, str):
            body = body.encode()
        c.putheader("Content-Length", str(len(body)))
        if not any(n.lower() == "content-type" for n, _ in headers):
            c.putheader("Content-Type", "application/json")
    c.endheaders(body)
    r = c.getresponse()
    data = r.read()
    c.close()
    return Answer(r.status, r.getheaders(), data)


def raw(sent, wait=20.0, half_close=True):
    """Everything that comes back for some bytes, and how long it took."""
    began = time.monotonic()
    with socket.create_connection((host, port), timeout=wait) as s:
        try:
            s.sendall(sent)
            if half_close:
                s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server may have hung up already
        got = b""
        while True:
            try:
                piece = s.recv(1 << 16)
            except OSError:
                break
            if not piece:
                break
            got += piece
    return got, time.monotonic() - began


def call(arguments, tool="memory", token=admin):
    a = send("POST", "/tools/call", json.dumps({"name": tool, "arguments": arguments}), token=token)
    return a, json.loads(a.json()["content"][0]["text"]) if a.status == 200 else None


def form(*parts, boundary="b0undary", end=True):
    """parts: (disposition, type or None, bytes)"""
    out = b""
    for disposition, kind, content in parts:
        out += b"--%s\r\nContent-Disposition: form-data; %s\r\n" % (
            boundary.encode(),
            disposition.encode("utf8", "surrogateescape"),
        )
        out += (b"Content-Type: %s\r\n" % kind.encode() if kind else b"") + b"\r\n" + content + b"\r\n"
    return out + (b"--%s--\r\n" % boundary.encode() if end else b"")


def upload(body, boundary="b0undary", token=admin, timeout=30):
    return send(
        "POST",
        "/api/files/upload",
        body,
        token=token,
        timeout=timeout,
        headers=[("Content-Type", "multipart/form-data; boundary=" + boundary)],
    )


def uploaded(name, kind, content):
    a = upload(form((f'name="file"; filename="{name}"', kind, content)))
    return a.json()["file"] if a.status == 200 else a


def check(what, ok, detail=""):
    print(("ok    " if ok else "WRONG ") + what + ("" if ok else f": {detail}"), flush=True)
    if not ok:
        failures.append(what)


def error(a, status):
    """Whether an answer is an error in the one form of errors."""
    try:
        body = a.json()
    except ValueError:
        return False
    return (
        a.status in (status if isinstance(status, tuple) else (status,))
        and body["isError"] is True
        and body["content"][0]["text"] == "Error: " + body["error"]
    )


def files():
    return {f["id"] for f in send("GET", "/api/files").json()["files"]}


# ---------------------------------------------------------------- attacks


def slow():
    """Those that wait; they run beside the others."""
    head = (
        f"POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    with concurrent.futures.ThreadPoolExecutor() as pool:
        headers = pool.submit(raw, b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ", 40, False)
        body = pool.submit(raw, head.encode() + b'{"name":', 90, False)
        file = pool.submit(
            raw,
            (
                f"POST /api/files/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n"
                "Content-Type: multipart/form-data; boundary=b0undary\r\nContent-Length: 100000\r\n\r\n"
            ).encode()
            + form(('name="file"; filename="silent.bin"', None, b"begun"), end=False)[:-2],
            90,
            False,
        )
    got, took = headers.result()
    check("headers that never end are cut off within 15 s", took < 15, f"{took:.1f} s, {got[:80]!r}")
    got, took = body.result()
    check(
        "a body that stops is given up after a minute, and told why",
        50 < took < 75 and b" 400 " in got and b"arrived" in got,
        f"{took:.1f} s, {got[:300]!r}",
    )
    got, took = file.result()
    check(
        "an upload that stops is given up after a minute",
        50 < took < 75 and b" 400 " in got,
        f"{took:.1f} s, {got[:300]!r}",
    )


def multipart():
    before = files()
    whole = form(('name="file"; filename="cut.txt"', "text/plain", b"x" * 5000), ('name="description"', None, b"late"))
    for at in (0, 1, 20, 60, 120, 200, 3000, len(whole) - 90, len(whole) - 30, len(whole) - 5):
        a = upload(whole[:at])
        check(f"a form cut off at byte {at} of {len(whole)} is 400", error(a, 400), f"{a.status} {a.body[:200]}")
    got, _ = raw(
        (
            f"POST /api/files/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n"
            "Content-Type: multipart/form-data; boundary=b0undary\r\n"
            f"Content-Length: {len(whole) + 5000}\r\n\r\n"
        ).encode()
        + whole[:2000]
    )
    check("an upload whose client hangs up is no server error", b" 500 " not in got, got[:200])
    for what, body in {
        "no parts": form(),
        "no file": form(('name="description"', None, b"x")),
        "two files": form(('name="file"; filename="a"', None, b"a"), ('name="file"; filename="b"', None, b"b")),
        "a file of another name": form(('name="f"; filename="a"', None, b"a")),
        "no boundary in the body": b"just text",
        "a field of 1 MiB": form(
            ('name="description"', None, b"x" * (1 << 20)), ('name="file"; filename="a"', None, b"a")
        ),
        "2,000 fields": form(*[('name="x"', None, b"y")] * 2000, ('name="file"; filename="a"', None, b"a")),
        "a part's headers of 10 MiB": form(('name="file"; filename="' + "a" * (10 << 20) + '"', None, b"a")),
        "no UTF-8 in a field": form(
            ('name="description"', None, b"\xff\xfe"), ('name="file"; filename="a"', None, b"a")
        ),
        "a file past the limit": form(('name="file"; filename="a"', None, b"a" * ((32 << 20) + 1))),
        "an unknown memory": form(('name="memory_id"', None, b"none"), ('name="file"; filename="a"', None, b"a")),
        "an unknown memory behind the file": form(
            ('name="file"; filename="a"', None, b"a"), ('name="memory_id"', None, b"none")
        ),
        "tags with control characters": form(
            ('name="tags[]"', None, b"a\x00b"), ('name="file"; filename="a"', None, b"a")
        ),
    }.items():
        a = upload(body)
        check(f"a form with {what} is refused", error(a, (400, 404)), f"{a.status} {a.body[:200]}")
    check("a form without a boundary is refused", error(upload(b"x", boundary='""'), 400))
    check("none of these left a file", files() == before, files() - before)
    for boundary in ("x" * 70, "a'b()+_,-./:=?"):
        a = upload(
            form(('name="file"; filename="b.txt"', None, b"ok"), boundary=boundary), boundary='"' + boundary + '"'
        )
        check(f"a boundary such as {boundary[:14]} is read", a.status == 200, a.body[:200])


def names():
    for given in (
        "../../etc/passwd",
        "..\\..\\boot.ini",
        "/etc/shadow",
        "C:\\Windows\\a.txt",
        "a\x00b.txt",
        "",
        ".",
        "..",
        "con.txt",
        "x" * 5000 + ".txt",
        "\u202egnp.exe",
        "<script>alert(1)</script>.html",
        "a;b=c.txt",
        "ü é 文.txt",
        "a\rb.txt",
        " .htaccess ",
        "~root",
        "a%00b",
        "%2e%2e%2fetc",
    ):
        escaped = given.replace("\\", "\\\\").replace('"', '\\"')
        a = upload(form((f'name="file"; filename="{escaped}"', None, b"data")))
        if a.status != 200:
            check(f"the name {given[:30]!r} is refused in words", error(a, 400), f"{a.status} {a.body[:200]}")
            continue
        f = a.json()["file"]
        got = send("GET", "/api/files/" + f["id"])
        said = got.headers["content-disposition"]
        check(
            f"the name {given[:30]!r} becomes harmless",
            f["filename"]
            and not re.search(r"[/\\\x00-\x1f\u202e]", f["filename"])
            and f["filename"] not in (".", "..")
            and len(f["filename"].encode()) <= 255
            and got.body == b"data"
            and "\n" not in said,
            (f["filename"][:80], said[:120]),
        )


def browsers():
    page = b"<!doctype html><script>alert(document.cookie)</script>"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    for name, kind, content in (
        ("a.html", "text/html", page),
        ("a.txt", "text/plain", page),
        ("a.png", "image/png", page),
        ("a.svg", "image/svg+xml", svg),
        ("a.xml", "application/xml", svg),
        ("a.xhtml", "application/xhtml+xml", page),
        ("a", None, page),
        ("a.js", "text/javascript", b"alert(1)"),
        ("a.pdf", "application/pdf", b"%PDF-1.7 x"),
        ("a.gif", "image/gif", b"GIF89a/*" + page),
        ("a.css", "text/css", b"a{}"),
        ("a.bin", "text/html; charset=utf-7", page),
        ("a.swf", "application/x-shockwave-flash", b"FWS"),
    ):
        f = uploaded(name, kind, content)
        if isinstance(f, Answer):
            check(f"{name} as {kind} is refused in words", error(f, 400), f.body[:200])
            continue
        a = send("GET", "/api/files/" + f["id"])
        shown = a.headers["content-disposition"].startswith("inline")
        told = a.headers["content-type"].partition(";")[0]
        safe = not shown or told in (
            "text/plain",
            "application/pdf",
            "image/png",
            "image/gif",
            "image/jpeg",
            "image/webp",
        )
        check(
            f"{name} as {kind} is harmless ({told}, {'inline' if shown else 'attachment'})",
            safe
            and a.headers["x-content-type-options"] == "nosniff"
            and "sandbox" in a.headers["content-security-policy"]
            and "default-src 'none'" in a.headers["content-security-policy"]
            and "public" not in a.headers["cache-control"],
            a.headers,
        )


def ranges():
    content = bytes(i * 7 & 255 for i in range(1_000_000))
    f = uploaded("ranges.bin", "application/octet-stream", content)
    path = "/api/files/" + f["id"]
    tag = '"' + hashlib.sha256(content).hexdigest() + '"'

    def get(value, **more):
        return send("GET", path, headers=[("Range", value), *more.items()])

    for value, part in (
        ("bytes=0-0", content[:1]),
        ("bytes=-1", content[-1:]),
        ("bytes=999999-", content[-1:]),
        ("bytes=262143-262144", content[262143:262145]),
        ("bytes=5-2000000", content[5:]),
        ("bytes=-2000000", content),
    ):
        a = get(value)
        check(f"range {value} is what it says", a.status == 206 and a.body == part, f"{a.status} {len(a.body)}")
    for value in ("bytes=1000000-", "bytes=1000000-1000001", "bytes=-0"):
        a = get(value)
        check(
            f"range {value} is 416 with the size",
            error(a, 416) and a.headers["content-range"] == "bytes */1000000",
            f"{a.status} {a.headers} {a.body[:200]}",
        )
    for value in (
        "bytes=5-4",
        "bytes=a-b",
        "bytes",
        "lines=1-2",
        "bytes=--1",
        "bytes=1-2-3",
        "bytes=18446744073709551616-",
        "bytes=0-18446744073709551616",
    ):
        a = get(value)
        check(
            f"range {value} is refused or ignored",
            error(a, 416) or a.status in (200, 206) and len(a.body) <= len(content),
            f"{a.status} {a.body[:100]}",
        )
    a = get("bytes=0-9,20-29")
    check("two ranges come as one answer", a.status in (200, 206), a.status)
    for what, value in (
        ("5,000 ranges of one byte", "bytes=" + ",".join(f"{2 * i}-{2 * i}" for i in range(5000))),
        ("1,000 times the whole", "bytes=" + ",".join(["0-"] * 1000)),
        ("1,000 overlapping", "bytes=" + ",".join(f"{i}-999999" for i in range(1000))),
    ):
        began = time.monotonic()
        a = get(value)
        check(
            f"{what} cost no more than the file",
            a.status in (200, 206, 400, 416) and len(a.body) < 2 * len(content) and time.monotonic() - began < 10,
            f"{a.status}, {len(a.body)} bytes, {time.monotonic() - began:.1f} s",
        )
    check(
        "If-Range with another tag gives the whole",
        len(get("bytes=0-0", **{"If-Range": '"other"'}).body) == len(content),
    )
    check("If-Range with the tag gives the part", get("bytes=0-0", **{"If-Range": tag}).body == content[:1])
    check(
        "If-None-Match gives 304 without a body",
        (lambda a: a.status == 304 and a.body == b"" and a.headers["etag"] == tag)(
            send("GET", path, headers=[("If-None-Match", tag)])
        ),
    )
    check("If-Match with another tag gives 412", error(send("GET", path, headers=[("If-Match", '"other"')]), 412))
    h = send("HEAD", path)
    check(
        "HEAD has the headers and no body",
        h.status == 200 and h.body == b"" and h.headers["content-length"] == "1000000" and h.headers["etag"] == tag,
        h.headers,
    )
    send("DELETE", path)
    check("a deleted file is gone", error(send("GET", path), 404))


def paths():
    for path in (
        "/api/files/../../etc/passwd",
        "/api/files/..%2f..%2fetc%2fpasswd",
        "/api/files/%2e%2e",
        "/api/files/%00",
        "//evil.example/api/files",
        "/api//files",
        "/api/files/",
        "/./health",
        "/health/",
        "/health%20",
        "/health%00",
        "/HEALTH",
        "/api/files/a/b/c",
        "/tools/call/../call",
        "/api/files/%ff%fe",
        "/api/files/" + "a" * 20000,
        "/tools%2Fcall",
        "/api/files;x=y",
        "/%2e/health",
        "/api/files/metadata",
    ):
        a = send("GET", path)
        check(
            f"path {path[:40]} is 404 or 400",
            error(a, (400, 404, 405)) and "location" not in a.headers,
            f"{a.status} {a.body[:200]}",
        )
    for ref in ("atlas", "anna%2Fatlas", "anna%2fatlas"):
        a = send("GET", f"/api/projects/{ref}", token=member)
        check(
            f"project {ref} is found by its member",
            a.status == 200 and a.json()["project_id"] == "atlas",
            f"{a.status} {a.body[:200]}",
        )
    for ref in (
        "%2F",
        "anna%2F",
        "%2Fatlas",
        "anna%2Fatlas%2F",
        "anna%252Fatlas",
        "..%2Fatlas",
        "%00",
        "ben%2Fatlas",
        "a%2Fb%2Fc",
    ):
        for path in (f"/api/projects/{ref}", f"/api/projects/{ref}/members", f"/api/projects/{ref}/members/anna"):
            a = send("GET", path, token=member)
            check(f"path {path} is refused", error(a, (400, 404, 405)), f"{a.status} {a.body[:200]}")


def bodies():
    a, first = call({"action": "store", "content": "first", "metadata": {"k": 1}})
    dup = send(
        "POST",
        "/tools/call",
        '{"name":"list_collections","name":"memory","arguments":{"action":"delete","action":"retrieve","id":"%s"}}'
        % first["id"],
    )
    check(
        "of keys that come twice one counts, everywhere the same",
        dup.status in (200, 400),
        f"{dup.status} {dup.body[:200]}",
    )
    a = send(
        "POST",
        "/api/mcp-tokens",
        '{"name":"x","scopes":["memory:read"],"scopes":["memory:read","admin"]}',
        token=member,
    )
    check(
        "repeated scopes grant nothing more",
        a.status in (400, 403) or a.status == 200 and "admin" not in a.json()["scopes"],
        f"{a.status} {a.body[:200]}",
    )
    file = uploaded("bodies.txt", "text/plain", b"x")["id"]
    for body in (
        "null",
        "true",
        "7",
        '"x"',
        "[]",
        "[{}]",
        "",
        " ",
        "{",
        "{}{}",
        "\ufeff{}",
        "{'name':'memory'}",
        '{"name":"memory",}',
        "nan",
        '{"name":7}',
        "[" * 100_000,
        '{"a":' * 100_000,
        b'{"name":"\xff"}',
    ):
        for method, path in (
            ("POST", "/tools/call"),
            ("POST", "/api/mcp-tokens"),
            ("PUT", f"/api/files/{file}/metadata"),
            ("POST", "/api/projects/atlas/members"),
        ):
            if body == '{"name":7}' and "files" in path:
                continue  # it has no name, and ignores what it does not know
            a = send(method, path, body)
            check(f"{method} {path[:20]} with {body[:20]!r} is 400", error(a, 400), f"{a.status} {a.body[:200]}")
    for body in (
        '{"name":null}',
        '{"name":"memory","arguments":null}',
        '{"name":"memory","arguments":[]}',
        '{"name":"memory","arguments":"{"}',
        '{"name":"\\ud800"}',
    ):
        a = send("POST", "/tools/call", body)
        check(f"a call with {body} is refused", error(a, (400, 404)), f"{a.status} {a.body[:200]}")
    a = send("POST", "/tools/call", b"x" * (9 << 20))
    check("a body of 9 MiB is refused", error(a, 400), a.status)
    a = send("POST", "/tools/call", "{}", headers=[("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
    check("a gzipped body is refused in words", error(a, 400), f"{a.status} {a.body[:200]}")
    for arguments in (
        {"action": "search", "query": "x", "limit": 1e308},
        {"action": "search", "query": "a" * 200_000},
        {"action": "search", "query": '" OR 1 NEAR( * ^ -'},
        {"action": "search", "query": "\x00"},
        {"action": "search", "query_embedding": [1e39] * 256},
        {"action": "search", "query_embedding": []},
        {"action": "search", "query": "x", "filter": {"$where": "1"}},
        {"action": "search", "query": "x", "offset": 10**18},
        {"action": "store", "content": ""},
        {"action": "store", "content": "x", "metadata": {"__proto__": {"a": 1}, "constructor": 1}},
        {"action": "store", "content": "x", "tags": ["t"] * 10_000},
        {"action": "store", "content": "x", "collection_name": "'; DROP TABLE memory; --"},
        {"action": "retrieve", "id": {"$ne": None}},
        {"action": "retrieve", "id": "%"},
        {"action": "get_context", "query": "x", "token_budget": -1},
        {"action": "store", "content": "x", "related_memory_ids": ["a"] * 100_000},
        {"action": "get_context", "project_id": "a/b/c"},
    ):
        a, _ = call(arguments)
        check(
            f"arguments {json.dumps(arguments)[:70]} are answered",
            a.status == 200 or error(a, (400, 404)),
            f"{a.status} {a.body[:200]}",
        )
    a, found = call({"action": "search", "query": "maps in tiles"})
    check("the store is still there", found and found["results"], a.body[:200])


def headers():
    big = "x" * 200_000
    got, _ = raw(f"GET /health HTTP/1.1\r\nHost: x\r\nX-Big: {big}\r\n\r\n".encode())
    check("a header of 200 KB is 431", b" 431 " in got[:40], got[:100])
    got, _ = raw(b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20000)) + b"\r\n")
    check("20,000 headers are 431", b" 431 " in got[:40], got[:100])
    got, _ = raw(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    check("a target of 200 KB is refused", b" 431 " in got[:40] or b" 414 " in got[:40], got[:100])
    for what, sent in {
        "both lengths": f"POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n"
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n"
        "Host: x\r\n\r\n",
        "two lengths": "POST /tools/call HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
        "no host": "GET /health HTTP/1.1\r\n\r\n",
        "two hosts": "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "a bare line feed in a header": "GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        "a folded header": "GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
        "HTTP/2 without asking": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/9.9": "GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
        "a chunk of a huge size": f"POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n"
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    }.items():
        got, took = raw(sent.encode())
        check(
            f"a request with {what} is answered or dropped",
            b" 500 " not in got and took < 15,
            f"{took:.1f} s {got[:200]}",
        )
    a = send(
        "POST",
        "/api/files",
        "",
        headers=[("X-HTTP-Method-Override", "GET"), ("X-HTTP-Method", "DELETE"), ("X-Method-Override", "GET")],
    )
    check("methods are not overridden", a.status == 405, a.status)
    a = send("GET", "/health?_method=DELETE")
    check("nor in the query", a.status == 200, a.status)
    for name in ("X-Forwarded-Host", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "Forwarded"):
        a = send("GET", "/api/files", token=None, headers=[(name, "evil.example/admin")])
        check(f"{name} is not believed", a.status == 401 and "evil" not in str(a.headers), a.headers)
    a = send("GET", "/health", headers=[("Origin", "https://evil.example")])
    check("another origin does not get the cookie", "access-control-allow-credentials" not in a.headers, a.headers)
    for method in ("TRACE", "CONNECT", "PROPFIND", "get", "G" * 1000):
        a = send(method, "/health")
        check(f"method {method[:10]} is refused", a.status in (400, 404, 405), f"{a.status} {a.body[:100]}")
    for path, allowed in (
        ("/health", "GET, HEAD, OPTIONS"),
        ("/api/files/x", "DELETE, GET, HEAD, OPTIONS"),
        ("/tools/call", "OPTIONS, POST"),
    ):
        a = send("OPTIONS", path, token=None)
        check(
            f"OPTIONS {path} lists the methods",
            a.status == 204 and a.headers["allow"] == allowed and a.body == b"",
            a.headers,
        )
    for path in ("/health", "/tools", "/openapi.json", "/api/projects", "/api/nothing", "/api/files"):
        get, head = send("GET", path), send("HEAD", path)
        same = {k: v for k, v in get.headers.items() if k not in ("date", "x-request-id")} == {
            k: v for k, v in head.headers.items() if k not in ("date", "x-request-id")
        }
        check(
            f"HEAD {path} is GET without its body",
            get.status == head.status and same and head.body == b"",
            f"{get.headers} {head.headers}",
        )


def credentials():
    for header in (
        "Bearer",
        "Bearer ",
        "Bearer mcp_",
        "Bearer " + admin[:-1],
        "Bearer " + admin + "x",
        "Bearer " + admin + " " + admin,
        "Bearer " + admin.upper(),
        "Bearer eyJhbGciOiJub25lIn0.eyJ1c2VyX2lkIjoiYSJ9.",
        "Bearer " + "a." * 5000,
        "Bearer mcp_' OR 1=1",
    ):
        a = send("GET", "/api/files", token=None, headers=[("Authorization", header)])
        check(
            f"Authorization {header[:24]!r} is 401",
            error(a, 401) and 'error="invalid_token"' in a.headers["www-authenticate"],
            f"{a.status} {a.headers}",
        )
    for header in ("Basic " + admin, "Digest x", "Bearer\t" + admin):
        a = send("GET", "/api/files", token=None, headers=[("Authorization", header)])
        check(f"Authorization {header[:10]!r} is none", error(a, 401), a.status)
    for where, kwargs in {
        "x-mcp-token": {"headers": [("x-mcp-token", admin)]},
        "the cookie": {"headers": [("Cookie", "auth_token=" + admin)]},
    }.items():
        check(f"a token in {where} is taken", send("GET", "/api/files", token=None, **kwargs).status == 200)
    check(
        "a token without a scheme is taken",
        send("GET", "/api/files", token=None, headers=[("Authorization", admin)]).status == 200,
    )
    check("a token in the query is taken", send("GET", "/api/files?token=" + admin, token=None).status == 200)
    check(
        "a bad one in Authorization is not mended by a good one elsewhere",
        error(send("GET", "/api/files?token=" + admin, token="mcp_bad", headers=[("x-mcp-token", admin)]), 401),
    )
    a = send(
        "POST",
        "/tools/call",
        "{}",
        token=None,
        headers=[
            ("Cookie", "auth_token=" + admin),
            ("Origin", "https://evil.example"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Content-Type", "application/json"),
        ],
    )
    check("a page of another origin cannot use the cookie", error(a, 403), f"{a.status} {a.body[:200]}")
    for path in (
        "/api/files?token=%zz",
        "/nothing?token=" + admin,
        "/api/files/" + admin + "?token=" + limited,
        "/api/files?token=" + admin + "&token=x",
    ):
        send("GET", path, token=None)  # must not appear in the log
    raw(f"GET /api/files?token={admin} HTTP/1.1\r\nBroken {admin}\r\n\r\n".encode())
    raw(
        (
            f"GET http://u:{admin}@x/api/files?token={admin} HTTP/1.1\r\nHost: x\r\n"
            f"Referer: http://x/?token={admin}\r\nUser-Agent: {admin}\r\nX-Request-Id: {admin}\r\n"
            "Connection: close\r\n\r\n"
        ).encode()
    )
    for method, path, body in (
        ("POST", "/api/files/upload", None),
        ("GET", "/api/files", None),
        ("PUT", "/api/user-preferences", "{}"),
        ("POST", "/api/mcp-tokens", '{"name":"x"}'),
        ("DELETE", "/api/projects/atlas/members/ben", None),
    ):
        a = send(method, path, body, token=limited)
        check(
            f"{method} {path} is refused to a token that only reads memories",
            error(a, 403) and 'error="insufficient_scope"' in a.headers["www-authenticate"],
            f"{a.status} {a.headers}",
        )
    a, _ = call({"action": "store", "content": "x"}, token=limited)
    check("so is storing", error(a, 403), a.body[:200])
    a, _ = call({"action": "store", "content": "x", "project_id": "anna/atlas"}, token=member)
    check("and to a reader of the project", error(a, 403), a.body[:200])


def crowds():
    def one(i):
        content = bytes([i]) * (1_000_000 + i)
        f = uploaded(f"crowd{i}.bin", "application/octet-stream", content)
        return (
            isinstance(f, dict)
            and f["sha256"] == hashlib.sha256(content).hexdigest()
            and send("GET", "/api/files/" + f["id"]).body == content
        )

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        check("24 uploads at once arrive whole", all(pool.map(one, range(24))))
        stored = list(pool.map(lambda i: call({"action": "store", "content": f"crowd {i}"})[1]["id"], range(200)))
    check("200 stores at once are 200 memories", len(set(stored)) == 200)
    idle = []
    for _ in range(500):
        s = socket.create_connection((host, port))
        s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        idle.append(s)
    began = time.monotonic()
    check(
        "500 connections that say nothing do not keep others out",
        send("GET", "/health").status == 200 and time.monotonic() - began < 5,
    )
    for s in idle:
        s.close()
    f = uploaded("large.bin", None, b"z" * (24 << 20))
    for _ in range(8):  # clients that take the beginning of an answer and leave
        with socket.create_connection((host, port)) as s:
            s.sendall(f"GET /api/files/{f['id']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n\r\n".encode())
            s.recv(1000)
    check("clients that disconnect mid-answer harm no one", send("GET", "/health").status == 200)


def main():
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(slow)
        for attack in (multipart, names, browsers, ranges, paths, bodies, headers, credentials, crowds):
            print(f"-- {attack.__name__}", flush=True)
            attack()
        print("-- slow", flush=True)
        waiting.result()
    check("the server is well", send("GET", "/health").status == 200)
    print(f"{len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
