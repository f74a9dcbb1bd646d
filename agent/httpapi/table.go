package httpapi

import (
	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
)

// endpoints are the handlers of a server, by noun.
type endpoints struct {
	find        finders
	jobs        jobHandlers
	submissions *submissionHandlers
	allocations allocationHandlers
	pages       *taskPageHandlers
	files       fileHandlers
	usage       usageHandlers
	queue       queueHandlers
	forecasts   *forecastHandlers
	outlook     *outlookHandlers
	events      eventHandlers
	nodes       nodeHandlers
	devices     deviceHandlers
	pools       poolHandlers
	images      *imageHandlers
	maintenance maintenanceHandlers
	projects    projectHandlers
	users       userHandlers
	tally       tallyHandlers
	login       *loginHandlers
	secrets     *secretHandlers
	templates   templateHandlers
	code        *codeHandlers
	data        dataHandlers
	dataBytes   *dataBytes
	dataFiles   *dataFiles
	notify      notifyHandlers
	tokens      tokenHandlers
	shares      shareHandlers
	services    *serviceAccountHandlers
	joinTokens  joinTokenHandlers
	settings    settingsHandlers
	joins       joinHandlers
	servers     serverHandlers
	snapshots   snapshotHandlers
	keys        keyHandlers
	audit       auditHandlers
	reports     reportHandlers
	metrics     *metrics
	debug       *debugHandlers
	self        func() api.AgentSelf
	health      func() api.Health
	probes      Probes
}

