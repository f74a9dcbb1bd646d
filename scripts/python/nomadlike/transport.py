"""HTTP to the agents of one cluster, over TLS, with connections that are kept.

An agent is known by its certificate, not by its address: it must be of the cluster's CA and say that it is
a server, because whoever is root on a node holds that node's certificate and must not be told a token. No
proxy of the environment is asked, and no redirect is followed: a token goes to servers of the cluster alone.
"""

import http.client
import json
import os
import random
import re
import socket
import ssl
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlencode

from .errors import Error, InternalError, Invalid, OutcomeUnknown, Unavailable, Untrusted, told
from .settings import Settings, failure

SERVER_NAME = "server.nomadlike"  # no certificate has it: nodes pass what asks for it on to a server, unopened
HEADER_INDEX = "X-Nomadlike-Index"
TRAILER_ERROR = "X-Nomadlike-Error"

ANSWER_MAX = 64 << 20  # bytes of a JSON answer
ERROR_MAX = 1 << 20
LINE_MAX = 1 << 20  # bytes of a line: tasks print what they like
IDLE_MAX = 8  # connections that are kept
IDLE_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 2.0
PATIENCE_ALONE, PATIENCE_OF_MANY = 10.0, 2.0  # with an agent that does not take a connection

_IDENTITY = re.compile(r"nomadlike://([a-z0-9-]{1,64})/(server|client)/([a-z0-9-]{1,64})\Z")
_CLUSTER = re.compile(r"nomadlike://([a-z0-9-]{1,64})/ca\Z")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Answer(Dict[str, Any]):
    """The JSON of an answer, and at which index of the state it was read."""

    index = 0


class _Response(http.client.HTTPResponse):
    """A response that keeps its trailer: it tells why a stream broke off."""

    trailer: Optional[bytes] = None

    def _read_and_discard_trailer(self) -> None:
        size = 0
        while size < ERROR_MAX:
            line = self.fp.readline(ERROR_MAX)  # type: ignore[attr-defined]
            size += len(line)
            if line in (b"\r\n", b"\n", b""):
                return
            name, _, value = line.partition(b":")
            if name.strip().lower() == TRAILER_ERROR.lower().encode():
                self.trailer = value.strip()


class Connection(http.client.HTTPConnection):
    """A connection to an agent."""

    response_class = _Response

    def __init__(self, host: str, port: int, patience: float, timeout: float, tls: "Callable[[socket.socket], socket.socket]"):
        super().__init__(host, port, timeout=patience)
        self._then, self._tls = timeout, tls
        self.idle_since = 0.0

    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), self.timeout)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 15000)):
                if hasattr(socket, option):  # a machine that fell silent is noticed while a stream has nothing to say
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            self.sock = self._tls(raw)
        except BaseException:
            raw.close()
            raise
        self.patient(self._then)

    def patient(self, seconds: Optional[float]) -> None:
        """How long a silence may last from now on; None for ever."""
        if self.sock is not None:
            self.sock.settimeout(seconds)


