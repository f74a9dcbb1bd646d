package forecast

import "nomadlike/nomadlike/structs/outlook"

// The answers, as the API shows them: package outlook documents each.
type (
	Verdict    = outlook.Verdict
	When       = outlook.When
	Beyond     = outlook.Beyond
	Start      = outlook.Start
	Answer     = outlook.Answer
	Span       = outlook.Span
	SpecAnswer = outlook.SpecAnswer
	Victim     = outlook.Victim
	HelpKind   = outlook.HelpKind
	Help       = outlook.Help
	Timeline   = outlook.Timeline
	Row        = outlook.Row
	Bar        = outlook.Bar
	ChangeKind = outlook.ChangeKind
	Change     = outlook.Change
	Effect     = outlook.Effect
	Shift      = outlook.Shift
)

// Their words and bounds.
const (
	VerdictNow        = outlook.VerdictNow
	VerdictLater      = outlook.VerdictLater
	VerdictNever      = outlook.VerdictNever
	VerdictUnknown    = outlook.VerdictUnknown
	BeyondNone        = outlook.BeyondNone
	BeyondP90         = outlook.BeyondP90
	BeyondP50         = outlook.BeyondP50
	HelpNodes         = outlook.HelpNodes
	HelpElastic       = outlook.HelpElastic
	HelpSpec          = outlook.HelpSpec
	HelpPool          = outlook.HelpPool
	HelpTimeLimit     = outlook.HelpTimeLimit
	HelpPriority      = outlook.HelpPriority
	HelpPreemptible   = outlook.HelpPreemptible
	HelpSpread        = outlook.HelpSpread
	HelpDevices       = outlook.HelpDevices
	HelpDriverVersion = outlook.HelpDriverVersion
	HelpAnyNode       = outlook.HelpAnyNode
	HelpNoRDMA        = outlook.HelpNoRDMA
	HelpResources     = outlook.HelpResources
	HelpTwo           = outlook.HelpTwo
	BarRunning        = outlook.BarRunning
	BarReserved       = outlook.BarReserved
	BarForecast       = outlook.BarForecast
	ChangeDrain       = outlook.ChangeDrain
	ChangeAddNodes    = outlook.ChangeAddNodes
	ChangeQuota       = outlook.ChangeQuota
	ChangePriority    = outlook.ChangePriority
	ChangeMove        = outlook.ChangeMove
	ChangeSubmit      = outlook.ChangeSubmit
	ChangeStop        = outlook.ChangeStop
	ChangesMax        = outlook.ChangesMax
	AddNodesMax       = outlook.AddNodesMax
	ShiftsMax         = outlook.ShiftsMax
	SubjobsMax        = outlook.SubjobsMax
	HelpsMax          = outlook.HelpsMax
)