// table maps the endpoints to their handlers; the compiler compares the types of
// bodies, of found objects and of answers. onLeader wraps those that only the leader can do.
func (e *endpoints) table(onLeader func(front.Handler) front.Handler) *front.Table {
	t := front.NewTable()
	leader := t.Through(onLeader)
	jobs, allocs, nodes := front.About(t, e.find.job()), front.About(t, e.find.allocation()), front.About(t, e.find.node())
	secrets, services := front.About(t, e.find.secret()), front.About(t, e.find.service())
	code, data, templates := front.About(t, e.find.code()), front.About(t, e.find.data()), front.About(t, e.find.template())
	tokens, caller, users := front.About(t, e.find.token()), front.About(t, e.find.caller()), front.About(t, e.find.user())
	front.Read(t, api.JobsList, e.jobs.list)
	front.WriteOf(jobs, api.JobsShare, e.shares.job)
	front.ReadOf(jobs, api.JobsShares, e.shares.listJob)
	front.Write(t, api.WallShare, e.shares.wall)
	front.Read(t, api.WallShares, e.shares.listWall)
	front.WriteFrom(t, api.JobsSubmit, e.submissions.offer, e.submissions.submit)
	front.WriteFrom(t, api.JobsParse, e.submissions.offer, e.submissions.parse)
	front.WriteFrom(t, api.JobsFormat, e.submissions.offer, e.submissions.format)
	front.WriteFrom(t, api.JobsValidate, e.submissions.offer, e.submissions.validate)
	front.WriteFrom(t, api.JobsPlan, e.submissions.offer, e.submissions.plan)
	front.ReadOf(jobs, api.JobsRead, e.jobs.read)
	front.ReadOf(jobs, api.JobsSubjobs, e.jobs.subjobs)
	front.ReadOf(jobs, api.JobsAttempts, e.jobs.attempts)
	front.ReadOf(jobs, api.JobsAllocations, e.jobs.allocations)
	front.ReadOf(jobs, api.JobsEvents, e.jobs.events)
	front.ReadOf(jobs, api.JobsFaults, e.usage.jobFaults)
	front.ReadOf(jobs, api.JobsDiff, e.jobs.diff)
	front.ReadOf(jobs, api.JobsFigures, e.usage.ofJob)
	front.ReadOf(jobs, api.JobsMetrics, e.usage.jobMetrics)
	front.Read(t, api.JobsResults, e.usage.results)
	front.ReadOf(jobs, api.JobsPast, e.usage.jobHistory)
	front.ReadOf(jobs, api.JobsFiles, e.files.list)
	front.StreamOf(jobs, api.JobsFileContent, e.files.read)
	front.WriteOf(jobs, api.JobsStop, e.jobs.stop)
	front.WriteOf(jobs, api.JobsPause, e.jobs.pause)
	front.WriteOf(jobs, api.JobsContinue, e.jobs.resume)
	front.WriteOf(jobs, api.JobsThrottle, e.jobs.throttle)
	front.WriteOf(jobs, api.JobsFinish, e.jobs.finish)
	front.ReadOf(jobs, api.JobsDelete, e.jobs.delete)
	front.WriteOf(jobs, api.JobsPriority, e.jobs.prioritize)
	front.WriteOf(jobs, api.JobsMove, e.jobs.move)
	front.WriteOf(jobs, api.JobsTimeLimit, e.jobs.limitTime)
	front.WriteOf(jobs, api.JobsParallel, e.jobs.setParallel)
	front.ReadOf(jobs, api.JobsTrials, e.usage.trials)
	front.WriteOf(jobs, api.JobsAnnotate, e.jobs.annotate)
	front.WriteOf(jobs, api.JobsConsent, e.jobs.consent)
	front.Read(t, api.ImagesList, e.images.list)
	front.Write(t, api.ImagesPut, e.images.put)
	front.Read(t, api.ImagesDelete, e.images.forget)
	front.ReadOf(nodes, api.NodesImages, e.images.ofNode)
	front.WriteOf(nodes, api.NodesImage, e.images.act)
	front.Read(t, api.MaintenanceWindows, e.maintenance.list)
	front.Write(t, api.MaintenanceAdd, e.maintenance.add)
	front.Write(t, api.MaintenanceChange, e.maintenance.change)
	front.Read(t, api.MaintenanceEnd, e.maintenance.end)
	front.Read(t, api.PoolsList, e.pools.list)
	front.Read(t, api.PoolsRead, e.pools.read)
	front.Write(t, api.PoolsPut, e.pools.put)
	front.Read(t, api.PoolsDelete, e.pools.delete)
	front.Read(t, api.ProjectsList, e.projects.list)
	front.Read(t, api.ProjectsRead, e.projects.read)
	front.Write(t, api.ProjectsPut, e.projects.put)
	front.Read(t, api.ProjectsUsage, e.tally.project)
	front.Write(t, api.ProjectsArchive, e.projects.archive)
	front.Read(t, api.ProjectsDelete, e.projects.delete)
	front.Write(t, api.ProjectsMember, e.users.member)
	front.ReadOf(caller, api.SelfRead, e.users.self)
	front.ReadOf(caller, api.SelfUsage, e.tally.self)
	front.ReadOf(caller, api.SSHAuthorityRead, e.allocations.sshAuthority)
	front.Read(t, api.UsersList, e.users.list)
	front.ReadOf(users, api.UsersRead, e.users.read)
	front.WriteOf(users, api.UsersPut, e.users.put)
	front.WriteOf(users, api.UsersState, e.users.setState)
	front.ReadOf(users, api.UsersDelete, e.users.delete)
	front.WriteOf(front.About(leader, e.find.user()), api.UsersPassword, e.login.setPassword)
	front.Write(leader, api.LoginCreate, e.login.create)
	front.Write(leader, api.LoginBegin, e.login.begin)
	front.Read(t, api.LoginList, e.login.list)
	front.WriteOf(users, api.UsersIdentity, e.login.identify)
	front.ReadOf(caller, api.TokensExtend, e.login.extend)
	front.Read(t, api.TemplatesList, e.templates.list)
	front.ReadOf(templates, api.TemplatesRead, e.templates.read)
	front.WriteOf(templates, api.TemplatesPut, e.templates.put)
	front.ReadOf(templates, api.TemplatesDelete, e.templates.delete)
	front.Read(t, api.SecretsList, e.secrets.list)
	front.WriteOf(secrets, api.SecretsSet, e.secrets.set)
	front.ReadOf(secrets, api.SecretsDelete, e.secrets.delete)
	front.Read(t, api.ServiceAccountsList, e.services.list)
	front.ReadOf(services, api.ServiceAccountsRead, e.services.read)
	front.WriteOf(services, api.ServiceAccountsPut, e.services.put)
	front.WriteOf(services, api.ServiceAccountsState, e.services.setState)
	front.WriteOf(services, api.ServiceAccountsToken, e.services.token)
	front.WriteOf(services, api.ServiceAccountsRevoke, e.services.revoke)
	front.ReadOf(services, api.ServiceAccountsDelete, e.services.delete)
	front.WriteOf(code, api.CodeAskMissing, e.code.missing)
	front.ReadOf(code, api.CodeChunks, e.code.chunks)
	front.ReadOf(code, api.CodeCommit, e.code.commit)
	front.ReadOf(code, api.CodeArchive, e.code.archive)
	front.StreamOf(code, api.CodeManifest, e.code.manifest)
	front.StreamOf(code, api.CodeChunk, e.code.chunk)
	front.Read(t, api.DataListed, e.data.list)
	front.ReadOf(data, api.DataRead, e.data.read)
	front.WriteOf(data, api.DataPut, e.data.put)
	front.WriteOf(data, api.DataRegister, e.data.register)
	front.WriteOf(data, api.DataTag, e.data.tag)
	front.WriteOf(data, api.DataMark, e.data.mark)
	front.ReadOf(data, api.DataDelete, e.data.delete)
	front.WriteOf(data, api.DataTake, e.data.take)
	front.ReadOf(data, api.DataLineageRead, e.data.lineage)
	e.dataBytes.table(data)
	e.dataFiles.table(data)
	(&dataUploads{e.dataBytes}).table(data)
	front.ReadOf(caller, api.NotifyRead, e.notify.read)
	front.WriteOf(caller, api.NotifyPut, e.notify.put)
	front.WriteOf(caller, api.NotifyChannelPut, e.notify.putChannel)
	front.ReadOf(caller, api.NotifyChannelDelete, e.notify.deleteChannel)
	front.ReadOf(caller, api.NotifyChannelTest, e.notify.testChannel)
	front.ReadOf(caller, api.NotificationsList, e.notify.list)
	front.WriteOf(caller, api.NotificationsSee, e.notify.see)
	front.Read(t, api.OperatorSecrets, e.secrets.keys)
	front.Read(leader, api.OperatorSecretsRotate, e.secrets.rotate)
	front.Read(t, api.QueueRead, e.queue.read)
	front.Read(t, api.QueueForecastRead, e.forecasts.queue)
	front.Read(t, api.QueueTimeline, e.forecasts.timeline)
	front.Read(t, api.QueueAccuracy, e.forecasts.accuracy)
	front.Read(t, api.OutlookRead, e.outlook.read)
	front.Read(t, api.OutlookPast, e.outlook.past)
	front.Write(t, api.QueueWhatIf, e.forecasts.whatIf)
	front.WriteFrom(t, api.JobsForecast, e.submissions.offer, e.forecasts.ofOffer)
	front.ReadOf(jobs, api.JobsForecastRead, e.forecasts.ofJob)
	front.Read(t, api.MachinesList, e.nodes.machines)
	front.WriteFrom(t, api.NodesAvailable, e.submissions.offer, e.nodes.available)
	front.Stream(t, api.EventsStream, e.events.stream)
	front.ReadOf(allocs, api.AllocationsRead, e.allocations.read)
	front.StreamOf(allocs, api.AllocationsLogs, e.allocations.logs)
	front.StreamOf(allocs, api.AllocationsExec, e.allocations.exec)
	front.Read(t, api.NodesList, e.nodes.list)
	front.ReadOf(nodes, api.NodesRead, e.nodes.read)
	front.Read(t, api.DevicesList, e.devices.list)
	front.ReadOf(nodes, api.NodesDevices, e.devices.read)
	front.ReadOf(nodes, api.NodesEvents, e.nodes.events)
	front.ReadOf(nodes, api.NodesPast, e.usage.nodeHistory)
	front.WriteOf(allocs, api.AllocationsCommit, e.allocations.commit)
	front.WriteOf(allocs, api.AllocationsPage, e.pages.address)
	front.WriteOf(nodes, api.NodesTreatDevice, e.devices.treat)
	front.ReadOf(nodes, api.NodesRemove, e.nodes.remove)
	front.WriteOf(nodes, api.NodesDrain, e.nodes.drain)
	front.ReadOf(nodes, api.NodesCordon, e.nodes.cordon)
	front.ReadOf(nodes, api.NodesUncordon, e.nodes.uncordon)
	front.Write(t, api.TokensBootstrap, e.tokens.bootstrap)
	front.Read(t, api.TokensList, e.tokens.list)
	front.Write(t, api.TokensCreate, e.tokens.create)
	front.ReadOf(caller, api.TokensSelf, e.tokens.read)
	front.ReadOf(tokens, api.TokensRead, e.tokens.read)
	front.ReadOf(tokens, api.TokensDelete, e.tokens.delete)
	front.Read(t, api.SettingsRead, e.settings.read)
	front.Write(t, api.SettingsPut, e.settings.put)
	front.Read(t, api.JoinTokensList, e.joinTokens.list)
	front.Write(t, api.JoinTokensCreate, e.joinTokens.create)
	front.Read(t, api.JoinTokensDelete, e.joinTokens.delete)
	front.Read(t, api.ServersList, e.servers.list)
	front.Write(t, api.ServersJoin, e.servers.join)
	front.Read(t, api.OperatorRaftPeers, e.servers.peers)
	front.Read(leader, api.OperatorRaftRemovePeer, e.servers.removePeer)
	front.Read(leader, api.OperatorRaftAddPeer, e.servers.addPeer)
	front.Read(leader, api.OperatorKeys, e.keys.read)
	front.Read(leader, api.OperatorKeysRotate, e.keys.rotate)
	front.Read(leader, api.OperatorAutopilot, e.servers.autopilot)
	front.Stream(t.Through(func(h front.Handler) front.Handler { return unlessStale(onLeader(h), h) }), api.OperatorSnapshotSave, e.snapshots.save)
	front.Read(leader, api.OperatorSnapshotRestore, e.snapshots.restore)
	front.Read(t, api.OperatorSnapshotInspect, e.snapshots.inspect)
	front.Stream(t, api.OperatorDebug, e.debug.part)
	front.Read(t, api.AuditRead, e.audit.list)
	front.Read(t, api.AuditVerify, e.audit.verify)
	front.Read(t, api.ReportsUsage, e.reports.usage)
	front.Read(t, api.ReportsWaits, e.reports.waits)
	front.Read(t, api.AgentHealth, ReadHealth(e.health))
	front.Read(t, api.HealthLive, readProbe(e.probes.Live))
	front.Read(t, api.HealthReady, readProbe(e.probes.Ready))
	front.Read(t, api.HealthLeader, readProbe(e.probes.Leader))
	front.Read(t, api.AgentSelfRead, readSelf(e.self))
	front.Write(t, api.AgentJoin, e.joins.letIn)
	front.Write(t, api.AgentRenew, e.joins.renew)
	front.Stream(t, api.MetricsText, e.metrics.handler())
	front.ReadOf(caller, api.OpenAPI, readOpenAPI())
	return t
}

