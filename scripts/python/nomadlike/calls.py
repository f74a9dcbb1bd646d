"""Every call of the API, written by `make generate` from the OpenAPI document: change the routes, not this file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, cast
from urllib.parse import quote

if TYPE_CHECKING:
    from . import bodies
    from .transport import Stream


class Calls:
    """One method for each operation, named for its operationId. Errors are nomadlike.Error."""

    def _call(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, headers: Optional[Dict[str, Optional[str]]] = None, body: Any = None, safe: bool = False) -> Any:
        raise NotImplementedError

    def _stream(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, body: Any = None, safe: bool = False) -> Stream:
        raise NotImplementedError

    def _lines(self, method: str, path: str, query: Optional[Dict[str, Any]] = None) -> Iterator[Any]:
        raise NotImplementedError

    def agent_health(self) -> bodies.Health:
        """Whether this agent can do its work."""
        return cast("bodies.Health", self._call("GET", "/v1/agent/health", safe=True))

    def agent_join(self, body: bodies.JoinRequest) -> bodies.Joined:
        """Let a new agent in, with a join token's secret and a certificate request."""
        return cast("bodies.Joined", self._call("POST", "/v1/agent/join", body=body))

    def agent_renew(self, body: bodies.RenewRequest) -> bodies.Renewed:
        """Renew the certificate of a node that has expired, against the proof that the node holds its key."""
        return cast("bodies.Renewed", self._call("POST", "/v1/agent/renew", body=body))

    def agent_self(self) -> bodies.AgentSelf:
        """This agent's configuration, secrets left out."""
        return cast("bodies.AgentSelf", self._call("GET", "/v1/agent/self", safe=True))

    def allocations_commit(self, id: str, body: bodies.CommitRequest) -> bodies.Committed:
        """Keep the container of a running task as an image on its node, and send it to a registry where one is named."""
        return cast("bodies.Committed", self._call("POST", "/v1/allocations/" + quote(id, safe="") + "/commit", body=body))

    def allocations_logs(self, id: str, *, stream: Optional[str] = None, offset: Optional[int] = None, tail: Optional[int] = None, follow: Optional[bool] = None, times: Optional[bool] = None) -> Stream:
        """Read what a task printed.

        stream: stdout (default), stderr or hooks
        offset: first byte; negative counts from the end
        tail: only so many last lines
        follow: stay for what is still to come
        times: when each line was printed, before it; - where that is not known
        """
        return self._stream("GET", "/v1/allocations/" + quote(id, safe="") + "/logs", query={"stream": stream, "offset": offset, "tail": tail, "follow": follow, "times": times}, safe=True)

    def allocations_page(self, id: str, body: bodies.TaskPageRequest) -> bodies.TaskPage:
        """Where a browser sees what a task serves on one of its ports."""
        return cast("bodies.TaskPage", self._call("POST", "/v1/allocations/" + quote(id, safe="") + "/page", body=body))

    def allocations_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.Allocation:
        """Read one allocation.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.Allocation", self._call("GET", "/v1/allocations/" + quote(id, safe=""), query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def audit_list(self, *, user: Optional[str] = None, object: Optional[str] = None, action: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, refused: Optional[bool] = None, limit: Optional[int] = None, after: Optional[str] = None) -> bodies.AuditList:
        """Who did what to which object, from where, allowed or refused; newest first, from all servers.

        user: only what this user asked for
        object: only what this object was asked for: kind/id, a kind, or the beginning of an id
        action: only this action, such as jobs.stop, or all of a kind, such as tokens
        since: only what is as new: a time such as 2026-11-26T12:00:00Z, or how far back, such as 24h
        until: only what is as old, likewise
        refused: only what was refused
        limit: at most so many records, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        """
        return cast("bodies.AuditList", self._call("GET", "/v1/audit", query={"user": user, "object": object, "action": action, "since": since, "until": until, "refused": refused, "limit": limit, "after": after}, safe=True))

    def audit_verify(self) -> bodies.AuditCheck:
        """Whether the audit records on every server's disk are whole, else which line is the first that does not follow."""
        return cast("bodies.AuditCheck", self._call("GET", "/v1/audit/verify", safe=True))

    def code_archive(self, body: bytes) -> bodies.CodeArchived:
        """Send a directory of code as a tar archive, plain or compressed by gzip; what .gitignore, .nomadlikeignore and the usual leavings leave out stays behind, as with job run -workdir."""
        return cast("bodies.CodeArchived", self._call("POST", "/v1/code/archive", body=body))

    def code_chunk(self, id: str, *, digest: Optional[str] = None) -> Stream:
        """Read a chunk of the code of a job.

        digest: of the chunk, sha256: and 64 digits; the manifest names them
        """
        return self._stream("GET", "/v1/code/" + quote(id, safe="") + "/chunk", query={"digest": digest}, safe=True)

    def code_chunks(self, body: bytes) -> bodies.CodeKept:
        """Send chunks of code, at most 4096 and 8 MiB: of each the 32 bytes of its SHA-256, its size in 4 bytes (big-endian), and its bytes."""
        return cast("bodies.CodeKept", self._call("POST", "/v1/code/chunks", body=body))

    def code_commit(self, body: bytes) -> bodies.CodeMade:
        """Send the manifest of a directory whose chunks were sent; answered when more than half of the servers have all of it on their disks."""
        return cast("bodies.CodeMade", self._call("POST", "/v1/code", body=body))

    def code_manifest(self, id: str) -> Stream:
        """Read the manifest of the code of a job, by the 64 digits of its digest."""
        return self._stream("GET", "/v1/code/" + quote(id, safe=""), safe=True)

    def code_missing(self, body: bodies.CodeMissingRequest) -> bodies.CodeMissing:
        """What of a directory of code does the project not have yet."""
        return cast("bodies.CodeMissing", self._call("POST", "/v1/code/missing", body=body, safe=True))

    def data_archive(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None, path: Optional[str] = None, format: Optional[str] = None) -> Stream:
        """Download a directory of a version, with all below it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        path: a name below the version, in the bytes that it has; the whole of it unless told
        format: zip (default) or tar; names that other systems take for something else are spelled with % in a zip
        """
        return self._stream("GET", "/v1/data/" + quote(id, safe="") + "/archive", query={"kind": kind, "of": of, "version": version, "path": path, "format": format}, safe=True)

    def data_chunks(self, id: str, body: bodies.DataChunksRequest, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None) -> Stream:
        """Read chunks of a version of named data, one after the other, at most 8 MiB.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        """
        return self._stream("POST", "/v1/data/" + quote(id, safe="") + "/chunks", query={"kind": kind, "of": of, "version": version}, body=body, safe=True)

    def data_content(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None, path: Optional[str] = None) -> Stream:
        """Download a file of a version; a Range of bytes is understood, and If-Range with the ETag of the answer before.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        path: a name below the version, in the bytes that it has; the whole of it unless told
        """
        return self._stream("GET", "/v1/data/" + quote(id, safe="") + "/tree/content", query={"kind": kind, "of": of, "version": version, "path": path}, safe=True)

    def data_delete(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None) -> bodies.DataChanged:
        """Remove a version, or all of them; what a live job uses stays.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: only this version; without it all of them and the name
        """
        return cast("bodies.DataChanged", self._call("DELETE", "/v1/data/" + quote(id, safe=""), query={"kind": kind, "of": of, "version": version}))

    def data_files(self, id: str, body: bodies.DataFilesRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataFilesBegun:
        """Begin a version whose files come one by one, or go on with one that was begun.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataFilesBegun", self._call("POST", "/v1/data/" + quote(id, safe="") + "/files", query={"kind": kind, "of": of}, body=body))

    def data_files_abort(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None) -> bodies.DataChanged:
        """Give a version up that is being sent, with its files.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.files named it
        """
        return cast("bodies.DataChanged", self._call("DELETE", "/v1/data/" + quote(id, safe="") + "/files", query={"kind": kind, "of": of, "upload": upload}))

    def data_files_finish(self, id: str, body: bytes, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None) -> bodies.DataFilesFinished:
        """Make the version of the files that came; the body is empty, or lists the files that must be there as sha256sum prints them; asked again until it is done.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.files named it
        """
        return cast("bodies.DataFilesFinished", self._call("POST", "/v1/data/" + quote(id, safe="") + "/files/finish", query={"kind": kind, "of": of, "upload": upload}, body=body))

    def data_files_list(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, after: Optional[str] = None) -> bodies.DataFiles:
        """List the files of a version that is being sent, and how far they are.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.files named it
        after: only files behind this id
        """
        return cast("bodies.DataFiles", self._call("GET", "/v1/data/" + quote(id, safe="") + "/files", query={"kind": kind, "of": of, "upload": upload, "after": after}, safe=True))

    def data_lineage(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None) -> bodies.DataLineage:
        """Read what a version was made of, and what was made of it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: this version; the newest unless told
        """
        return cast("bodies.DataLineage", self._call("GET", "/v1/data/" + quote(id, safe="") + "/lineage", query={"kind": kind, "of": of, "version": version}, safe=True))

    def data_list(self, *, kind: Optional[str] = None, all: Optional[bool] = None, favourites: Optional[bool] = None) -> bodies.DataList:
        """List the project's named data, with what it has of its quota.

        kind: only datasets, models or algorithms
        all: also what other projects let everybody use
        favourites: only what the caller has marked
        """
        return cast("bodies.DataList", self._call("GET", "/v1/data", query={"kind": kind, "all": all, "favourites": favourites}, safe=True))

    def data_manifest(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None) -> Stream:
        """Read the manifest of a version of named data.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        """
        return self._stream("GET", "/v1/data/" + quote(id, safe="") + "/manifest", query={"kind": kind, "of": of, "version": version}, safe=True)

    def data_mark(self, id: str, body: bodies.DataMarkRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataChanged:
        """Mark named data as a favourite of one's own.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataChanged", self._call("PUT", "/v1/data/" + quote(id, safe="") + "/mark", query={"kind": kind, "of": of}, body=body))

    def data_preview(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None, path: Optional[str] = None) -> bodies.DataPreview:
        """Show the beginning of a file of a version: text, a table, or the size of a picture.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        path: a name below the version, in the bytes that it has; the whole of it unless told
        """
        return cast("bodies.DataPreview", self._call("GET", "/v1/data/" + quote(id, safe="") + "/tree/preview", query={"kind": kind, "of": of, "version": version, "path": path}, safe=True))

    def data_put(self, id: str, body: bodies.DataRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataChanged:
        """Make named data without versions, or change what it says of itself.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataChanged", self._call("PUT", "/v1/data/" + quote(id, safe=""), query={"kind": kind, "of": of}, body=body))

    def data_read(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, outputs: Optional[bool] = None) -> bodies.DataDetail:
        """Read named data with its versions, and which jobs use it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        outputs: also which jobs were to make a version of it, and have not
        """
        return cast("bodies.DataDetail", self._call("GET", "/v1/data/" + quote(id, safe=""), query={"kind": kind, "of": of, "outputs": outputs}, safe=True))

    def data_register(self, id: str, body: bodies.DataRegisterRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataChanged:
        """Have a directory of a storage be a version, without copying it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataChanged", self._call("POST", "/v1/data/" + quote(id, safe="") + "/register", query={"kind": kind, "of": of}, body=body))

    def data_tag(self, id: str, body: bodies.DataTagRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataChanged:
        """Give a version a tag, which the version that had it loses.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataChanged", self._call("PUT", "/v1/data/" + quote(id, safe="") + "/tag", query={"kind": kind, "of": of}, body=body))

    def data_take(self, id: str, body: bodies.DataTakeRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataChanged:
        """Have what a job wrote become a version, without copying where the storage allows it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataChanged", self._call("POST", "/v1/data/" + quote(id, safe="") + "/take", query={"kind": kind, "of": of}, body=body))

    def data_tree(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None, path: Optional[str] = None, after: Optional[int] = None, limit: Optional[int] = None) -> bodies.DataTree:
        """List a directory of a version of named data.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        path: a name below the version, in the bytes that it has; the whole of it unless told
        after: leave out so many names, as next of the page before says
        limit: names of a page, at most 10000; 1000 unless told
        """
        return cast("bodies.DataTree", self._call("GET", "/v1/data/" + quote(id, safe="") + "/tree", query={"kind": kind, "of": of, "version": version, "path": path, "after": after, "limit": limit}, safe=True))

    def data_upload(self, id: str, body: bodies.DataUploadRequest, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataUpload:
        """Begin to send a version of named data, or go on with one that was begun.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataUpload", self._call("POST", "/v1/data/" + quote(id, safe="") + "/uploads", query={"kind": kind, "of": of}, body=body))

    def data_upload_abort(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, digest: Optional[str] = None) -> bodies.DataChanged:
        """Give an upload up, with what was sent.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.upload named it
        digest: of its manifest, as in data.upload
        """
        return cast("bodies.DataChanged", self._call("DELETE", "/v1/data/" + quote(id, safe="") + "/uploads", query={"kind": kind, "of": of, "upload": upload, "digest": digest}))

    def data_upload_chunks(self, id: str, body: bytes, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, digest: Optional[str] = None) -> bodies.DataKept:
        """Send chunks of a version, spelled as in code.chunks; answered when they are on the storage's disk.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.upload named it
        digest: of its manifest, as in data.upload
        """
        return cast("bodies.DataKept", self._call("POST", "/v1/data/" + quote(id, safe="") + "/uploads/chunks", query={"kind": kind, "of": of, "upload": upload, "digest": digest}, body=body))

    def data_upload_finish(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, digest: Optional[str] = None) -> bodies.DataFinished:
        """Make the version of what was sent; asked again until it is done.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.upload named it
        digest: of its manifest, as in data.upload
        """
        return cast("bodies.DataFinished", self._call("POST", "/v1/data/" + quote(id, safe="") + "/uploads/finish", query={"kind": kind, "of": of, "upload": upload, "digest": digest}))

    def data_upload_manifest(self, id: str, body: bytes, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, digest: Optional[str] = None) -> bodies.DataKept:
        """Send the manifest of a version, before its chunks.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.upload named it
        digest: of its manifest, as in data.upload
        """
        return cast("bodies.DataKept", self._call("POST", "/v1/data/" + quote(id, safe="") + "/uploads/manifest", query={"kind": kind, "of": of, "upload": upload, "digest": digest}, body=body))

    def data_upload_missing(self, id: str, body: bodies.DataMissingRequest, *, kind: Optional[str] = None, of: Optional[str] = None, upload: Optional[str] = None, digest: Optional[str] = None) -> bodies.DataMissing:
        """Which chunks of a version have neither been sent nor lie in an earlier one.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        upload: what data.upload named it
        digest: of its manifest, as in data.upload
        """
        return cast("bodies.DataMissing", self._call("POST", "/v1/data/" + quote(id, safe="") + "/uploads/missing", query={"kind": kind, "of": of, "upload": upload, "digest": digest}, body=body, safe=True))

    def data_use(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None) -> bodies.DataUse:
        """Which jobs use named data or did, and which nodes hold copies of it.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        """
        return cast("bodies.DataUse", self._call("GET", "/v1/data/" + quote(id, safe="") + "/use", query={"kind": kind, "of": of}, safe=True))

    def data_verify(self, id: str, *, kind: Optional[str] = None, of: Optional[str] = None, version: Optional[int] = None, run: Optional[str] = None) -> bodies.DataVerified:
        """Compare a version on its storage with its manifest; asked again until it is done.

        kind: dataset (default), model or algorithm
        of: the project that has it, when that is another one
        version: which version; the newest unless told
        run: a word of 8 to 64 letters and digits: the same one asks how far it is
        """
        return cast("bodies.DataVerified", self._call("POST", "/v1/data/" + quote(id, safe="") + "/verify", query={"kind": kind, "of": of, "version": version, "run": run}, safe=True))

    def devices_list(self, *, node: Optional[str] = None, pool: Optional[str] = None, limit: Optional[int] = None, after: Optional[str] = None) -> bodies.DeviceList:
        """List the nodes with their cards: owner, health and what they measure now.

        node: only the node of this id or name
        pool: only nodes of this pool
        limit: at most so many nodes, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        """
        return cast("bodies.DeviceList", self._call("GET", "/v1/devices", query={"node": node, "pool": pool, "limit": limit, "after": after}, safe=True))

    def events_stream(self, *, cursor: Optional[str] = None, index: Optional[int] = None, topic: Optional[str] = None, job: Optional[str] = None, project: Optional[str] = None) -> Iterator[bodies.EventLine]:
        """Follow events as they happen.

        cursor: begin after the line that told this cursor: nothing is left out, nothing comes twice
        index: begin with the events of this index, for callers without a cursor; without both, only what is new
        topic: only these topics, comma-separated: job, attempt, alloc, node, pool, project, token, cluster, data, template
        job: only events of this job id
        project: only events of this project
        """
        return self._lines("GET", "/v1/events", query={"cursor": cursor, "index": index, "topic": topic, "job": job, "project": project})

    def health_leader(self) -> bodies.Probe:
        """Whether this agent is the server that leads."""
        return cast("bodies.Probe", self._call("GET", "/v1/health/leader", safe=True))

    def health_live(self) -> bodies.Probe:
        """Whether this agent answers at all: one that does not is to be started anew."""
        return cast("bodies.Probe", self._call("GET", "/v1/health/live", safe=True))

    def health_ready(self) -> bodies.Probe:
        """Whether requests should be sent to this agent."""
        return cast("bodies.Probe", self._call("GET", "/v1/health/ready", safe=True))

    def images_delete(self, *, image: Optional[str] = None) -> bodies.Changed:
        """Take back what is declared of an image; nodes keep it.

        image: the name that was declared
        """
        return cast("bodies.Changed", self._call("DELETE", "/v1/images", query={"image": image}))

    def images_list(self, *, image: Optional[str] = None, node: Optional[str] = None, pool: Optional[str] = None) -> bodies.ImageList:
        """List the images that nodes hold, with what is declared of them.

        image: only the image of this name, with the nodes that have it
        node: only the node of this id or name
        pool: only nodes of this pool
        """
        return cast("bodies.ImageList", self._call("GET", "/v1/images", query={"image": image, "node": node, "pool": pool}, safe=True))

    def images_put(self, body: bodies.ImageRequest) -> bodies.Changed:
        """Declare what an image is for: jobs that do not fit are refused."""
        return cast("bodies.Changed", self._call("PUT", "/v1/images", body=body))

    def jobs_allocations(self, id: str, *, attempt: Optional[int] = None, subjob: Optional[int] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.AllocationList:
        """List the allocations of a job.

        attempt: only this attempt
        subjob: only this subjob
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.AllocationList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/allocations", query={"attempt": attempt, "subjob": subjob, "index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_annotate(self, id: str, body: bodies.JobAnnotateRequest) -> bodies.JobAnnotations:
        """Change the tags and the note of a job, whatever its state; nothing that runs is touched."""
        return cast("bodies.JobAnnotations", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/annotations", body=body))

    def jobs_attempts(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.AttemptList:
        """List the attempts of a job.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.AttemptList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/attempts", query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_consent(self, id: str, body: bodies.ConsentRequest) -> bodies.AskedList:
        """Answer, for a job that runs, a VIP job that asks whether it may be stopped."""
        return cast("bodies.AskedList", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/consent", body=body))

    def jobs_continue(self, id: str, body: bodies.JobControlRequest) -> bodies.Changed:
        """Let a paused job go on."""
        return cast("bodies.Changed", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/continue", body=body))

    def jobs_delete(self, id: str) -> bodies.Changed:
        """Forget an ended job and its history."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/jobs/" + quote(id, safe="")))

    def jobs_diff(self, id: str, *, with_: Optional[str] = None) -> bodies.JobDiff:
        """In what does this job differ from another, or from the last of its lineage that succeeded.

        with_: compare with this job: id, unique id prefix or name; the newest job of its lineage that succeeded unless told
        """
        return cast("bodies.JobDiff", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/diff", query={"with": with_}, safe=True))

    def jobs_events(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.EventList:
        """The history of a job.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.EventList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/events", query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_faults(self, id: str) -> bodies.JobFaults:
        """The story of each fault: when it was, when it was noticed, how the job went on, and what was lost."""
        return cast("bodies.JobFaults", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/faults", safe=True))

    def jobs_figures(self, id: str, *, subjob: Optional[int] = None) -> bodies.JobUsage:
        """What each rank of the newest attempt uses now: cores, memory, and its cards.

        subjob: of this subjob; 0 unless told
        """
        return cast("bodies.JobUsage", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/figures", query={"subjob": subjob}, safe=True))

    def jobs_file_content(self, id: str, *, path: Optional[str] = None, digest: Optional[bool] = None, attempt: Optional[int] = None, subjob: Optional[int] = None, rank: Optional[int] = None) -> Stream:
        """Download a file that a job wrote; a Range of bytes is understood.

        path: a file below outputs or logs
        digest: tell the SHA-256 of the bytes, at most 256 MiB, in the header Content-Digest (RFC 9530)
        attempt: of this attempt; the newest unless told
        subjob: of this subjob; 0 unless told
        rank: of this rank; 0 unless told
        """
        return self._stream("GET", "/v1/jobs/" + quote(id, safe="") + "/files/content", query={"path": path, "digest": digest, "attempt": attempt, "subjob": subjob, "rank": rank}, safe=True)

    def jobs_files(self, id: str, *, path: Optional[str] = None, digest: Optional[bool] = None, offset: Optional[int] = None, limit: Optional[int] = None, attempt: Optional[int] = None, subjob: Optional[int] = None, rank: Optional[int] = None) -> bodies.FileList:
        """List what a job wrote into its output and its logs, as long as the node keeps it.

        path: outputs, logs, or a path below one of them; both unless told
        digest: of a file: tell the SHA-256 of its bytes, at most 256 MiB
        offset: with digest: of the bytes from this one on; 0 unless told
        limit: with digest: of so many bytes; up to the end unless told
        attempt: of this attempt; the newest unless told
        subjob: of this subjob; 0 unless told
        rank: of this rank; 0 unless told
        """
        return cast("bodies.FileList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/files", query={"path": path, "digest": digest, "offset": offset, "limit": limit, "attempt": attempt, "subjob": subjob, "rank": rank}, safe=True))

    def jobs_finish(self, id: str, body: bodies.JobControlRequest) -> bodies.Changed:
        """End a running job now, with success."""
        return cast("bodies.Changed", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/finish", body=body))

    def jobs_forecast(self, body: bodies.JobRequest) -> bodies.JobOutlook:
        """When would this job start? Now, about when, or never and why; for each spec; and who would have to yield."""
        return cast("bodies.JobOutlook", self._call("POST", "/v1/jobs/forecast", body=body, safe=True))

    def jobs_forecast_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None, helps: Optional[bool] = None) -> bodies.JobForecast:
        """When does this queued job start, and how did that answer move.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        helps: what would start it sooner, too
        """
        return cast("bodies.JobForecast", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/forecast", query={"index": index, "wait": wait, "stale": stale, "helps": helps}, safe=True))

    def jobs_format(self, body: bodies.JobRequest) -> bodies.JobFormatted:
        """Write a job as a job file, or a job file in canonical form with the changes of `set` made."""
        return cast("bodies.JobFormatted", self._call("POST", "/v1/jobs/format", body=body, safe=True))

    def jobs_list(self, *, name: Optional[str] = None, state: Optional[str] = None, project: Optional[str] = None, user: Optional[str] = None, code: Optional[str] = None, spec: Optional[str] = None, output: Optional[str] = None, cause: Optional[str] = None, tag: Optional[str] = None, text: Optional[str] = None, trends: Optional[bool] = None, limit: Optional[int] = None, after: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.JobList:
        """List jobs, newest first.

        name: only jobs of this name
        state: only jobs in this state
        project: only jobs of this project
        user: only jobs of this user
        code: only jobs with this algorithm; favorite/NAME for one of the favourites
        spec: only jobs with a spec of this label, or for cards of this model
        output: only jobs whose output location holds this text
        cause: only jobs that wait or ended for a reason of this id
        tag: only jobs with all of these tags, separated by commas, in capitals or not
        text: only jobs that every one of these words finds: in the name, the note or a tag, in capitals or not, or as the beginning of the id; words such as tag:paper-3 find jobs with this very tag, and so do user:, project:, pool:, code: and card:
        trends: tell of the first 8 that run how their loss goes, else their speed, else another metric; nodes that take longer than a quarter of a second are not waited for
        limit: at most so many items, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.JobList", self._call("GET", "/v1/jobs", query={"name": name, "state": state, "project": project, "user": user, "code": code, "spec": spec, "output": output, "cause": cause, "tag": tag, "text": text, "trends": trends, "limit": limit, "after": after, "index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_metrics(self, id: str, *, attempt: Optional[int] = None, subjob: Optional[int] = None, rank: Optional[int] = None, name: Optional[str] = None, points: Optional[int] = None) -> bodies.JobMetrics:
        """The curves of a job: figures that its ranks wrote into logs and event files.

        attempt: only this attempt
        subjob: only this subjob
        rank: only this rank
        name: only figures of these names, comma-separated
        points: at most so many points of each series, 1 to 1024; 200 unless told
        """
        return cast("bodies.JobMetrics", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/metrics", query={"attempt": attempt, "subjob": subjob, "rank": rank, "name": name, "points": points}, safe=True))

    def jobs_move(self, id: str, body: bodies.QueueMoveRequest) -> bodies.Changed:
        """Give a queued job another place within its tier."""
        return cast("bodies.Changed", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/move", body=body))

    def jobs_parallel(self, id: str, body: bodies.ParallelRequest) -> bodies.Changed:
        """Change how many subjobs of a batch or a sweep run at a time; what runs goes on."""
        return cast("bodies.Changed", self._call("PUT", "/v1/jobs/" + quote(id, safe="") + "/parallel", body=body))

    def jobs_parse(self, body: bodies.JobRequest) -> bodies.JobParsed:
        """Turn a job file into a job."""
        return cast("bodies.JobParsed", self._call("POST", "/v1/jobs/parse", body=body, safe=True))

    def jobs_past(self, id: str, *, subjob: Optional[int] = None, attempt: Optional[int] = None, rank: Optional[int] = None, since: Optional[str] = None, points: Optional[int] = None) -> bodies.JobHistory:
        """What each rank of an attempt used while it ran: cores, memory, and its cards; nodes keep it as long as the rank's files.

        subjob: of this subjob; 0 unless told
        attempt: of this attempt; the newest unless told
        rank: only this rank
        since: how far back from its end, or from now, such as 6h; all of it unless told
        points: at most so many values of each figure, 1 to 1440; 240 unless told
        """
        return cast("bodies.JobHistory", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/figures/past", query={"subjob": subjob, "attempt": attempt, "rank": rank, "since": since, "points": points}, safe=True))

    def jobs_pause(self, id: str, body: bodies.JobControlRequest) -> bodies.Changed:
        """Let every rank of a running job stand still; it keeps its devices and their memory."""
        return cast("bodies.Changed", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/pause", body=body))

    def jobs_plan(self, body: bodies.JobRequest) -> bodies.JobPlan:
        """Preview what every rank would run, and whether the job would start now."""
        return cast("bodies.JobPlan", self._call("POST", "/v1/jobs/plan", body=body, safe=True))

    def jobs_priority(self, id: str, body: bodies.JobPriorityRequest) -> bodies.Changed:
        """Change the tier of a queued job."""
        return cast("bodies.Changed", self._call("PUT", "/v1/jobs/" + quote(id, safe="") + "/priority", body=body))

    def jobs_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.JobDetail:
        """Read one job; id, unique id prefix or name.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.JobDetail", self._call("GET", "/v1/jobs/" + quote(id, safe=""), query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_results(self, *, job: Optional[str] = None, name: Optional[str] = None) -> bodies.JobResults:
        """Where the metrics of some jobs stand: last, least and most of each.

        job: ids of jobs, comma-separated, at most 100
        name: only metrics of these names, comma-separated
        """
        return cast("bodies.JobResults", self._call("GET", "/v1/job-results", query={"job": job, "name": name}, safe=True))

    def jobs_share(self, id: str, body: bodies.ShareRequest) -> bodies.NewShare:
        """Make a link that shows this one job, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it."""
        return cast("bodies.NewShare", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/shares", body=body))

    def jobs_shares(self, id: str) -> bodies.ShareList:
        """List the links that show this job and are not over."""
        return cast("bodies.ShareList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/shares", safe=True))

    def jobs_stop(self, id: str, body: bodies.JobStopRequest) -> bodies.Changed:
        """Stop a job, or one subjob of a batch."""
        return cast("bodies.Changed", self._call("POST", "/v1/jobs/" + quote(id, safe="") + "/stop", body=body))

    def jobs_subjobs(self, id: str, *, limit: Optional[int] = None, after: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.SubjobList:
        """List the subjobs of a job.

        limit: at most so many items, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.SubjobList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/subjobs", query={"limit": limit, "after": after, "index": index, "wait": wait, "stale": stale}, safe=True))

    def jobs_submit(self, body: bodies.JobRequest, *, idempotency_key: Optional[str] = None) -> bodies.JobSubmitted:
        """Submit a job, as JSON or as a job file.

        idempotency_key: Repeating a submission under the same key gives the first one's answer.
        """
        return cast("bodies.JobSubmitted", self._call("POST", "/v1/jobs", headers={"Idempotency-Key": idempotency_key}, body=body))

    def jobs_throttle(self, id: str, body: bodies.ThrottleRequest) -> bodies.Changed:
        """Let a job run and stand still in turns, or lift that again."""
        return cast("bodies.Changed", self._call("PUT", "/v1/jobs/" + quote(id, safe="") + "/throttle", body=body))

    def jobs_time_limit(self, id: str, body: bodies.TimeLimitRequest) -> bodies.Changed:
        """Change how long a job may run, also while it runs."""
        return cast("bodies.Changed", self._call("PUT", "/v1/jobs/" + quote(id, safe="") + "/time-limit", body=body))

    def jobs_trials(self, id: str, *, metric: Optional[str] = None) -> bodies.TrialList:
        """The trials of a sweep, or the subjobs of a batch, best first.

        metric: order by this metric instead of the one that the sweep names
        """
        return cast("bodies.TrialList", self._call("GET", "/v1/jobs/" + quote(id, safe="") + "/trials", query={"metric": metric}, safe=True))

    def jobs_validate(self, body: bodies.JobRequest) -> bodies.JobValidated:
        """Check a job without submitting it; lists every problem."""
        return cast("bodies.JobValidated", self._call("POST", "/v1/jobs/validate", body=body, safe=True))

    def join_tokens_create(self, body: bodies.JoinTokenRequest) -> bodies.NewJoinToken:
        """Make a join token for new agents."""
        return cast("bodies.NewJoinToken", self._call("POST", "/v1/join-tokens", body=body))

    def join_tokens_delete(self, id: str) -> bodies.Changed:
        """Revoke a join token."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/join-tokens/" + quote(id, safe="")))

    def join_tokens_list(self) -> bodies.JoinTokenList:
        """List join tokens; secrets are never shown."""
        return cast("bodies.JoinTokenList", self._call("GET", "/v1/join-tokens", safe=True))

    def login_begin(self, body: bodies.LoginBeginRequest) -> bodies.LoginBegun:
        """Begin a sign-in through a provider of OpenID Connect; `POST /v1/login` finishes it."""
        return cast("bodies.LoginBegun", self._call("POST", "/v1/login/begin", body=body))

    def login_create(self, body: bodies.LoginRequest) -> bodies.NewToken:
        """Sign in with the password of an account, or of a directory: makes a token for whatever the account may; its secret is shown this once."""
        return cast("bodies.NewToken", self._call("POST", "/v1/login", body=body))

    def login_list(self) -> bodies.LoginProviders:
        """List the providers that one may sign in through."""
        return cast("bodies.LoginProviders", self._call("GET", "/v1/login", safe=True))

    def machines_list(self, *, pool: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.MachineList:
        """List the machines that a VIP job may choose: free ones first, and what runs on the others.

        pool: only machines of this pool
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.MachineList", self._call("GET", "/v1/machines", query={"pool": pool, "index": index, "wait": wait, "stale": stale}, safe=True))

    def maintenance_add(self, body: bodies.MaintenanceRequest) -> bodies.MaintenanceChanged:
        """Close nodes for a window of time; the scheduler plans around it."""
        return cast("bodies.MaintenanceChanged", self._call("POST", "/v1/maintenance", body=body))

    def maintenance_change(self, id: str, body: bodies.MaintenanceRequest) -> bodies.MaintenanceChanged:
        """Move, shorten or extend a window of maintenance; one that has begun keeps its start."""
        return cast("bodies.MaintenanceChanged", self._call("PUT", "/v1/maintenance/" + quote(id, safe=""), body=body))

    def maintenance_end(self, id: str) -> bodies.Changed:
        """End a window of maintenance now, or remove one that has not begun."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/maintenance/" + quote(id, safe="")))

    def maintenance_list(self, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.MaintenanceList:
        """List the windows of maintenance that have not ended, and what runs into them.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.MaintenanceList", self._call("GET", "/v1/maintenance", query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def metrics(self) -> Stream:
        """Metrics for Prometheus."""
        return self._stream("GET", "/metrics", safe=True)

    def nodes_available(self, body: bodies.JobRequest) -> bodies.Available:
        """Which nodes could a job use, what is used of them and by whom, and how much is waited for."""
        return cast("bodies.Available", self._call("POST", "/v1/nodes/available", body=body, safe=True))

    def nodes_cordon(self, id: str) -> bodies.Changed:
        """Give a node no new work; what runs goes on."""
        return cast("bodies.Changed", self._call("POST", "/v1/nodes/" + quote(id, safe="") + "/cordon"))

    def nodes_devices(self, id: str) -> bodies.NodeDevices:
        """Read the cards of one node: owner, health and what they measure now."""
        return cast("bodies.NodeDevices", self._call("GET", "/v1/nodes/" + quote(id, safe="") + "/devices", safe=True))

    def nodes_drain(self, id: str, body: bodies.DrainRequest) -> bodies.Changed:
        """Move work away from a node and give it no more."""
        return cast("bodies.Changed", self._call("POST", "/v1/nodes/" + quote(id, safe="") + "/drain", body=body))

    def nodes_events(self, id: str, *, device: Optional[str] = None) -> bodies.EventList:
        """What happened to a node and its cards lately, as far back as servers keep events.

        device: only what happened to this card: its id, a unique beginning of it, or its number
        """
        return cast("bodies.EventList", self._call("GET", "/v1/nodes/" + quote(id, safe="") + "/events", query={"device": device}, safe=True))

    def nodes_image(self, id: str, body: bodies.ImageActRequest) -> bodies.ImageActed:
        """Have a node pull, push, tag or remove an image."""
        return cast("bodies.ImageActed", self._call("POST", "/v1/nodes/" + quote(id, safe="") + "/images", body=body))

    def nodes_images(self, id: str, *, work: Optional[bool] = None) -> bodies.NodeImages:
        """Read the images of one node, and how far pulls and pushes are.

        work: only what is being done with them
        """
        return cast("bodies.NodeImages", self._call("GET", "/v1/nodes/" + quote(id, safe="") + "/images", query={"work": work}, safe=True))

    def nodes_list(self, *, text: Optional[str] = None, limit: Optional[int] = None, after: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.NodeList:
        """List nodes.

        text: only nodes whose name holds this text, in capitals or not, or whose id begins with it
        limit: at most so many items, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.NodeList", self._call("GET", "/v1/nodes", query={"text": text, "limit": limit, "after": after, "index": index, "wait": wait, "stale": stale}, safe=True))

    def nodes_past(self, id: str, *, device: Optional[str] = None, since: Optional[str] = None, points: Optional[int] = None) -> bodies.NodeHistory:
        """What a node and its cards measured during the last day; the node keeps it.

        device: only this card: its id, a unique beginning of it, or its number
        since: how far back, such as 6h; 24h unless told, and at most
        points: at most so many values of each figure, 1 to 1440; 240 unless told
        """
        return cast("bodies.NodeHistory", self._call("GET", "/v1/nodes/" + quote(id, safe="") + "/figures", query={"device": device, "since": since, "points": points}, safe=True))

    def nodes_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.NodeDetail:
        """Read one node; id, unique id prefix or name.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.NodeDetail", self._call("GET", "/v1/nodes/" + quote(id, safe=""), query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def nodes_remove(self, id: str) -> bodies.Changed:
        """Shut a node out of the cluster at once and forget it: its certificate is refused everywhere and never renewed."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/nodes/" + quote(id, safe="")))

    def nodes_treat_device(self, id: str, body: bodies.DeviceTreatRequest) -> bodies.DeviceTreated:
        """Clear the faults of a card by an operator's word, reset it, or keep new work from it."""
        return cast("bodies.DeviceTreated", self._call("POST", "/v1/nodes/" + quote(id, safe="") + "/devices", body=body))

    def nodes_uncordon(self, id: str) -> bodies.Changed:
        """Let a node take work again."""
        return cast("bodies.Changed", self._call("POST", "/v1/nodes/" + quote(id, safe="") + "/uncordon"))

    def notifications_list(self) -> bodies.NotificationList:
        """What the caller was told of late."""
        return cast("bodies.NotificationList", self._call("GET", "/v1/self/notifications", safe=True))

    def notifications_seen(self, body: bodies.NotificationsSeen) -> bodies.Changed:
        """Say how far the list was seen."""
        return cast("bodies.Changed", self._call("POST", "/v1/self/notifications/seen", body=body))

    def notify_channel_delete(self, id: str) -> bodies.Changed:
        """Remove a channel; what went there is told nowhere."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/self/notify/channels/" + quote(id, safe="")))

    def notify_channel_put(self, id: str, body: bodies.NotifyChannelRequest) -> bodies.NotifyChannelChanged:
        """Make a channel, or give it another address; nobody reads the address back."""
        return cast("bodies.NotifyChannelChanged", self._call("PUT", "/v1/self/notify/channels/" + quote(id, safe=""), body=body))

    def notify_channel_test(self, id: str) -> bodies.NotifyTested:
        """Send a message to a channel to see it work."""
        return cast("bodies.NotifyTested", self._call("POST", "/v1/self/notify/channels/" + quote(id, safe="") + "/test"))

    def notify_put(self, body: bodies.NotifyRequest) -> bodies.Changed:
        """Choose what to be told, and where."""
        return cast("bodies.Changed", self._call("PUT", "/v1/self/notify", body=body))

    def notify_read(self) -> bodies.NotifyStatus:
        """What the caller is told, and where."""
        return cast("bodies.NotifyStatus", self._call("GET", "/v1/self/notify", safe=True))

    def openapi(self) -> Optional[Dict[str, Any]]:
        """This document."""
        return cast("Optional[Dict[str, Any]]", self._call("GET", "/v1/openapi.json", safe=True))

    def operator_autopilot(self) -> bodies.AutopilotHealth:
        """Health of the servers, and how many may fail."""
        return cast("bodies.AutopilotHealth", self._call("GET", "/v1/operator/autopilot", safe=True))

    def operator_debug(self, *, part: Optional[str] = None, server: Optional[str] = None, span: Optional[str] = None) -> Stream:
        """How a server is from inside, without secrets: its configuration, metrics, profiles and newest log lines.

        part: agent.json, metrics.txt, goroutines.txt, heap.pprof, cpu.pprof or agent.log
        server: id of the server that is asked; the one that answers unless told
        span: how long cpu.pprof looks, 5s unless told, at most 1m
        """
        return self._stream("GET", "/v1/operator/debug", query={"part": part, "server": server, "span": span}, safe=True)

    def operator_keys(self, id: str) -> bodies.Keys:
        """Fingerprints of a key that all agents share (gossip), or of the certificates of the CA (ca), how far its rotation is, and which agent holds which."""
        return cast("bodies.Keys", self._call("GET", "/v1/operator/keys/" + quote(id, safe=""), safe=True))

    def operator_keys_rotate(self, id: str, *, revoke: Optional[bool] = None) -> bodies.Keys:
        """Begin to replace a key that all agents share; while that is under way, tell how far it is.

        revoke: of the CA: its key may be in other hands, so nobody follows from it to the new one
        """
        return cast("bodies.Keys", self._call("POST", "/v1/operator/keys/" + quote(id, safe="") + "/rotate", query={"revoke": revoke}))

    def operator_raft_add_peer(self, id: str) -> bodies.Changed:
        """Let a removed server back in."""
        return cast("bodies.Changed", self._call("PUT", "/v1/operator/raft/peers/" + quote(id, safe="")))

    def operator_raft_peers(self) -> bodies.RaftPeerList:
        """List the Raft peers."""
        return cast("bodies.RaftPeerList", self._call("GET", "/v1/operator/raft/peers", safe=True))

    def operator_raft_remove_peer(self, id: str) -> bodies.Changed:
        """Remove a Raft peer; it stays out until it is let back in."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/operator/raft/peers/" + quote(id, safe="")))

    def operator_secrets(self) -> bodies.SecretKeys:
        """With which keys are secrets sealed, and does this server have them."""
        return cast("bodies.SecretKeys", self._call("GET", "/v1/operator/secrets", safe=True))

    def operator_secrets_rotate(self) -> bodies.SecretKeys:
        """Seal all secrets anew with new keys."""
        return cast("bodies.SecretKeys", self._call("POST", "/v1/operator/secrets/rotate"))

    def operator_snapshot_inspect(self, body: bytes) -> bodies.SnapshotMeta:
        """Check a snapshot and tell what is in it."""
        return cast("bodies.SnapshotMeta", self._call("POST", "/v1/operator/snapshot/inspect", body=body, safe=True))

    def operator_snapshot_restore(self, body: bytes, *, foreign: Optional[bool] = None) -> bodies.Changed:
        """Replace the whole state by a snapshot.

        foreign: also one of another cluster, whose place this one takes
        """
        return cast("bodies.Changed", self._call("PUT", "/v1/operator/snapshot", query={"foreign": foreign}, body=body))

    def operator_snapshot_save(self, *, stale: Optional[bool] = None) -> Stream:
        """Download a snapshot of the whole state.

        stale: what this server has applied, without asking the leader
        """
        return self._stream("GET", "/v1/operator/snapshot", query={"stale": stale}, safe=True)

    def outlook_past(self, *, pool: Optional[str] = None) -> bodies.Past:
        """Which job held each card of each node over the last 24 hours.

        pool: only nodes of this pool
        """
        return cast("bodies.Past", self._call("GET", "/v1/outlook/past", query={"pool": pool}, safe=True))

    def outlook_read(self, *, pool: Optional[str] = None) -> bodies.Outlook:
        """How full were the pools over the last 24 hours, how full will they probably be over the next 12, and what could start now.

        pool: only this pool, and what could start there
        """
        return cast("bodies.Outlook", self._call("GET", "/v1/outlook", query={"pool": pool}, safe=True))

    def pools_delete(self, id: str) -> bodies.Changed:
        """Remove a pool; its nodes fall back to their own configuration."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/pools/" + quote(id, safe="")))

    def pools_list(self, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.PoolList:
        """List pools with their use.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.PoolList", self._call("GET", "/v1/pools", query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def pools_put(self, id: str, body: bodies.Pool) -> bodies.Changed:
        """Make or replace a pool; its ceilings are for administrators alone."""
        return cast("bodies.Changed", self._call("PUT", "/v1/pools/" + quote(id, safe=""), body=body))

    def pools_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.PoolDetail:
        """Read one pool by name.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.PoolDetail", self._call("GET", "/v1/pools/" + quote(id, safe=""), query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def projects_archive(self, id: str, body: bodies.ArchiveRequest) -> bodies.Changed:
        """Archive a project, which takes no new jobs then and is left out of lists, or bring it back."""
        return cast("bodies.Changed", self._call("PUT", "/v1/projects/" + quote(id, safe="") + "/archive", body=body))

    def projects_delete(self, id: str) -> bodies.Changed:
        """Remove a project's record, and so its bounds."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/projects/" + quote(id, safe="")))

    def projects_list(self, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None, archived: Optional[bool] = None) -> bodies.ProjectList:
        """List projects with quotas and use; archived ones where they are asked for.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        archived: the archived ones too
        """
        return cast("bodies.ProjectList", self._call("GET", "/v1/projects", query={"index": index, "wait": wait, "stale": stale, "archived": archived}, safe=True))

    def projects_member(self, id: str, body: bodies.MemberRequest) -> bodies.Changed:
        """Give a user a role in a project, or take it away."""
        return cast("bodies.Changed", self._call("POST", "/v1/projects/" + quote(id, safe="") + "/members", body=body))

    def projects_put(self, id: str, body: bodies.Project) -> bodies.Changed:
        """Make or replace a project's record; its own administrators may change members and description."""
        return cast("bodies.Changed", self._call("PUT", "/v1/projects/" + quote(id, safe=""), body=body))

    def projects_read(self, id: str, *, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.ProjectDetail:
        """Read one project by name.

        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.ProjectDetail", self._call("GET", "/v1/projects/" + quote(id, safe=""), query={"index": index, "wait": wait, "stale": stale}, safe=True))

    def projects_usage(self, id: str, *, days: Optional[int] = None, zone: Optional[int] = None) -> bodies.ProjectUse:
        """What the jobs of a project used, by day and kind of device, and by user.

        days: how many days back, today included, 1 to 31; 7 unless told
        zone: minutes east of UTC at which days begin
        """
        return cast("bodies.ProjectUse", self._call("GET", "/v1/projects/" + quote(id, safe="") + "/usage", query={"days": days, "zone": zone}, safe=True))

    def queue_accuracy(self) -> bodies.Accuracy:
        """How did the forecasts that were given come out."""
        return cast("bodies.Accuracy", self._call("GET", "/v1/queue/accuracy", safe=True))

    def queue_forecast(self) -> bodies.QueueForecast:
        """When does everything that waits start."""
        return cast("bodies.QueueForecast", self._call("GET", "/v1/queue/forecast", safe=True))

    def queue_read(self, *, pool: Optional[str] = None, project: Optional[str] = None, forecast: Optional[bool] = None, limit: Optional[int] = None, after: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.Queue:
        """What waits, in order, and why.

        pool: only jobs that wait for this pool: that name it, or name none and could run there
        project: only jobs of this project
        forecast: tell for each when it starts
        limit: at most so many items, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.Queue", self._call("GET", "/v1/queue", query={"pool": pool, "project": project, "forecast": forecast, "limit": limit, "after": after, "index": index, "wait": wait, "stale": stale}, safe=True))

    def queue_timeline(self, *, hours: Optional[int] = None, pool: Optional[str] = None) -> bodies.Timeline:
        """What runs, is reserved and is expected on each node.

        hours: how far to look, at most 168; 24 unless told
        pool: only nodes of this pool
        """
        return cast("bodies.Timeline", self._call("GET", "/v1/queue/timeline", query={"hours": hours, "pool": pool}, safe=True))

    def queue_what_if(self, body: bodies.WhatIfRequest) -> bodies.Effect:
        """Who would start earlier or later after some changes? Nothing is changed."""
        return cast("bodies.Effect", self._call("POST", "/v1/queue/what-if", body=body, safe=True))

    def reports_usage(self, *, by: Optional[str] = None, per: Optional[str] = None, from_: Optional[str] = None, to: Optional[str] = None, zone: Optional[str] = None, user: Optional[str] = None, project: Optional[str] = None, pool: Optional[str] = None, tag: Optional[str] = None) -> bodies.UsageReport:
        """Who held how many cards for how long, of all years that are kept, and what became of it; of projects that the caller may read, and the caller's own.

        by: a line for each: project unless told, or user, pool, cards, tag, size
        per: cut into spans of the calendar: day, week or month
        from_: from when on: a time, a day such as 2026-11-01, a month such as 2026-11, or how far back, such as 30d; the beginning of this month unless told
        to: until when, likewise; now unless told
        zone: time zone of days and months, such as Asia/Shanghai; UTC unless told
        user: only what this user's jobs had; `me`: the caller's
        project: only what this project's jobs had
        pool: only what was in this pool
        tag: only what jobs with this tag had
        """
        return cast("bodies.UsageReport", self._call("GET", "/v1/reports/usage", query={"by": by, "per": per, "from": from_, "to": to, "zone": zone, "user": user, "project": project, "pool": pool, "tag": tag}, safe=True))

    def reports_waits(self, *, by: Optional[str] = None, per: Optional[str] = None, from_: Optional[str] = None, to: Optional[str] = None, zone: Optional[str] = None, user: Optional[str] = None, project: Optional[str] = None, pool: Optional[str] = None, tag: Optional[str] = None) -> bodies.WaitsReport:
        """How long attempts had waited when they were placed, and whether the forecasts of their start held.

        by: a line for each: project unless told, or user, pool, cards, tag, size
        per: cut into spans of the calendar: day, week or month
        from_: from when on: a time, a day such as 2026-11-01, a month such as 2026-11, or how far back, such as 30d; the beginning of this month unless told
        to: until when, likewise; now unless told
        zone: time zone of days and months, such as Asia/Shanghai; UTC unless told
        user: only what this user's jobs had; `me`: the caller's
        project: only what this project's jobs had
        pool: only what was in this pool
        tag: only what jobs with this tag had
        """
        return cast("bodies.WaitsReport", self._call("GET", "/v1/reports/waits", query={"by": by, "per": per, "from": from_, "to": to, "zone": zone, "user": user, "project": project, "pool": pool, "tag": tag}, safe=True))

    def secrets_delete(self, id: str, *, mine: Optional[bool] = None) -> bodies.SecretChanged:
        """Delete a secret; jobs that name it start no more.

        mine: the caller's own secret, not the project's
        """
        return cast("bodies.SecretChanged", self._call("DELETE", "/v1/secrets/" + quote(id, safe=""), query={"mine": mine}))

    def secrets_list(self) -> bodies.SecretList:
        """List the project's secrets and one's own, without their values."""
        return cast("bodies.SecretList", self._call("GET", "/v1/secrets", safe=True))

    def secrets_set(self, id: str, body: bodies.SecretRequest, *, mine: Optional[bool] = None) -> bodies.SecretChanged:
        """Make a secret, or give it another value; nobody reads it back.

        mine: the caller's own secret, not the project's
        """
        return cast("bodies.SecretChanged", self._call("PUT", "/v1/secrets/" + quote(id, safe=""), query={"mine": mine}, body=body))

    def self_read(self) -> bodies.Self:
        """Who asks, in which project, and as what."""
        return cast("bodies.Self", self._call("GET", "/v1/self", safe=True))

    def self_usage(self, *, days: Optional[int] = None, zone: Optional[int] = None) -> bodies.SelfUse:
        """What the caller's own jobs have now and used, by day and by job.

        days: how many days back, today included, 1 to 31; 7 unless told
        zone: minutes east of UTC at which days begin
        """
        return cast("bodies.SelfUse", self._call("GET", "/v1/self/usage", query={"days": days, "zone": zone}, safe=True))

    def servers_join(self, body: bodies.ServersJoinRequest) -> bodies.ServersJoined:
        """Tell this agent's gossip of further addresses."""
        return cast("bodies.ServersJoined", self._call("POST", "/v1/servers/join", body=body))

    def servers_list(self) -> bodies.MemberList:
        """List the agents that gossip knows."""
        return cast("bodies.MemberList", self._call("GET", "/v1/servers", safe=True))

    def service_accounts_delete(self, id: str, *, cluster: Optional[bool] = None, jobs: Optional[str] = None, to: Optional[str] = None) -> bodies.Changed:
        """Forget a service account and its tokens.

        cluster: the one of the whole cluster, not of the project
        jobs: what becomes of its live jobs: stop or hand_over; without a word it is refused while there are any
        to: the user that they are handed over to
        """
        return cast("bodies.Changed", self._call("DELETE", "/v1/service-accounts/" + quote(id, safe=""), query={"cluster": cluster, "jobs": jobs, "to": to}))

    def service_accounts_list(self) -> bodies.ServiceAccountList:
        """List the project's service accounts, and those of the cluster for whoever may see them."""
        return cast("bodies.ServiceAccountList", self._call("GET", "/v1/service-accounts", safe=True))

    def service_accounts_put(self, id: str, body: bodies.ServiceAccountRequest, *, cluster: Optional[bool] = None) -> bodies.Changed:
        """Make a service account, or replace what it says.

        cluster: the one of the whole cluster, not of the project
        """
        return cast("bodies.Changed", self._call("PUT", "/v1/service-accounts/" + quote(id, safe=""), query={"cluster": cluster}, body=body))

    def service_accounts_read(self, id: str, *, cluster: Optional[bool] = None) -> bodies.ServiceAccountDetail:
        """Read one service account by name.

        cluster: the one of the whole cluster, not of the project
        """
        return cast("bodies.ServiceAccountDetail", self._call("GET", "/v1/service-accounts/" + quote(id, safe=""), query={"cluster": cluster}, safe=True))

    def service_accounts_revoke(self, id: str, body: bodies.ServiceRevokeRequest, *, cluster: Optional[bool] = None) -> bodies.Changed:
        """Revoke one token of a service account, or all of them.

        cluster: the one of the whole cluster, not of the project
        """
        return cast("bodies.Changed", self._call("POST", "/v1/service-accounts/" + quote(id, safe="") + "/revoke", query={"cluster": cluster}, body=body))

    def service_accounts_state(self, id: str, body: bodies.ServiceAccountStateRequest, *, cluster: Optional[bool] = None) -> bodies.Changed:
        """Disable a service account, which ends its tokens and streams, or enable it.

        cluster: the one of the whole cluster, not of the project
        """
        return cast("bodies.Changed", self._call("PUT", "/v1/service-accounts/" + quote(id, safe="") + "/state", query={"cluster": cluster}, body=body))

    def service_accounts_token(self, id: str, body: bodies.ServiceTokenRequest, *, cluster: Optional[bool] = None) -> bodies.NewToken:
        """Make a token of a service account; its secret is in the answer and nowhere else.

        cluster: the one of the whole cluster, not of the project
        """
        return cast("bodies.NewToken", self._call("POST", "/v1/service-accounts/" + quote(id, safe="") + "/tokens", query={"cluster": cluster}, body=body))

    def session_begin(self, body: bodies.SessionBeginRequest) -> bodies.SessionBegun:
        """Begin a sign-in of a browser through a provider of OpenID Connect; `POST /v1/session` finishes it."""
        return cast("bodies.SessionBegun", self._call("POST", "/v1/session/begin", body=body))

    def session_create(self, body: bodies.SessionRequest) -> bodies.Session:
        """Sign a browser in: exchange a token for a cookie that no script can read."""
        return cast("bodies.Session", self._call("POST", "/v1/session", body=body))

    def session_delete(self) -> bodies.SessionEnded:
        """Sign a browser out."""
        return cast("bodies.SessionEnded", self._call("DELETE", "/v1/session"))

    def settings_put(self, body: bodies.SettingsRequest) -> bodies.Changed:
        """Set ceilings of all jobs, whether owners may share theirs with their projects, and how long tokens of service accounts live."""
        return cast("bodies.Changed", self._call("PUT", "/v1/settings", body=body))

    def settings_read(self, *, pool: Optional[str] = None, named: Optional[bool] = None) -> bodies.SettingsAnswer:
        """What administrators set for all jobs, and the most that the caller's may ask for.

        pool: for jobs that stand in it; without one the default pool
        named: for jobs that name their nodes, for which ceilings of pools do not hold
        """
        return cast("bodies.SettingsAnswer", self._call("GET", "/v1/settings", query={"pool": pool, "named": named}, safe=True))

    def ssh_authority(self) -> bodies.SSHAuthority:
        """The key that certifies the host keys of tasks for ssh."""
        return cast("bodies.SSHAuthority", self._call("GET", "/v1/ssh", safe=True))

    def templates_delete(self, id: str, *, mine: Optional[bool] = None) -> bodies.Changed:
        """Remove a template; jobs that began with it stay.

        mine: the caller's own template, not the project's
        """
        return cast("bodies.Changed", self._call("DELETE", "/v1/templates/" + quote(id, safe=""), query={"mine": mine}))

    def templates_list(self) -> bodies.TemplateList:
        """List the project's templates of job files and one's own."""
        return cast("bodies.TemplateList", self._call("GET", "/v1/templates", safe=True))

    def templates_put(self, id: str, body: bodies.TemplateRequest, *, mine: Optional[bool] = None) -> bodies.Changed:
        """Save a job file as a template, or replace one.

        mine: the caller's own template, not the project's
        """
        return cast("bodies.Changed", self._call("PUT", "/v1/templates/" + quote(id, safe=""), query={"mine": mine}, body=body))

    def templates_read(self, id: str, *, mine: Optional[bool] = None) -> bodies.Template:
        """Read a template with its job file.

        mine: the caller's own template, not the project's
        """
        return cast("bodies.Template", self._call("GET", "/v1/templates/" + quote(id, safe=""), query={"mine": mine}, safe=True))

    def tokens_bootstrap(self, body: bodies.BootstrapRequest) -> bodies.NewToken:
        """Make the first management token, once, with the setup secret."""
        return cast("bodies.NewToken", self._call("POST", "/v1/tokens/bootstrap", body=body))

    def tokens_create(self, body: bodies.TokenRequest) -> bodies.NewToken:
        """Make a token; its secret is shown this once."""
        return cast("bodies.NewToken", self._call("POST", "/v1/tokens", body=body))

    def tokens_delete(self, id: str) -> bodies.TokenDeleted:
        """Revoke a token."""
        return cast("bodies.TokenDeleted", self._call("DELETE", "/v1/tokens/" + quote(id, safe="")))

    def tokens_extend(self) -> bodies.Token:
        """Put off the end of a token that a sign-in made, while it is in use."""
        return cast("bodies.Token", self._call("POST", "/v1/tokens/self/extend"))

    def tokens_list(self, *, limit: Optional[int] = None, after: Optional[str] = None, index: Optional[int] = None, wait: Optional[str] = None, stale: Optional[bool] = None) -> bodies.TokenList:
        """List tokens; secrets are never shown.

        limit: at most so many items, 1 to 1000; 100 unless told
        after: the cursor `next` of the page before
        index: answer only when something newer than this index is known, or after wait
        wait: longest time to hold a blocking query, such as 30s; at most 10m
        stale: answer from this server's own state without asking the leader
        """
        return cast("bodies.TokenList", self._call("GET", "/v1/tokens", query={"limit": limit, "after": after, "index": index, "wait": wait, "stale": stale}, safe=True))

    def tokens_read(self, id: str) -> bodies.Token:
        """Read one token."""
        return cast("bodies.Token", self._call("GET", "/v1/tokens/" + quote(id, safe=""), safe=True))

    def tokens_self(self) -> bodies.Token:
        """Read the token that the request carries."""
        return cast("bodies.Token", self._call("GET", "/v1/tokens/self", safe=True))

    def users_delete(self, id: str) -> bodies.Changed:
        """Forget an account that is disabled and has no live jobs."""
        return cast("bodies.Changed", self._call("DELETE", "/v1/users/" + quote(id, safe="")))

    def users_identity(self, id: str, body: bodies.IdentityRequest) -> bodies.Changed:
        """Link an account to who somebody is to a provider of sign-ins, or take that away with all that came of it."""
        return cast("bodies.Changed", self._call("PUT", "/v1/users/" + quote(id, safe="") + "/identity", body=body))

    def users_list(self) -> bodies.UserList:
        """List accounts with the projects that they belong to."""
        return cast("bodies.UserList", self._call("GET", "/v1/users", safe=True))

    def users_password(self, id: str, body: bodies.PasswordRequest) -> bodies.PasswordChanged:
        """Make a password another: one's own, or have one drawn for another's first sign-in."""
        return cast("bodies.PasswordChanged", self._call("POST", "/v1/users/" + quote(id, safe="") + "/password", body=body))

    def users_put(self, id: str, body: bodies.User) -> bodies.Changed:
        """Make an account, or replace what it says; everybody may change display name, language, SSH keys and project of their own."""
        return cast("bodies.Changed", self._call("PUT", "/v1/users/" + quote(id, safe=""), body=body))

    def users_read(self, id: str) -> bodies.UserDetail:
        """Read one account by name."""
        return cast("bodies.UserDetail", self._call("GET", "/v1/users/" + quote(id, safe=""), safe=True))

    def users_state(self, id: str, body: bodies.UserStateRequest) -> bodies.Changed:
        """Disable an account, which ends its tokens, sessions and streams, or enable it."""
        return cast("bodies.Changed", self._call("PUT", "/v1/users/" + quote(id, safe="") + "/state", body=body))

    def wall_share(self, body: bodies.ShareRequest) -> bodies.NewShare:
        """Make a link that shows the wall of cards, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it."""
        return cast("bodies.NewShare", self._call("POST", "/v1/wall/shares", body=body))

    def wall_shares(self) -> bodies.ShareList:
        """List the links that show the wall of cards and are not over."""
        return cast("bodies.ShareList", self._call("GET", "/v1/wall/shares", safe=True))
