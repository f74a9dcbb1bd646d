"""What the client does when a cluster does not answer as it should. No cluster is needed."""

import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import nomadlike  # noqa: E402
import nomadlike.job  # noqa: E402
from nomadlike.settings import Settings, parse_addresses  # noqa: E402
from nomadlike.transport import Transport, span_seconds  # noqa: E402

nomadlike.job.AGAIN = 0.05

AWAY = {"code": "unavailable", "id": "server.no_leader", "message": "there is no leader"}


class Agent:
    """A server that answers as a test has written down, in turn; the last answer stays."""

    def __init__(self, *answers):
        self.answers, self.seen, self.connections = list(answers), [], 0
        agent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                agent.connections += 1
                super().setup()

            def serve(self):
                size = int(self.headers.get("Content-Length") or 0)
                agent.seen.append((self.command, self.path, dict(self.headers), self.rfile.read(size)))
                answer = agent.answers.pop(0) if len(agent.answers) > 1 else agent.answers[0]
                answer(self)

            do_GET = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = "https://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def bodies(self):
        return [json.loads(body) for _, _, _, body in self.seen]


def says(status, body, **headers):
    def answer(request):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    return answer


def torn(body, missing=10):
    """An answer that ends before its length."""

    def answer(request):
        request.send_response(200)
        request.send_header("Content-Length", str(len(body) + missing))
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = True

    return answer


def chunks(*parts, end=b"0\r\n\r\n"):
    def answer(request):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for part in parts:
            request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        request.wfile.write(end)
        request.close_connection = not end

    return answer


def silent(request):
    """The connection ends without an answer."""
    request.close_connection = True


def ends(body):
    """An answer behind which the connection ends without a word about it."""

    def answer(request):
        says(200, body)(request)
        request.close_connection = True

    return answer


class Plain(Transport):
    """Without TLS: what secures the connection has a test of its own."""

    def _trust(self, ca):
        pass

    def _secure(self, raw):
        return raw


class ClientCase(unittest.TestCase):
    def agent(self, *answers):
        agent = Agent(*answers)
        self.addCleanup(agent.server.server_close)
        self.addCleanup(agent.server.shutdown)
        return agent

    def client(self, *agents, **options):
        env = dict({"NOMADLIKE_CONFIG_DIR": "/nonexistent"}, **options.pop("env", {}))
        address = ",".join(one if isinstance(one, str) else one.address for one in agents)
        original, nomadlike.client.Transport = nomadlike.client.Transport, Plain
        try:
            client = nomadlike.Client(address, "secret", ca="-----BEGIN", env=env, **dict({"retry_for": 5}, **options))
        finally:
            nomadlike.client.Transport = original
        self.addCleanup(client.close)
        return client