// answer is a handler's answer.
func answer[T any](value T) (*T, error) { return &value, nil }

// unlessStale does something here when the caller asks for what this server
// has, be there a leader or not.
func unlessStale(fresh, stale front.Handler) front.Handler {
	return func(r *front.Request) error {
		q := front.Query{R: r}
		asked := q.Bool("stale")
		switch {
		case q.Err != nil:
			return q.Err
		case asked:
			return stale(r)
		}
		return fresh(r)
	}
}

// Probes say whether an agent is what a load balancer looks for.
type Probes struct{ Live, Ready, Leader func() api.Probe }

// readProbe answers one of them. Whoever asks may be anybody: the answer is a word.
func readProbe(probe func() api.Probe) func(*front.Request) (*api.Probe, error) {
	return func(r *front.Request) (*api.Probe, error) {
		now := probe()
		if !now.OK {
			r.SetUnhealthy()
		}
		return &now, nil
	}
}

// OwnHealth are the routes that an agent answers by itself when it passes everything
// else to a server, by name.
func OwnHealth(health func() api.Health, probes Probes) map[string]front.Handler {
	own := map[string]front.Handler{
		api.AgentHealth.Route().Name: func(r *front.Request) error {
			now, err := ReadHealth(health)(r)
			if err != nil {
				return err
			}
			return r.Reply(now)
		},
	}
	for route, probe := range map[string]func() api.Probe{
		api.HealthLive.Route().Name: probes.Live, api.HealthReady.Route().Name: probes.Ready, api.HealthLeader.Route().Name: probes.Leader,
	} {
		own[route] = func(r *front.Request) error {
			now, err := readProbe(probe)(r)
			if err != nil {
				return err
			}
			return r.Reply(now)
		}
	}
	return own
}

// ReadHealth answers agent.health. Whoever asks may be anybody, so it tells
// no more than what a load balancer needs.
func ReadHealth(health func() api.Health) func(*front.Request) (*api.Health, error) {
	return func(r *front.Request) (*api.Health, error) {
		now := health()
		if !now.Healthy {
			r.SetUnhealthy()
		}
		return &now, nil
	}
}

// readSelf answers agent.self.
func readSelf(self func() api.AgentSelf) func(*front.Request) (*api.AgentSelf, error) {
	return func(*front.Request) (*api.AgentSelf, error) { return answer(self()) }
}
