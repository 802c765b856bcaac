"""Values that break readers: texts, JSON values, path segments, headers and malformed requests."""

from typing import Any

DIGITS = "9" * 5000  # more than Python's int() takes

JSON_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**400, 1.5, 1e308, -0.0, [], {}, [[]], [None], {"": ""}, [{"a": [{}]}]),
    *("", "x", "1", "-1", "nan", "1e999", "0s", DIGITS, "\0", "\u202e", "é" * 300, "../..", "$(A)" * 50, "a" * 70_000),
    *("gs://", "gs://bucket-0/target", "gs://bucket-0/../x", ["x"] * 3000, {f"k{i}": i for i in range(3000)}),
)
JSON_TEXTS = (
    *(b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"null", b"[]", b"1" * 5000, b'{"a":NaN}', b'{"a":1,"a":2}'),
    *(b'{"k":[' + b"[]," * 99_000 + b"[]]}", b'{"a":"' + b"x" * (4 << 20) + b'"}', b" " * (5 << 20)),
)
TEXTS = (
    *("", "0", "-1", "1", "50", "1001", DIGITS, "²", "x", "%", "\0", "\n", "é", "\ud800", "a" * 9000, "*", "../../etc"),
    *('state="JOB_STATE_RUNNING"', "labels.a:*", "(" * 3000, "NOT " * 2000, '"', "a=b AND " * 500 + "a=b", "a:*", "/"),
    *(
        "createTime>2026",
        "display_name desc",
        "createTime",
        "name,displayName",
        "****",
        "e30=",
        "WzEsICJhIl0=",
        "gs://",
    ),
)
SEGMENTS = (
    "",
    ".",
    "..",
    "%2e%2e",
    "%2F",
    "%00",
    "%ff",
    "~",
    "x" * 300,
    ":cancel",
    "a:b",
    "é",
    "\\",
    "*",
    "{id}",
    DIGITS,
)
TARGETS = ("*", "http://evil.example/", "//", "/\\")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
QUERY_NAMES = (
    *("filter", "pageSize", "pageToken", "readMask", "orderBy", "page_size", "alt", "fields", "prefix"),
    *("delimiter", "maxResults", "uploadType", "upload_id", "name", "generation", "ifGenerationMatch", "uri", "text"),
    *("state", "before", "id", "job", "token", "timeout", "versions", "project", "x"),
    *("$alt", "callback", "projection", "userProject"),
)
BUCKETS = (*(f"bucket-{number}" for number in range(4)), "special", "special")
NO_BUCKETS = ("..", "a", "%2e%2e", "x" * 300, "Bad", "%ff")
STORED_OBJECTS = (
    *("target", "folder", "folder/", "folder/secret", "changing", "pipe", "device", "socket", "zeros", "deep/deep/"),
    *("many/00001", "link", "linked/secret", "a b%2F..;é", "odd", "model/weights"),
)
OBJECTS = (*STORED_OBJECTS, "../secret", "x" * 1025, "d/" * 400 + "f", "\0", "caf\udce9", "/x", "x//", "")
HEADERS = (
    *(("Range", text) for text in ("bytes=0-", "bytes=-1", "bytes=5-2", "bytes=9-" + "9" * 20, "bytes=a-b", "x")),
    *(("Range", text) for text in ("bytes=", f"bytes={DIGITS}-", "bytes=" + "0-1," * 900)),
    *(("Origin", text) for text in ("null", "http://evil.example", "http://127.0.0.1:1", "\xff")),
    *(("Cookie", text) for text in ("a=\xff;;=", "vertex-emulator-1=" + "x" * 9000)),
    *(("Content-Range", text) for text in ("bytes 0-1/2", "bytes */*", f"bytes 5-1/{DIGITS}", "bytes 9-10/*", "x")),
    *(("x-goog-hash", text) for text in ("crc32c=AAAA", "md5", "=,=,", "md5=\xff")),
    *(
        ("Content-Encoding", "gzip"),
        ("Accept-Encoding", "gzip, br"),
        ("Authorization", "Bearer \xff"),
        ("If-Range", "x"),
    ),
    *(("Expect", "100-continue"), ("Connection", "close"), ("Connection", "Upgrade"), ("Upgrade", "websocket")),
    *(("If-None-Match", "*"), ("X", "y" * 20_000), ("Host", "evil.example")),
)
_POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
MALFORMED_REQUESTS = (
    *(
        b"\0" * 100,
        b"GET\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\0" * 30,
    ),
    *(b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /" + b"a" * 70_000),
    *(_POST + b"Content-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 9000 + b"\r\n"),
    *(
        _POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        _POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    ),
    _POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
)