class Repeating(ClientCase):
    def test_reads_are_repeated(self):
        for first in (says(503, AWAY), torn(b'{"jobs": ['), silent, chunks(b'{"jobs"', end=b"")):
            agent = self.agent(first, says(200, {"jobs": []}, X_Nomadlike_Index="7"))
            answer = self.client(agent).jobs_list()
            self.assertEqual(({"jobs": []}, 7, 2), (answer, answer.index, len(agent.seen)))

    def test_a_submission_is_repeated_under_one_key(self):
        agent = self.agent(silent, torn(b"{"), says(200, {"job_id": "1f", "name": "x", "number": 3, "later": {"a": [1]}}))
        job = self.client(agent).submit({"name": "x"}, name="y")
        self.assertEqual(("1f", "x", 3), (job.id, job.name, job.number))
        self.assertEqual([{"job": {"name": "y"}}] * 3, agent.bodies())  # what is not set is not sent
        self.assertEqual(1, len({headers["Idempotency-Key"] for _, _, headers, _ in agent.seen}))

    def test_what_may_have_been_done_is_not_repeated(self):
        for first in (silent, torn(b"{")):
            agent = self.agent(first, says(200, {}))
            with self.assertRaises(nomadlike.OutcomeUnknown):
                self.client(agent).jobs_stop("1f", {})
            self.assertEqual(1, len(agent.seen))

    def test_what_was_not_done_is_repeated(self):
        agent = self.agent(says(503, AWAY), says(200, {"index": 5}))
        self.assertEqual(5, self.client(agent).jobs_stop("1f", {"reason": "enough"})["index"])
        self.assertEqual([{"reason": "enough"}] * 2, agent.bodies())

    def test_a_proxy_that_says_unavailable_may_have_passed_it_on(self):
        agent = self.agent(says(503, b"<html>busy"), says(200, {}))
        with self.assertRaises(nomadlike.Unavailable):
            self.client(agent).jobs_stop("1f", {})
        self.assertEqual(1, len(agent.seen))

    def test_the_next_address_is_asked(self):
        gone = self.agent(silent)
        gone.server.shutdown()
        gone.server.server_close()
        agent = self.agent(says(200, {"index": 1}))
        client = self.client(gone, agent)
        self.assertEqual(1, client.jobs_stop("1f", {})["index"])
        self.assertEqual(1, client.jobs_delete("1f")["index"])
        with self.assertRaisesRegex(nomadlike.Unavailable, "refused"):
            self.client(gone, retry_for=0.1).jobs_list()

    def test_trying_ends(self):
        agent = self.agent(says(503, AWAY))
        with self.assertRaises(nomadlike.Unavailable) as caught:
            self.client(agent, retry_for=0.3).jobs_list()
        self.assertEqual(("server.no_leader", 503), (caught.exception.id, caught.exception.status))
        self.assertLess(len(agent.seen), 20)
        full = self.agent(says(503, {"code": "unavailable", "id": "server.disk_full", "message": "full"}))
        with self.assertRaises(nomadlike.Unavailable):
            self.client(full).jobs_list()
        self.assertEqual(1, len(full.seen))

    def test_a_kept_connection_that_ended_is_replaced(self):
        agent = self.agent(ends({"n": 1}), says(200, {"n": 2}))
        client = self.client(agent, retry_for=0)
        self.assertEqual([{"n": 1}, {"n": 2}, {"n": 2}], [client.jobs_list() for _ in range(3)])
        self.assertEqual((3, 2), (len(agent.seen), agent.connections))