class Stream:
    """A body that comes bit by bit. Close it, or use it in a with statement."""

    def __init__(self, transport: "Transport", connection: Connection, response: http.client.HTTPResponse, address: str):
        self._transport, self._connection, self._response, self._address = transport, connection, response, address
        self.headers = response.headers

    def read(self, size: int = 1 << 16) -> bytes:
        """At most size bytes as soon as there are some; b"" at the end. What broke off is an error."""
        try:
            data = self._response.read1(size)
        except (OSError, http.client.HTTPException, ValueError) as err:
            self.close()
            raise self._transport.failure(Unavailable, "python.broken", address=self._address, reason=_cause(err)) from err
        if data or size == 0:
            return data
        trailer, left = getattr(self._response, "trailer", None), self._response.length
        self.close()
        if trailer:
            try:
                raise told(json.loads(trailer))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise self._transport.failure(Unavailable, "python.broken", address=self._address, reason=trailer.decode("utf-8", "replace")) from None
        if left:
            raise self._transport.failure(Unavailable, "python.broken", address=self._address, reason="%d bytes are missing" % left)
        return b""

    def all(self) -> bytes:
        """Everything up to the end."""
        parts = []
        with self:
            while True:
                data = self.read()
                if not data:
                    return b"".join(parts)
                parts.append(data)

    def lines(self) -> Iterator[bytes]:
        """Line by line, without what ends them. A line over LINE_MAX bytes comes in pieces."""
        rest = b""
        while True:
            data = self.read()
            if not data:
                break
            whole, rest = split_lines(rest, data)
            yield from whole
        if rest:
            yield rest

    def __iter__(self) -> Iterator[bytes]:
        return self.lines()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it."""
        self._connection.close()


class Transport:
    """Connections to the agents of one cluster. Any number of threads may use it."""

    def __init__(self, settings: Settings, timeout: float):
        self.settings, self.timeout = settings, timeout
        self._current = 0
        self._idle: List[Tuple[int, Connection]] = []  # with the number of its address
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._trust(settings.ca)

    def failure(self, kind: type, id: str, **params: Any) -> Error:
        return failure(kind, id, self.settings.language, **params)

    def _trust(self, ca: str) -> None:
        """Lets only servers of the CA's cluster answer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the identity in the certificate is checked instead, see _secure
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_flags |= 0x80000  # X509_V_FLAG_PARTIAL_CHAIN: what is trusted need not be a root
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError) as err:
            raise self.failure(Invalid, "python.bad_ca", reason=err) from err
        clusters = {match.group(1) for cert in context.get_ca_certs() for match in [_CLUSTER.match(uri) for uri in _uris(cert)] if match}
        if len(clusters) != 1:
            raise self.failure(Invalid, "python.bad_ca", reason="it names no cluster" if not clusters else "it names several clusters")
        self._context, self._cluster = context, clusters.pop()

    def _secure(self, raw: socket.socket) -> socket.socket:
        secured = self._context.wrap_socket(raw, server_hostname=SERVER_NAME)
        uris = _uris(secured.getpeercert() or {})
        match = _IDENTITY.match(uris[0]) if len(uris) == 1 else None
        if match is None or match.group(1) != self._cluster or match.group(2) != "server":
            secured.close()
            raise ssl.SSLCertVerificationError(1, "its certificate is of %s" % (", ".join(uris) or "nobody"))
        return secured

    def _dial(self, host: str, port: int, patience: float) -> Connection:
        return Connection(host, port, patience, self.timeout, self._secure)

    def _take(self, at: int) -> Optional[Connection]:
        """A connection to an address that was used before and is free."""
        with self._lock:
            if self._pid != os.getpid():  # this is a child: the connections are the parent's
                self._idle, self._pid = [], os.getpid()
            for i in range(len(self._idle) - 1, -1, -1):
                number, connection = self._idle[i]
                if time.monotonic() - connection.idle_since > IDLE_SECONDS:
                    self._idle.pop(i)[1].close()
                elif number == at:
                    return self._idle.pop(i)[1]
        return None

    def _give(self, at: int, connection: Connection) -> None:
        connection.idle_since = time.monotonic()
        connection.patient(self.timeout)
        with self._lock:
            if len(self._idle) < IDLE_MAX and self._pid == os.getpid():
                self._idle.append((at, connection))
                return
        connection.close()

    def close(self) -> None:
        """Drops the connections that are free."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _connect(self, at: int) -> Connection:
        host, port = self.settings.addresses[at]
        patience = PATIENCE_OF_MANY if len(self.settings.addresses) > 1 else PATIENCE_ALONE
        learned = False
        while True:
            connection = self._dial(host, port, patience)
            try:
                connection.connect()
                return connection
            except ssl.SSLCertVerificationError as err:
                if not learned and self._learn():
                    learned = True
                    continue
                raise self.failure(Untrusted, "python.untrusted", address=_shown(host, port), reason=_cause(err)) from err
            except OSError as err:
                error = self.failure(Unavailable, "python.unreachable", address=_shown(host, port), reason=_cause(err))
                error.nothing_done = True
                raise error from err

    def _learn(self) -> bool:
        """Takes the CA that another program has learned meanwhile."""
        now = self.settings.remembered().get("ca", "") if self.settings.remembers_ca else ""
        if not now or now == self.settings.ca:
            return False
        self.settings.ca = now
        self._trust(now)
        return True

    def send(
        self, method: str, path: str, query: Dict[str, Any], headers: Dict[str, str], body: Optional[bytes], safe: bool, retry_for: float, timeout: Optional[float]
    ) -> Tuple[int, Connection, http.client.HTTPResponse]:
        """Sends a request until it is answered, cannot be repeated, or retry_for seconds have passed. Safe is what
        may be repeated when its outcome is not known."""
        until, pause = time.monotonic() + retry_for, FIRST_PAUSE
        values = {key: ("true" if value else "false") if isinstance(value, bool) else value for key, value in query.items() if value is not None}
        target = path + ("?" + urlencode(values) if values else "")
        sent = {name: value.encode("utf-8") for name, value in headers.items()}
        while True:
            try:
                return self._once(method, target, sent, body, safe, timeout)
            except Unavailable as err:
                self._current += 1  # another may know more
                lasting = err.id.endswith(".disk_full")  # until somebody has made room
                if lasting or not (safe or err.nothing_done) or time.monotonic() + pause > until:
                    raise
            time.sleep(pause * random.uniform(0.75, 1))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, method: str, target: str, headers: Dict[str, bytes], body: Optional[bytes], safe: bool, timeout: Optional[float]) -> Tuple[int, Connection, http.client.HTTPResponse]:
        at = self._current % len(self.settings.addresses)
        # A free connection may have ended without our knowing: what may not be sent twice gets one of its own.
        connection = self._take(at) if safe else None
        used, connection = connection is not None, connection or self._connect(at)
        address = _shown(*self.settings.addresses[at])
        try:
            connection.patient(timeout)
            connection.request(method, target, body, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as err:
            connection.close()
            if used:
                return self._once(method, target, headers, body, safe, timeout)
            if safe:
                raise self.failure(Unavailable, "python.broken", address=address, reason=_cause(err)) from err
            raise self.failure(OutcomeUnknown, "python.unknown", address=address, request=method + " " + target.partition("?")[0]) from err
        except BaseException:  # Ctrl-C, or what cannot be sent
            connection.close()
            raise
        if response.status < 300:
            return at, connection, response
        raise self._refusal(at, connection, response, address)

    def _refusal(self, at: int, connection: Connection, response: http.client.HTTPResponse, address: str) -> Error:
        try:
            data = self._body(response, ERROR_MAX)
        except (OSError, http.client.HTTPException, ValueError) as err:
            connection.close()
            return self.failure(Unavailable, "python.broken", address=address, reason=_cause(err))
        self._give(at, connection)
        try:
            return told(json.loads(data), response.status, response.headers.get("X-Request-Id", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass  # it is something that stands in between
        kind = Unavailable if response.status in (502, 503) else InternalError
        if 300 <= response.status < 400 and response.headers.get("Location"):
            error = self.failure(InternalError, "python.redirect", address=address, target=response.headers["Location"][:200])
        else:
            error = self.failure(kind, "python.foreign", address=address, status=response.status, answer=data[:200].decode("utf-8", "replace").strip())
        error.status = response.status
        return error

    @staticmethod
    def _body(response: http.client.HTTPResponse, most: int) -> bytes:
        """A body that is whole, or an error."""
        parts, size = [], 0
        while True:
            part = response.read(min(1 << 20, most + 1 - size))
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > most:
                raise ValueError("it has more than %d bytes" % most)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def headers(self) -> Dict[str, str]:
        """What every request says."""
        headers = {"Accept-Language": self.settings.language, "X-Nomadlike-Request": "python", "User-Agent": "nomadlike-python"}
        if self.settings.token:
            headers["Authorization"] = "Bearer " + self.settings.token
        if self.settings.project:
            headers["X-Nomadlike-Project"] = self.settings.project
        return headers

    def call(self, method: str, path: str, query: Dict[str, Any], headers: Dict[str, str], body: Any, safe: bool, retry_for: float) -> Answer:
        """Sends a request and reads the JSON of its answer."""
        sent = self.headers()
        sent.update(headers)
        if body is not None and not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body, allow_nan=False).encode("utf-8")
            sent["Content-Type"] = "application/json"
        elif body is not None:
            sent["Content-Type"] = "application/octet-stream"
        timeout = self.timeout
        if query.get("index"):
            timeout += span_seconds(str(query.get("wait") or "10m"))
        until = time.monotonic() + retry_for
        while True:
            at, connection, response = self.send(method, path, query, sent, body, safe, max(until - time.monotonic(), 0), timeout)
            address = _shown(*self.settings.addresses[at])
            try:
                data = self._body(response, ANSWER_MAX)
                break
            except (OSError, http.client.HTTPException, ValueError) as err:
                connection.close()
                kind = Unavailable if safe else OutcomeUnknown
                if not safe or time.monotonic() + LONGEST_PAUSE > until:
                    raise self.failure(kind, "python.broken", address=address, reason=_cause(err)) from err
            except BaseException:  # Ctrl-C
                connection.close()
                raise
            time.sleep(random.uniform(0.2, 0.4))
        self._give(at, connection)
        try:
            value = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError) as err:
            raise self.failure(InternalError, "python.not_json", address=address, reason=err) from err
        if not isinstance(value, dict):
            raise self.failure(InternalError, "python.not_json", address=address, reason="no object")
        answer = Answer(value)
        index = response.headers.get(HEADER_INDEX, "")
        answer.index = int(index) if index.isdigit() else 0
        return answer

    def stream(self, method: str, path: str, query: Dict[str, Any], body: Any, safe: bool, retry_for: float, timeout: Optional[float]) -> Stream:
        """Sends a request and leaves its answer to be read. Timeout bounds its silence; None is for what may be silent."""
        headers = self.headers()
        if body is not None and not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body, allow_nan=False).encode("utf-8")
            headers["Content-Type"] = "application/json"
        at, connection, response = self.send(method, path, query, headers, body, safe, retry_for, timeout)
        return Stream(self, connection, response, _shown(*self.settings.addresses[at]))


def split_lines(rest: bytes, data: bytes) -> Tuple[List[bytes], bytes]:
    """The lines that are whole with more data, and the rest."""
    *whole, rest = (rest + data).split(b"\n")
    while len(rest) > LINE_MAX:
        whole.append(rest[:LINE_MAX])
        rest = rest[LINE_MAX:]
    return whole, rest


def span_seconds(span: str) -> float:
    """The seconds of a span such as 1m30s."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _SPAN.findall(span))


def _uris(cert: Dict[str, Any]) -> List[str]:
    return [value for kind, value in cert.get("subjectAltName", ()) if kind == "URI"]


def _shown(host: str, port: int) -> str:
    return "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)


def _cause(err: BaseException) -> str:
    """The innermost text of a failure."""
    if isinstance(err, ssl.SSLCertVerificationError) and getattr(err, "verify_message", ""):
        return str(err.verify_message)
    if isinstance(err, socket.timeout):
        return "it did not answer in time"
    if isinstance(err, OSError) and err.strerror:
        return err.strerror
    return str(err) or type(err).__name__
