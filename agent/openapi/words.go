package openapi

import (
	"reflect"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/faults"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// words lists the values of the types of which only some words are values, in
// the order in which they are declared. The language does not tell them; a test
// compares them with the sources.
func words() map[reflect.Type][]any {
	listed := make(map[reflect.Type][]any)
	list(listed, structs.JobTypeTraining, structs.JobTypeBatch, structs.JobTypeDev)
	list(listed, structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical)
	list(listed, structs.ConsentNone, structs.ConsentYes, structs.ConsentNo)
	list(listed, structs.Modes()...)
	list(listed, structs.JobStates()...)
	list(listed, structs.OrderSubmission, structs.OrderFair)
	list(listed, structs.LevelCluster, structs.LevelPool, structs.LevelProject)
	list(listed, structs.DeviceClear, structs.DeviceReset, structs.DeviceQuarantine)
	list(listed, structs.ImagePull, structs.ImagePush, structs.ImageTag, structs.ImageRemove, structs.ImageSave)
	list(listed, audit.Allowed, audit.Refused, audit.Failed)
	list(listed, history.Bys()...)
	list(listed, history.Pers()...)
	list(listed, structs.DesiredRun, structs.DesiredStop)
	list(listed, structs.AllocPending, structs.AllocPreparing, structs.AllocPrepared, structs.AllocRunning,
		structs.AllocComplete, structs.AllocFailed, structs.AllocKilled, structs.AllocLost)
	list(listed, structs.ElasticByRestart, structs.ElasticByTorchrun)
	list(listed, structs.KeyGossip, structs.KeyCA)
	list(listed, structs.KeyInstall, structs.KeyUse, structs.KeyDone)
	list(listed, structs.AttemptPreparing, structs.AttemptReleased, structs.AttemptRunning, structs.AttemptEnding, structs.AttemptEnded)
	list(listed, structs.OutcomeSucceeded, structs.OutcomeFailed, structs.OutcomeLost, structs.OutcomePreempted,
		structs.OutcomeStopped, structs.OutcomeExpired)
	list(listed, structs.CodeInvalid, structs.CodeUnauthorized, structs.CodeForbidden, structs.CodeNotFound, structs.CodeConflict,
		structs.CodeUnavailable, structs.CodeTimeout, structs.CodeNotAvailable, structs.CodeTooLarge, structs.CodeInternal)
	list(listed, structs.NodeReady, structs.NodeDisconnected, structs.NodeLost, structs.NodeLeft)
	list(listed, structs.NodeEligible, structs.NodeCordoned, structs.NodeDraining)
	list(listed, outlook.VerdictNow, outlook.VerdictLater, outlook.VerdictNever, outlook.VerdictUnknown)
	list(listed, outlook.BeyondNone, outlook.BeyondP90, outlook.BeyondP50)
	list(listed, outlook.HelpNodes, outlook.HelpElastic, outlook.HelpSpec, outlook.HelpPool, outlook.HelpTimeLimit,
		outlook.HelpPriority, outlook.HelpPreemptible, outlook.HelpSpread, outlook.HelpDevices, outlook.HelpDriverVersion,
		outlook.HelpAnyNode, outlook.HelpNoRDMA, outlook.HelpResources, outlook.HelpTwo)
	list(listed, outlook.ChangeDrain, outlook.ChangeAddNodes, outlook.ChangeQuota, outlook.ChangePriority, outlook.ChangeMove,
		outlook.ChangeSubmit, outlook.ChangeStop)
	list(listed, faults.StageFault, faults.StageNoticed, faults.StageAgreed, faults.StageSaved, faults.StageStopped, faults.StagePlaced,
		faults.StageRunning, faults.StageStepped)
	return listed
}

func list[T ~string](into map[reflect.Type][]any, values ...T) {
	words := make([]any, len(values))
	for i, value := range values {
		words[i] = string(value)
	}
	into[reflect.TypeFor[T]()] = words
}