class Refusals(ClientCase):
    def test_errors_say_everything(self):
        problem = {"code": "invalid", "id": "jobspec.least", "params": {"line": "2"}, "message": "nodes is 0", "hint": "write 1"}
        body = {"code": "invalid", "id": "jobspec.errors", "message": "1 error", "details": [problem], "unheard_of": 1}
        agent = self.agent(says(400, body, X_Request_Id="r1"))
        with self.assertRaises(nomadlike.Invalid) as caught:
            self.client(agent).jobs_submit({"hcl": "x"})
        error = caught.exception
        self.assertEqual(("invalid", "jobspec.errors", 400, "r1"), (error.code, error.id, error.status, error.request_id))
        self.assertEqual(("jobspec.least", "2", "write 1"), (error.details[0].id, error.details[0].params["line"], error.details[0].hint))
        self.assertEqual("1 error\n  line 2: nodes is 0\n  write 1", str(error))

    def test_each_code_has_a_class(self):
        for code, kind in {"unauthorized": nomadlike.Unauthorized, "forbidden": nomadlike.Forbidden, "conflict": nomadlike.Conflict, "new": nomadlike.Error}.items():
            agent = self.agent(says(400, {"code": code, "id": "a.b"}))
            with self.assertRaises(kind) as caught:
                self.client(agent).jobs_list()
            self.assertEqual(("a.b", code), (str(caught.exception), caught.exception.code))

    def test_redirects_are_not_followed(self):
        other = self.agent(says(200, {}))
        for status in (301, 302, 307, 308):
            agent = self.agent(says(status, b"", Location=other.address.replace("https", "http") + "/v1/jobs"))
            with self.assertRaisesRegex(nomadlike.InternalError, "not followed"):
                self.client(agent).jobs_list()
            self.assertEqual("Bearer secret", agent.seen[0][2]["Authorization"])
        self.assertEqual([], other.seen)

    def test_proxies_of_the_environment_are_not_asked(self):
        proxy, agent = self.agent(says(200, {"who": "proxy"})), self.agent(says(200, {"who": "agent"}))
        old = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(old)))
        os.environ.update({name: proxy.address.replace("https", "http") for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy")})
        self.assertEqual({"who": "agent"}, self.client(agent).jobs_list())

    def test_answers_of_others(self):
        for answer, text in (
            (says(403, b"<html>who are you"), "who are you"),
            (says(200, b"<html>welcome"), "not JSON"),
            (says(200, b"[1]"), "not JSON"),
            (says(200, b"[" * 100000), "not JSON"),
            (says(404, b"[" * 100000), "404"),
            (says(400, {"code": "invalid", "id": "x", "details": 5}), "400"),
        ):
            with self.assertRaisesRegex(nomadlike.InternalError, text):
                self.client(self.agent(answer)).jobs_list()

    def test_errors_travel_between_processes(self):
        agent = self.agent(says(404, {"code": "not_found", "id": "a.b", "message": "gone", "params": {"job": "x"}}))
        with self.assertRaises(nomadlike.NotFound) as caught:
            self.client(agent).jobs_list()
        failed = nomadlike.JobFailed("x", {"state": "failed", "exit_code": 3, "reason": {"id": "r", "params": {"code": "3"}}})
        for error in (caught.exception, failed):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(error), str(error), vars(error)), (type(again), str(again), vars(again)))

    def test_what_is_asked_of_the_library_is_sent_as_it_is(self):
        agent = self.agent(says(200, {"job_id": "1f", "name": "x"}))
        client = self.client(agent, project="\u9879\u76ee")
        client.submit('job "x" {\n}\n', variables={"a": 1e-5, "b": True, "c": "true", "d": [1, "x"], "e": Decimal("0.10")}, set={"nodes": 2})
        self.assertEqual({"a": "1e-05", "b": "true", "c": "true", "d": '[1, "x"]', "e": "0.10"}, agent.bodies()[0]["variables"])
        self.assertEqual([{"at": "nodes", "value": 2}], agent.bodies()[0]["set"])
        self.assertEqual("\u9879\u76ee", agent.seen[0][2]["X-Nomadlike-Project"].encode("latin-1").decode())
        client.submit({"name": "x", "begin": "22:00"})
        self.assertRegex(agent.bodies()[1]["zone"], "^([A-Z].*|[+-][0-9]{2}:[0-9]{2})$")
        self.assertNotIn("zone", agent.bodies()[0])
        with self.assertRaises(ValueError):
            client.submit({"name": "x", "task": {"env": {"A": float("nan")}}})
        with self.assertRaisesRegex(nomadlike.Invalid, "before it is submitted"):
            client.submit({"name": "x"}, variables={"a": 1})
        self.assertEqual(2, len(agent.seen))

    def test_an_id_is_no_path(self):
        agent = self.agent(says(200, {}))
        self.client(agent).jobs_delete("../nodes/a?b=c\r\nX: y")
        self.assertEqual("/v1/jobs/..%2Fnodes%2Fa%3Fb%3Dc%0D%0AX%3A%20y", agent.seen[0][1])


