"""A job, as a program sees it."""

import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, cast

from .errors import ENDED, JobFailed, NotFound, Unavailable, WaitedTooLong
from .settings import failure
from .transport import Stream, split_lines

if TYPE_CHECKING:
    from . import bodies
    from .client import Client

HELD = 30.0  # seconds that a server holds a question until something is new
AGAIN = 1.0  # seconds between questions while the cluster is away


class Job:
    """A job of the cluster: ``id``, ``name`` and ``number`` name it; everything else is asked for when it is wanted."""

    def __init__(self, client: "Client", id: str, name: str = "", number: int = 0):
        self.client, self.id, self.name, self.number = client, id, name or id, number
        self.warnings: "List[bodies.Error]" = []  # of its submission

    def __repr__(self) -> str:
        return "Job(%r, %r)" % (self.id, self.name)

    def status(self) -> "bodies.JobDetail":
        """How it stands, and what it is."""
        return self.client.jobs_read(self.id)

    @property
    def state(self) -> str:
        """queued, starting, running, paused, stopping, succeeded, failed, stopped or expired."""
        return self.status()["state"]

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> "bodies.JobDetail":
        """Waits until it has ended, and returns how it stands. The cluster holds the question, and may be away meanwhile.

        With check, a job that did not succeed is JobFailed. After timeout seconds it is WaitedTooLong; the job goes on.
        """
        detail: Any = None
        for detail in self._changes(timeout):
            pass
        if check and detail["state"] != "succeeded":
            raise JobFailed(self.name, detail, self.client.language)
        return cast("bodies.JobDetail", detail)

    def watch(self, timeout: Optional[float] = None) -> "Iterator[bodies.JobDetail]":
        """How it stands now, and again whenever that has changed, to its end."""
        return self._changes(timeout)

    def _changes(self, timeout: Optional[float]) -> "Iterator[bodies.JobDetail]":
        until = None if timeout is None else time.monotonic() + timeout
        index = 0
        while True:
            left = HELD if until is None else until - time.monotonic()
            if left <= 0 and index:
                raise failure(WaitedTooLong, "python.waited", self.client.language, name=self.name, seconds="%g" % (timeout or 0))
            held = "%dms" % max(min(left, HELD) * 1000, 1)
            try:
                asking = self.client.within(min(max(left, AGAIN), self.client.retry_for))
                detail = asking.jobs_read(self.id, index=index or None, wait=held if index else None)
            except Unavailable:
                if until is not None and time.monotonic() + AGAIN > until:
                    raise
                time.sleep(AGAIN)
                continue
            now = self.client.index_of(detail)
            if now != index or not index:
                yield detail
            if detail["state"] in ENDED:
                return
            index = now or 1

    def logs(
        self, rank: int = 0, subjob: int = 0, attempt: Optional[int] = None, stream: str = "stdout", follow: bool = False, tail: Optional[int] = None
    ) -> Iterator[str]:
        """The lines that one rank printed, of its newest attempt or of the one that is named.

        With follow they come as they are printed, of every further attempt too, to the end of the job; what breaks off
        goes on where it was. Stream is stdout, stderr or hooks; tail wants so many last lines alone.
        """
        if follow and tail is not None:
            raise ValueError("tail and follow exclude each other")
        if follow:
            return self._follow(rank, subjob, attempt, stream)
        return self._printed(rank, subjob, attempt, stream, tail)

    def _printed(self, rank: int, subjob: int, attempt: Optional[int], stream: str, tail: Optional[int]) -> Iterator[str]:
        ran = self._ran(rank, subjob, attempt, 0)
        if ran:
            with self.client.allocations_logs(ran[-1]["id"], stream=stream, tail=tail) as body:
                for line in body.lines():
                    yield line.decode("utf-8", "replace")

    def _ran(self, rank: int, subjob: int, attempt: Optional[int], after: int) -> "List[bodies.Allocation]":
        """What ran as a rank, in the attempts after a number, oldest first."""
        found = self.client.jobs_allocations(self.id, attempt=attempt, subjob=subjob)["allocations"] or []
        ran = [one for one in found if one["rank"] == rank and one["attempt"] > after and (one["status"] == "running" or one.get("started_at"))]
        return sorted(ran, key=lambda one: one["attempt"])

    def _follow(self, rank: int, subjob: int, attempt: Optional[int], stream: str) -> Iterator[str]:
        read = 0  # attempts up to this one were
        for detail in self._changes(None):
            if attempt is None and read == 0 and detail["attempt"] > 0 and subjob == 0:
                read = max(detail["attempt"] - 1, 0)
            for one in self._ran(rank, subjob, attempt, read):
                yield from self._follow_one(one["id"], stream)
                read = one["attempt"]
            if attempt is not None and read:
                return

    def _follow_one(self, allocation: str, stream: str) -> Iterator[str]:
        """Every line of one attempt, to its end."""
        offset, rest = 0, b""
        since = time.monotonic()
        while True:
            try:
                body = self._open(allocation, stream, offset)
                with body:
                    while True:
                        data = body.read()
                        if not data:
                            break
                        offset, since = offset + len(data), time.monotonic()
                        whole, rest = split_lines(rest, data)
                        for line in whole:
                            yield line.decode("utf-8", "replace")
                break
            except Unavailable:
                if self.client.allocations_read(allocation)["status"] == "lost" or time.monotonic() - since > max(self.client.retry_for, AGAIN):
                    break
                time.sleep(AGAIN)
        if rest:
            yield rest.decode("utf-8", "replace")

    def _open(self, allocation: str, stream: str, offset: int) -> Stream:
        return self.client.allocations_logs(allocation, stream=stream, offset=offset or None, follow=True)

    def results(self, *names: str) -> "Dict[str, bodies.MetricResult]":
        """Where its metrics stand, by name: last, min, max and count of each; no names mean all."""
        return self.client.results([self], *names)[self.id]

    def result(self, name: str) -> float:
        """The last value of a metric."""
        found = self.results(name).get(name)
        if found is None:
            raise failure(NotFound, "python.no_metric", self.client.language, name=self.name, metric=name)
        return found["last"]["value"]

    def metrics(self, *names: str, points: Optional[int] = None) -> "bodies.JobMetrics":
        """Its curves: what every rank measured, of every attempt."""
        return self.client.jobs_metrics(self.id, name=",".join(names) or None, points=points)

    def events(self) -> "List[bodies.Event]":
        """Its history, oldest first."""
        return self.client.jobs_events(self.id)["events"] or []

    def stop(self, reason: str = "", subjob: Optional[int] = None) -> None:
        """Has it, or one of its subjobs, stopped. ``wait`` waits until that is done."""
        self.client.jobs_stop(self.id, _said(reason, subjob))

    def finish(self, reason: str = "", subjob: Optional[int] = None) -> None:
        """Ends it now, with success."""
        self.client.jobs_finish(self.id, _said(reason, subjob))

    def pause(self, reason: str = "", subjob: Optional[int] = None) -> None:
        """Lets it stand still; it keeps its nodes."""
        self.client.jobs_pause(self.id, _said(reason, subjob))

    def resume(self, reason: str = "", subjob: Optional[int] = None) -> None:
        """Lets a paused job go on (``nomadlike job continue``)."""
        self.client.jobs_continue(self.id, _said(reason, subjob))

    def delete(self) -> None:
        """Has the cluster forget it, after its end."""
        self.client.jobs_delete(self.id)


def _said(reason: str, subjob: Optional[int]) -> Any:
    body: Dict[str, Any] = {}
    if reason:
        body["reason"] = reason
    if subjob is not None:
        body["subjob"] = subjob
    return body
