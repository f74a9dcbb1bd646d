"""Failures, as agents tell them and as they arise on the way there."""

from typing import Any, Dict, List, Optional

from .texts import text

# ENDED are the states that a job does not leave.
ENDED = ("succeeded", "failed", "stopped", "expired")


class Error(Exception):
    """A failure. Decide by its class or by ``code``; show ``str()`` of it.

    ``id`` and ``params`` say the same for programs, ``message`` and ``hint`` for people, in the
    client's language. ``details`` are further errors that were found together with this one: all
    that is wrong with a job file. ``status`` is that of the HTTP answer, 0 without one, and
    ``request_id`` finds the request in the audit record.
    """

    code = ""

    def __init__(
        self,
        id: str,
        message: str = "",
        hint: str = "",
        params: Optional[Dict[str, str]] = None,
        details: Optional[List["Error"]] = None,
        code: str = "",
        status: int = 0,
        request_id: str = "",
    ):
        super().__init__(id)
        self.code = code or self.code
        self.id, self.message, self.hint = id, message, hint
        self.params, self.details = params or {}, details or []
        self.status, self.request_id = status, request_id
        self.nothing_done = False  # the request surely had no effect

    def __str__(self) -> str:
        lines = [self.message or self.id]
        for problem in self.details:
            line = problem.params.get("line")
            lines += ["  " + part for part in (("line %s: " % line if line else "") + str(problem)).split("\n")]
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class Invalid(Error):
    """The request is malformed or breaks a rule: ``details`` has all that is wrong."""

    code = "invalid"


class Unauthorized(Error):
    """There is no token, or one that nobody knows any more."""

    code = "unauthorized"


class Forbidden(Error):
    """The token's owner may not do that."""

    code = "forbidden"


class NotFound(Error):
    """There is no such thing, or it is not the caller's to see."""

    code = "not_found"


class Conflict(Error):
    """What it is about is in a state that does not allow it."""

    code = "conflict"


class Unavailable(Error):
    """Nobody answers, there is no leader, a node is away: later it may work."""

    code = "unavailable"


class OutcomeUnknown(Error):
    """It may or may not have been done: look before you ask for it again."""

    code = "timeout"


class NotAvailable(Error):
    """This version does not have that yet."""

    code = "not_available"


class TooLarge(Error):
    """It is over a bound, which the text names."""

    code = "too_large"


class InternalError(Error):
    """A defect of nomadlike, or an answer of something else that stands in between."""

    code = "internal"


class Untrusted(Unauthorized):
    """Whoever answers is not a server of the cluster: it was told nothing."""


class WaitedTooLong(Error, TimeoutError):
    """The time that a wait may take is over. The job goes on."""

    code = "timeout"


class JobFailed(Error):
    """A job did not succeed. ``state`` is failed, stopped or expired; ``exit_code`` is that of what
    failed first; ``detail`` is what the cluster knows of the job."""

    code = "failed"

    def __init__(self, name: str, detail: Dict[str, Any], language: str = "en"):
        self.state = str(detail.get("state", ""))
        self.exit_code = int(detail.get("exit_code") or 0)
        self.detail = detail
        reason = detail.get("reason") or {}
        why = ", ".join([reason.get("id", "")] + ["%s=%s" % pair for pair in sorted((reason.get("params") or {}).items())])
        params = {"name": name, "state": self.state, "code": str(self.exit_code), "reason": why or "-"}
        super().__init__("python.job_failed", text(language, "python.job_failed", params), "", params)
        self._made_of = (name, detail, language)

    def __reduce__(self) -> Any:  # so that it comes out of a process of a pool
        return JobFailed, self._made_of


_CLASSES = {
    kind.code: kind
    for kind in (Invalid, Unauthorized, Forbidden, NotFound, Conflict, Unavailable, OutcomeUnknown, NotAvailable, TooLarge, InternalError)
}


def told(body: Dict[str, Any], status: int = 0, request_id: str = "") -> Error:
    """The error that an agent told."""
    code = str(body["code"])
    error = _CLASSES.get(code, Error)(
        str(body["id"]),
        str(body.get("message") or ""),
        str(body.get("hint") or ""),
        {str(key): str(value) for key, value in (body.get("params") or {}).items()},
        [told(detail) for detail in body.get("details") or []],
        code,
        status,
        request_id,
    )
    error.nothing_done = code == "unavailable"
    return error