class Following(ClientCase):
    def test_a_log_goes_on_where_it_broke_off(self):
        ran = {"allocations": [{"id": "a1", "rank": 0, "subjob": 0, "attempt": 1, "status": "running"}]}
        agent = self.agent(
            says(200, {"state": "running", "attempt": 1, "job": {}}, X_Nomadlike_Index="3"),
            says(200, ran),
            chunks(b"one\ntw", end=b""),
            says(200, {"status": "running"}),
            chunks(b"o\nthr\xffee"),
            says(200, {"state": "failed", "attempt": 1, "exit_code": 3, "job": {}}, X_Nomadlike_Index="4"),
            says(200, ran),
        )
        job = nomadlike.Job(self.client(agent), "1f", "x")
        self.assertEqual(["one", "two", "thr\ufffdee"], list(job.logs(follow=True)))
        self.assertIn("offset=6", agent.seen[4][1])
        self.assertIn("index=3&wait=30000ms", agent.seen[5][1])

    def test_a_line_without_end(self):
        agent = self.agent(chunks(*[b"x" * 70000] * 40 + [b"\nend"]))
        lines = [len(line) for line in self.client(agent).allocations_logs("a1")]
        self.assertEqual((2800000, 3), (sum(lines[:-1]), lines[-1]))
        self.assertLessEqual(max(lines), 1 << 20)

    def test_why_a_log_broke_off(self):
        refused = json.dumps({"code": "not_found", "id": "client.log_gone", "message": "it is gone"}).encode()
        agent = self.agent(chunks(b"one\n", end=b"0\r\nX-Nomadlike-Error: " + refused + b"\r\n\r\n"))
        lines = self.client(agent).allocations_logs("a1").lines()
        self.assertEqual(b"one", next(lines))
        with self.assertRaisesRegex(nomadlike.NotFound, "it is gone"):
            next(lines)
        with self.assertRaises(nomadlike.Unavailable):
            self.client(self.agent(torn(b"one\n"))).allocations_logs("a1").all()

    def test_waiting_outlasts_servers(self):
        agent = self.agent(
            says(200, {"state": "running"}, X_Nomadlike_Index="3"), silent, says(503, AWAY), torn(b"{"), says(200, {"state": "failed", "exit_code": 7}, X_Nomadlike_Index="9")
        )
        job = nomadlike.Job(self.client(agent, retry_for=0), "1f", "x")
        with self.assertRaises(nomadlike.JobFailed) as caught:
            job.wait(check=True)
        self.assertEqual((7, "failed"), (caught.exception.exit_code, caught.exception.state))

    def test_waiting_ends(self):
        def held(request):
            span = span_seconds(re.search("wait=([0-9a-z]+)", request.path).group(1)) if "wait=" in request.path else 0
            time.sleep(span)
            says(200, {"state": "running"}, X_Nomadlike_Index="3")(request)

        agent = self.agent(held)
        with self.assertRaises(TimeoutError):
            nomadlike.Job(self.client(agent), "1f", "x").wait(timeout=0.2)
        self.assertLess(len(agent.seen), 6)
        away = nomadlike.Job(self.client("https://127.0.0.1:1"), "1f", "x")
        with self.assertRaises(nomadlike.Unavailable):
            away.wait(timeout=0.2)

    def test_events_go_on(self):
        def event(n):
            return json.dumps({"index": n, "cursor": "c%d" % n, "event": {"index": n, "id": "e%d" % n}}).encode() + b"\n"

        agent = self.agent(chunks(event(1), event(2)[:9], end=b""), chunks(event(2), b'{"index": 3, "cursor": "c3"}\n'), chunks(event(4)))
        events = self.client(agent).events(topics=["job"])
        self.assertEqual(["e1", "e2", "e4"], [next(events)["id"] for _ in range(3)])
        self.assertEqual(["/v1/events?topic=job", "/v1/events?cursor=c1&topic=job", "/v1/events?cursor=c3&topic=job"], [path for _, path, _, _ in agent.seen])


