package api

import "net/http"

// The endpoints of job routes.
var (
	JobsList = endpoint[None, JobList](Route{
		Name: "jobs.list", Method: http.MethodGet, Pattern: "/v1/jobs", Verb: VerbList, Kind: ObjectJob, From: FromKind, Blocking: true,
		Query: listParams(
			Param{"name", "string", "only jobs of this name"},
			Param{"state", "string", "only jobs in this state"},
			Param{"project", "string", "only jobs of this project"},
			Param{"user", "string", "only jobs of this user"},
			Param{"code", "string", "only jobs with this algorithm; favorite/NAME for one of the favourites"},
			Param{"spec", "string", "only jobs with a spec of this label, or for cards of this model"},
			Param{"output", "string", "only jobs whose output location holds this text"},
			Param{"cause", "string", "only jobs that wait or ended for a reason of this id"},
			Param{"tag", "string", "only jobs with all of these tags, separated by commas, in capitals or not"},
			Param{"text", "string", "only jobs that every one of these words finds: in the name, the note or a tag, in capitals or not, or as the beginning of the id; words such as tag:paper-3 find jobs with this very tag, and so do user:, project:, pool:, code: and card:"},
			Param{"trends", "boolean", "tell of the first 8 that run how their loss goes, else their speed, else another metric; nodes that take longer than a quarter of a second are not waited for"}),
		Summary: "List jobs, newest first",
	})
	JobsSubmit = endpoint[JobRequest, JobSubmitted](Route{
		Name: "jobs.submit", Method: http.MethodPost, Pattern: "/v1/jobs", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
		Summary: "Submit a job, as JSON or as a job file",
	})
	JobsParse = endpoint[JobRequest, JobParsed](Route{
		Name: "jobs.parse", Method: http.MethodPost, Pattern: "/v1/jobs/parse", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "Turn a job file into a job",
	})
	JobsFormat = endpoint[JobRequest, JobFormatted](Route{
		Name: "jobs.format", Method: http.MethodPost, Pattern: "/v1/jobs/format", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "Write a job as a job file, or a job file in canonical form with the changes of `set` made",
	})
	JobsValidate = endpoint[JobRequest, JobValidated](Route{
		Name: "jobs.validate", Method: http.MethodPost, Pattern: "/v1/jobs/validate", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "Check a job without submitting it; lists every problem",
	})
	JobsPlan = endpoint[JobRequest, JobPlan](Route{
		Name: "jobs.plan", Method: http.MethodPost, Pattern: "/v1/jobs/plan", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "Preview what every rank would run, and whether the job would start now",
	})
	JobsRead = endpoint[None, JobDetail](Route{
		Name: "jobs.read", Method: http.MethodGet, Pattern: "/v1/jobs/{id}", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query: blockingParams(), Summary: "Read one job; id, unique id prefix or name",
	})
	JobsSubjobs = endpoint[None, SubjobList](Route{
		Name: "jobs.subjobs", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/subjobs", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query: listParams(), Summary: "List the subjobs of a job",
	})
	JobsAttempts = endpoint[None, AttemptList](Route{
		Name: "jobs.attempts", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/attempts", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query: blockingParams(), Summary: "List the attempts of a job",
	})
	JobsAllocations = endpoint[None, AllocationList](Route{
		Name: "jobs.allocations", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/allocations", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query: blockingParams(
			Param{"attempt", "integer", "only this attempt"},
			Param{"subjob", "integer", "only this subjob"}),
		Summary: "List the allocations of a job",
	})
	JobsEvents = endpoint[None, EventList](Route{
		Name: "jobs.events", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/events", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query: blockingParams(), Summary: "The history of a job",
	})
	JobsFigures = endpoint[None, JobUsage](Route{
		Name: "jobs.figures", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/figures", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
		Query:   []Param{{"subjob", "integer", "of this subjob; 0 unless told"}},
		Summary: "What each rank of the newest attempt uses now: cores, memory, and its cards",
	})
	JobsPast = endpoint[None, JobHistory](Route{
		Name: "jobs.past", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/figures/past", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
		Query: []Param{
			{"subjob", "integer", "of this subjob; 0 unless told"},
			{"attempt", "integer", "of this attempt; the newest unless told"},
			{"rank", "integer", "only this rank"},
			{"since", "string", "how far back from its end, or from now, such as 6h; all of it unless told"},
			{"points", "integer", "at most so many values of each figure, 1 to 1440; 240 unless told"},
		},
		Summary: "What each rank of an attempt used while it ran: cores, memory, and its cards; nodes keep it as long as the rank's files",
	})
	JobsStop = endpoint[JobStopRequest, Changed](Route{
		Name: "jobs.stop", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/stop", Verb: VerbStop, Kind: ObjectJob, From: FromJob,
		Summary: "Stop a job, or one subjob of a batch",
	})
	JobsPause = endpoint[JobControlRequest, Changed](Route{
		Name: "jobs.pause", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/pause", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
		Summary: "Let every rank of a running job stand still; it keeps its devices and their memory",
	})
	JobsContinue = endpoint[JobControlRequest, Changed](Route{
		Name: "jobs.continue", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/continue", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
		Summary: "Let a paused job go on",
	})
	JobsThrottle = endpoint[ThrottleRequest, Changed](Route{
		Name: "jobs.throttle", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/throttle", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
		Summary: "Let a job run and stand still in turns, or lift that again",
	})
	JobsFinish = endpoint[JobControlRequest, Changed](Route{
		Name: "jobs.finish", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/finish", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
		Summary: "End a running job now, with success",
	})
	JobsShare = endpoint[ShareRequest, NewShare](Route{
		Name: "jobs.share", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/shares", Verb: VerbShare, Kind: ObjectJob, From: FromJob,
		Summary: "Make a link that shows this one job, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it",
	})
	JobsShares = endpoint[None, ShareList](Route{
		Name: "jobs.shares", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/shares", Verb: VerbShare, Kind: ObjectJob, From: FromJob,
		Summary: "List the links that show this job and are not over",
	})
	JobsDelete = endpoint[None, Changed](Route{
		Name: "jobs.delete", Method: http.MethodDelete, Pattern: "/v1/jobs/{id}", Verb: VerbDelete, Kind: ObjectJob, From: FromJob,
		Summary: "Forget an ended job and its history",
	})
	JobsPriority = endpoint[JobPriorityRequest, Changed](Route{
		Name: "jobs.priority", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/priority", Verb: VerbPriority, Kind: ObjectJob, From: FromJob,
		Summary: "Change the tier of a queued job",
	})
	JobsTimeLimit = endpoint[TimeLimitRequest, Changed](Route{
		Name: "jobs.time_limit", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/time-limit", Verb: VerbTimeLimit, Kind: ObjectJob, From: FromJob,
		Summary: "Change how long a job may run, also while it runs",
	})
	JobsAnnotate = endpoint[JobAnnotateRequest, JobAnnotations](Route{
		Name: "jobs.annotate", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/annotations", Verb: VerbAnnotate, Kind: ObjectJob, From: FromJob,
		Summary: "Change the tags and the note of a job, whatever its state; nothing that runs is touched",
	})
	JobsConsent = endpoint[ConsentRequest, AskedList](Route{
		Name: "jobs.consent", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/consent", Verb: VerbConsent, Kind: ObjectJob, From: FromJob,
		Summary: "Answer, for a job that runs, a VIP job that asks whether it may be stopped",
	})
	JobsMove = endpoint[QueueMoveRequest, Changed](Route{
		Name: "jobs.move", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/move", Verb: VerbMove, Kind: ObjectJob, From: FromJob,
		Summary: "Give a queued job another place within its tier",
	})
	EventsStream = endpoint[None, EventLine](Route{
		Name: "events.stream", Method: http.MethodGet, Pattern: "/v1/events", Verb: VerbList, Kind: ObjectEvent, From: FromKind, Stream: StreamNDJSON,
		Query: []Param{
			{"cursor", "string", "begin after the line that told this cursor: nothing is left out, nothing comes twice"},
			{"index", "integer", "begin with the events of this index, for callers without a cursor; without both, only what is new"},
			{"topic", "string", "only these topics, comma-separated: job, attempt, alloc, node, pool, project, token, cluster, data, template"},
			{"job", "string", "only events of this job id"},
			{"project", "string", "only events of this project"},
		},
		Summary: "Follow events as they happen",
	})
)

func jobRoutes() []Route {
	return []Route{
		JobsList.route,
		JobsSubmit.route,
		JobsParse.route,
		JobsFormat.route,
		JobsValidate.route,
		JobsPlan.route,
		JobsRead.route,
		JobsSubjobs.route,
		JobsAttempts.route,
		JobsAllocations.route,
		JobsEvents.route,
		JobsFigures.route,
		JobsPast.route,
		JobsStop.route,
		JobsPause.route,
		JobsContinue.route,
		JobsThrottle.route,
		JobsFinish.route,
		JobsShare.route,
		JobsShares.route,
		JobsDelete.route,
		JobsPriority.route,
		JobsTimeLimit.route,
		JobsAnnotate.route,
		JobsConsent.route,
		JobsMove.route,
		EventsStream.route,
	}
}
