"""A client of a nomadlike cluster, in the standard library alone.

    import nomadlike

    client = nomadlike.Client()             # as the command line finds its cluster
    job = client.submit("train.hcl")
    for line in job.logs(follow=True):
        print(line)
    job.wait(check=True)                    # raises JobFailed

``Client`` has a method for every call of the API, named for its operationId (``jobs_read``,
``nodes_list``); ``Job`` and what ``Client`` adds to these are written by hand. Bodies are dicts,
whose types stand in ``nomadlike.bodies``. Every failure is a ``nomadlike.Error``.
"""

from .client import Client, grid
from .errors import (
    Conflict,
    Error,
    Forbidden,
    InternalError,
    Invalid,
    JobFailed,
    NotAvailable,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    Unauthorized,
    Unavailable,
    Untrusted,
    WaitedTooLong,
)
from .job import Job

__version__ = "1.0"

__all__ = [
    "Client",
    "Conflict",
    "Error",
    "Forbidden",
    "InternalError",
    "Invalid",
    "Job",
    "JobFailed",
    "NotAvailable",
    "NotFound",
    "OutcomeUnknown",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "Untrusted",
    "WaitedTooLong",
    "grid",
]