class Finding(ClientCase):
    def settings(self, context=None, **env):
        folder = tempfile.mkdtemp()
        self.addCleanup(lambda: [os.unlink(os.path.join(folder, name)) for name in os.listdir(folder)] and None or os.rmdir(folder))
        if context is not None:
            with open(os.path.join(folder, "context.json"), "w") as file:
                file.write(context if isinstance(context, str) else json.dumps(context))
        return Settings(env=dict({"NOMADLIKE_CONFIG_DIR": folder}, **env))

    def test_as_the_command_line(self):
        saved = {"address": "https://a:1", "ca": "-----BEGIN a", "token": "t", "project": "p", "new": 1}
        found = self.settings(saved, LANG="zh_CN.UTF-8")
        self.assertEqual(([("a", 1)], "t", "p", "zh"), (found.addresses, found.token, found.project, found.language))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write("-----BEGIN b")
            pem.flush()
            found = self.settings(saved, NOMADLIKE_ADDR="b, [::1]:9", NOMADLIKE_TOKEN="u", NOMADLIKE_PROJECT="q", NOMADLIKE_CACERT=pem.name, LANG="zh", LC_ALL="C")
        self.assertEqual(([("b", 4646), ("::1", 9)], "u", "q", "en", "-----BEGIN b"), (found.addresses, found.token, found.project, found.language, found.ca))
        self.assertEqual([("127.0.0.1", 4646)], self.settings({"ca": "-----BEGIN"}).addresses)

    def test_what_is_wrong_is_said(self):
        for context, env, id in (
            (None, {}, "python.no_ca"),
            ("{", {}, "python.bad_context"),
            (None, {"NOMADLIKE_CACERT": "/nonexistent"}, "python.bad_ca"),
            ({"ca": "x"}, {"NOMADLIKE_ADDR": "http://a"}, "python.bad_address"),
        ):
            with self.assertRaises(nomadlike.Invalid) as caught:
                self.settings(context, **env)
            self.assertEqual(id, caught.exception.id)
        for bad in ("https://u@a", "https://a/v1", "https://a:port", "https://", "https://[", ",", "https://a?b", "https://a#b"):
            with self.assertRaises(nomadlike.Invalid):
                parse_addresses(bad, "en")
        with self.assertRaises(nomadlike.Invalid):
            nomadlike.Client(ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", env={})

    def test_the_end_of_a_sign_in_is_put_off(self):
        saved = {"address": "https://a:1", "ca": "-----BEGIN", "token": "secret", "extend_at": "2020-01-02T03:04:05.123456789Z", "cluster": "c"}
        found = self.settings(saved)
        agent = self.agent(says(200, {"method": "password", "expires_at": "2030-01-08T00:00:00+08:00", "ends_at": "2030-02-01T00:00:00Z"}), says(200, {"jobs": []}))
        client = self.client(agent)
        found.addresses = client._transport.settings.addresses
        client._transport.settings = found
        client.jobs_list()
        client.jobs_list()
        self.assertEqual(["/v1/tokens/self/extend", "/v1/jobs", "/v1/jobs"], [path for _, path, _, _ in agent.seen])
        self.assertEqual(dict(saved, extend_at="2030-01-01T16:00:00Z"), found.remembered())
        self.assertEqual(0o600, os.stat(os.path.join(found.dir, "context.json")).st_mode & 0o777)

    def test_it_is_packed_for_pip(self):
        import wheel

        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, wheel.build_wheel(folder))
            with open(made, "rb") as file:
                before = file.read()
            wheel.build_wheel(folder)
            with open(made, "rb") as file:
                self.assertEqual(before, file.read())
            run = subprocess.run([sys.executable, "-c", "import nomadlike, nomadlike.bodies; print(nomadlike.__file__)"], cwd=folder, env={"PYTHONPATH": made}, stdout=subprocess.PIPE, check=True)
        self.assertIn(".whl", run.stdout.decode())

    def test_spans(self):
        self.assertEqual([90.0, 0.25, 3600.0], [span_seconds(span) for span in ("1m30s", "250ms", "1h")])

    def test_each_with_each(self):
        self.assertEqual([{"a": 1, "b": 3}, {"a": 2, "b": 3}], list(nomadlike.grid(a=[1, 2], b=[3])))


if __name__ == "__main__":
    unittest.main()
