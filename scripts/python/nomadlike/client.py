"""The client: every call of the API, and what programs want of it."""

import copy
import io
import itertools
import json
import os
import re
import tarfile
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union, cast

from .calls import Calls
from .errors import Error, InternalError, Invalid, Unavailable, told
from .job import Job
from .settings import Settings, failure
from .transport import Answer, Stream, Transport

if TYPE_CHECKING:
    from . import bodies

RESULT_JOBS_MAX = 100  # jobs of one request for results
EXTEND_WITHIN = timedelta(days=6)  # before its end a token by signing in is put off
# What never travels with code; the cluster leaves out more, by the ignore files that are sent along.
LEAVINGS = {".git", ".venv", "__pycache__", "node_modules"}


class Client(Calls):
    """Speaks to a cluster. Any number of threads may use it.

    Without arguments it finds the cluster as the command line does: by NOMADLIKE_ADDR, NOMADLIKE_TOKEN,
    NOMADLIKE_CACERT, NOMADLIKE_PROJECT, and by what `nomadlike login` remembered.

    address: https://HOST:PORT, or several with commas: the next is asked when one does not answer
    ca: the file of the cluster's CA, or its PEM
    timeout: seconds of silence after which an answer is given up
    retry_for: seconds for which what is safe to repeat is repeated while the cluster is away
    """

    def __init__(
        self,
        address: Optional[str] = None,
        token: Optional[str] = None,
        *,
        ca: Optional[str] = None,
        project: Optional[str] = None,
        language: Optional[str] = None,
        timeout: float = 30.0,
        retry_for: float = 60.0,
        env: Optional[Mapping[str, str]] = None,
    ):
        settings = Settings(address, token, ca, project, language, env)
        self.retry_for = retry_for
        self.language = settings.language
        self._transport = Transport(settings, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drops the connections that are free."""
        self._transport.close()

    def within(self, seconds: float) -> "Client":
        """The same client, with another bound for repeating requests."""
        other = copy.copy(self)
        other.retry_for = seconds
        return other

    def _call(
        self,
        method: str,
        path: str,
        query: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, Optional[str]]] = None,
        body: Any = None,
        safe: bool = False,
    ) -> Any:
        self._extend()
        sent = {key: value for key, value in (headers or {}).items() if value is not None}
        safe = safe or "Idempotency-Key" in sent
        return self._transport.call(method, path, query or {}, sent, body, safe, self.retry_for)

    def _stream(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, body: Any = None, safe: bool = False) -> Stream:
        self._extend()
        query = query or {}
        silent = bool(query.get("follow"))
        return self._transport.stream(method, path, query, body, safe, self.retry_for, None if silent else self._transport.timeout)

    def _lines(self, method: str, path: str, query: Optional[Dict[str, Any]] = None) -> Iterator[Any]:
        self._extend()
        with self._transport.stream(method, path, query or {}, None, True, self.retry_for, None) as stream:
            for line in stream.lines():
                if line.strip():
                    try:
                        yield json.loads(line)
                    except (ValueError, RecursionError) as err:
                        raise failure(InternalError, "python.not_json", self.language, address=path, reason=err) from err

    def _extend(self) -> None:
        """Puts off the end of the token that `nomadlike login` made, as commands do. It is good for days still: no
        call fails because of this."""
        settings = self._transport.settings
        due = settings.extend_at
        if not due or _moment(due) > datetime.now(timezone.utc):
            return
        settings.extend_at = ""
        try:
            token = self.within(0).tokens_extend()
            settings.remember({"extend_at": _extend_at(cast("Dict[str, Any]", token))})
        except (Error, OSError, ValueError):
            pass

    @staticmethod
    def index_of(answer: Any) -> int:
        """The index of the state that an answer was read at: give it as ``index`` to wait for something newer."""
        return answer.index if isinstance(answer, Answer) else 0

    def submit(
        self,
        job: "Union[str, os.PathLike[str], Mapping[str, Any]]",
        *,
        name: Optional[str] = None,
        variables: Optional[Mapping[str, Any]] = None,
        set: Optional[Mapping[str, Any]] = None,
        code: "Union[str, os.PathLike[str], None]" = None,
        resume: Optional[str] = None,
        key: Optional[str] = None,
    ) -> Job:
        """Submits a job.

        job: the path of a job file, the text of one (what has more than one line), or a job as a dict
        name: another name than its own
        variables: values of the file's variables
        set: values that are changed before the file is read: {"nodes": 2, 'task.env["LR"]': "0.1"}
        code: the directory that goes with it, in place of the file's own workdir
        resume: id of an ended job from whose newest checkpoint it goes on
        key: makes this and a repeated submission one; a random one unless told
        """
        request = self._request(job, name, variables, set, code)
        if resume:
            request["resume"] = resume
        answer = self.jobs_submit(cast("bodies.JobRequest", request), idempotency_key=key or uuid.uuid4().hex)
        made = Job(self, answer["job_id"], answer["name"], answer.get("number") or 0)
        made.warnings = answer.get("warnings") or []
        return made

    def validate(self, job: "Union[str, os.PathLike[str], Mapping[str, Any]]", *, variables: Optional[Mapping[str, Any]] = None) -> "bodies.JobValidated":
        """Everything that is wrong with a job; nothing is submitted."""
        return self.jobs_validate(cast("bodies.JobRequest", self._request(job, None, variables, None, None, sends=False)))

    def _request(self, job: Any, name: Optional[str], variables: Any, changes: Any, code: Any, sends: bool = True) -> Dict[str, Any]:
        if isinstance(job, Mapping):
            body = dict(job)
            if variables or changes:
                raise failure(Invalid, "python.set_of_job", self.language)
            if name is not None:
                body["name"] = name
            if code is not None:
                body["workdir"] = {"source": self.send_code(code)}
            request: Dict[str, Any] = {"job": body}
            timed = bool(body.get("begin") or body.get("deadline"))
        else:
            text, folder = self._read(job)
            request = {"hcl": text}
            if variables:
                request["variables"] = {key: _variable(value) for key, value in variables.items()}
            made = [{"at": at, "value": value} for at, value in (changes or {}).items()]
            if name is not None:
                made.append({"at": "#", "value": name})
            if code is None and sends and re.search(r"^\s*workdir\b", text, re.MULTILINE):
                code = self._own_code(request, made, folder)
            if code is not None:
                made.append({"at": "workdir", "value": self.send_code(code)})
            if made:
                request["set"] = made
            timed = any(word in text for word in ("begin", "deadline")) or any(one["at"] in ("begin", "deadline") for one in made)
        if timed:  # servers of before know no zone, and no times that want one
            request["zone"] = _zone()
        return request

    def _read(self, job: Any) -> "tuple[str, str]":
        """The text of a job file, and the directory that paths in it are relative to."""
        if isinstance(job, str) and "\n" in job:
            return job, "."
        path = os.fspath(job)
        try:
            with open(path, encoding="utf-8-sig") as file:
                return file.read(), os.path.dirname(os.path.abspath(path))
        except (OSError, ValueError) as err:
            raise failure(Invalid, "python.file", self.language, path=path, reason=err) from err

    def _own_code(self, request: Dict[str, Any], changes: List[Dict[str, Any]], folder: str) -> Optional[str]:
        """The directory that a job file names as its code; None of code that was sent before."""
        asked = dict(request, set=changes) if changes else request
        own = (self.jobs_parse(cast("bodies.JobRequest", asked)).get("job") or {}).get("workdir") or {}
        if own.get("repo"):
            raise failure(Invalid, "python.git_code", self.language)
        source = own.get("source", "")
        return None if not source or source.startswith("sha256:") else os.path.join(folder, source)

    def send_code(self, directory: "Union[str, os.PathLike[str]]") -> str:
        """Sends a directory of code, and returns its digest, for ``workdir`` of a job. What .gitignore and
        .nomadlikeignore leave out stays behind."""
        path = os.fspath(directory)
        if path.startswith("sha256:"):
            return path
        archive = io.BytesIO()
        try:
            names = sorted(os.listdir(path))
            with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=6) as tar:
                for name in names:
                    tar.add(os.path.join(path, name), name, filter=lambda entry: None if LEAVINGS & {*entry.name.split("/")} else entry)
        except OSError as err:
            raise failure(Invalid, "python.file", self.language, path=path, reason=err) from err
        # Sent twice it is the same code: the digest is that of the bytes.
        made = self._call("POST", "/v1/code/archive", body=archive.getvalue(), safe=True)
        return cast("bodies.CodeArchived", made)["tree"]

    def job(self, id: str) -> Job:
        """A job by its id, the beginning of it, its number or its name."""
        found = self.jobs_read(id)["job"]
        return Job(self, found["id"], found["name"], found.get("number") or 0)

    def jobs(self, **filters: Any) -> "Iterator[bodies.JobSummary]":
        """The jobs that one may see, newest first, page by page; filters are those of ``jobs_list``: state, user, tag …"""
        after: Optional[str] = None
        while True:
            page = self.jobs_list(**dict({"limit": 1000}, **filters), after=after)
            yield from page["jobs"] or []
            after = page.get("next")
            if not after:
                return

    def results(self, jobs: Sequence[Job], *names: str) -> "Dict[str, Dict[str, bodies.MetricResult]]":
        """Where the metrics of jobs stand: by the id of the job, then by name; no names mean all."""
        found: "Dict[str, Dict[str, bodies.MetricResult]]" = {job.id: {} for job in jobs}
        for at in range(0, len(jobs), RESULT_JOBS_MAX):
            page = self.jobs_results(job=",".join(job.id for job in jobs[at : at + RESULT_JOBS_MAX]), name=",".join(names) or None)
            for one in page["jobs"] or []:
                found[one["job_id"]] = {metric["name"]: metric for metric in one["metrics"] or []}
        return found

    def events(
        self, job: Optional[str] = None, topics: Iterable[str] = (), project: Optional[str] = None, cursor: Optional[str] = None, index: Optional[int] = None
    ) -> "Iterator[bodies.Event]":
        """What happens, as it happens, without end: from now on, or from the index of an answer. When the stream breaks
        off it goes on where it was: nothing is left out, nothing comes twice."""
        away: Optional[float] = None
        while True:
            try:
                for line in self.events_stream(cursor=cursor, index=None if cursor else index, job=job, project=project, topic=",".join(topics) or None):
                    away = None
                    if line.get("error"):
                        raise told(cast("Dict[str, Any]", line["error"]))
                    cursor = line.get("cursor") or cursor
                    if line.get("event"):
                        yield line["event"]
            except Unavailable:
                away = away or time.monotonic()
                if time.monotonic() - away > self.retry_for:
                    raise
            time.sleep(0.2)


def grid(**values: Iterable[Any]) -> Iterator[Dict[str, Any]]:
    """Each with each: grid(lr=[0.1, 0.01], wd=[0, 1e-4]) is four dicts."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen))


def _variable(value: Any) -> str:
    """A value as -var of the command line has it."""
    return json.dumps(value) if value is None or isinstance(value, (bool, int, float, list, tuple, dict)) else str(value)


def _zone() -> str:
    """The time zone of this machine: its name where that is known, else its offset now."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        try:
            name = os.readlink("/etc/localtime").partition("zoneinfo/")[2]
        except OSError:
            pass
    if re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)+|UTC", name):
        return name
    offset = datetime.now().astimezone().strftime("%z")
    return offset[:3] + ":" + offset[3:5]


def _moment(text: str) -> datetime:
    """A time of RFC 3339, to the microsecond."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text)
    if match is None:
        return datetime.max.replace(tzinfo=timezone.utc)
    zone = "+00:00" if match.group(3) == "Z" else match.group(3)
    return datetime.fromisoformat("%s.%s%s" % (match.group(1), (match.group(2) or "0").ljust(6, "0")[:6], zone))


def _extend_at(token: Dict[str, Any]) -> Optional[str]:
    """When the end of a token is to be put off; None for never."""
    expires, ends = token.get("expires_at"), token.get("ends_at")
    if not token.get("method") or not expires or (ends and _moment(expires) >= _moment(ends)):
        return None
    return (_moment(expires) - EXTEND_WITHIN).astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
