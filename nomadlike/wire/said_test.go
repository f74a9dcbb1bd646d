package wire_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// saidFile is the shape of what agents say to each other by RPC: by the methods of
// structs, a line for each field.
const saidFile = "testdata/said.golden"

// said is what each method takes and answers.
var said = map[string][]reflect.Type{
	structs.MethodNodeSession:     both[structs.SessionUp, structs.SessionDown](),
	structs.MethodLeaderPropose:   both[structs.ProposeRequest, structs.ProposeReply](),
	structs.MethodLeaderReadIndex: both[structs.ReadIndexRequest, structs.ReadIndexReply](),
	structs.MethodLeaderLiveness:  both[structs.LivenessReport, structs.LivenessAck](),
	structs.MethodServerRenew:     both[structs.RenewRequest, structs.RenewReply](),
	structs.MethodAgentWitness:    both[structs.WitnessRequest, structs.WitnessReply](),
	structs.MethodAgentTrust:      both[structs.TrustNews, structs.TrustAck](),
	structs.MethodServerKey:       both[structs.GossipKeyRequest, structs.GossipKeyReply](),
	structs.MethodServerOfferKey:  both[structs.GossipKeyOffer, structs.GossipKeyKept](),
	structs.MethodServerOfferCA:   both[structs.CAOffer, structs.GossipKeyKept](),
	structs.MethodAllocLogs:       both[structs.LogRequest, structs.LogChunk](),
	structs.MethodAllocFiles:      both[structs.FileRequest, structs.FileChunk](),
	structs.MethodAllocExec:       both[structs.ExecUp, structs.ExecDown](),
	structs.MethodNodeUsage:       both[structs.UsageRequest, structs.NodeUsage](),
	structs.MethodNodeMetrics:     both[structs.MetricsRequest, structs.NodeMetrics](),
	structs.MethodNodeHistory:     both[structs.HistoryRequest, structs.NodeHistory](),
	structs.MethodNodeRankHistory: both[structs.RankHistoryRequest, structs.NodeRankHistory](),
	structs.MethodNodeTreat:       both[structs.DeviceTreat, structs.DeviceTreated](),
	structs.MethodNodeLook:        both[structs.DataLook, structs.DataSeen](),
	structs.MethodNodeData:        both[structs.DataAsk, structs.DataReply](),
	structs.MethodNodeImages:      both[structs.ImagesAsk, structs.NodeImages](),
	structs.MethodNodeImage:       both[structs.ImageOrder, structs.ImageWork](),
	structs.MethodNodeStaged:      both[structs.StagingAsk, structs.StagingReply](),
	structs.MethodStagingPeers:    both[structs.StagingPeersAsk, structs.StagingPeers](),
	structs.MethodStagingMay:      both[structs.StagingMayAsk, structs.StagingMay](),
	structs.MethodAllocCommit:     both[structs.CommitOrder, structs.Committed](),
	structs.MethodServerHistory:   both[structs.HistoryAsk, structs.HistoryPart](),
	structs.MethodServerAudit:     both[structs.AuditAsk, structs.AuditTail](),
	structs.MethodServerAuditLook: both[structs.AuditCheckAsk, structs.AuditChecked](),
	structs.MethodServerRefusals:  both[structs.NodeRefusals, structs.NodeRefusalsKept](),
	structs.MethodServerSecrets:   both[structs.SecretsRequest, structs.SecretsReply](),
	structs.MethodServerCode:      both[structs.CodeAsk, structs.CodePart](),
	structs.MethodServerTakeCode:  both[structs.CodeTake, structs.CodeTaken](),
	structs.MethodServerOfferSeal: both[structs.ServerKeyOffer, structs.ServerKeyKept](),
}

func both[Up, Down any]() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[Up](), reflect.TypeFor[Down]()}
}

// Who changes what agents say raises wire.ProtocolVersion, with its line in the
// diary. Unlike what is stored it may hold what the other side does not know, which
// drops it: the line tells what is lost then.
func TestShapeOfWhatIsSaid(t *testing.T) {
	var methods []string
	var types []reflect.Type
	for method, pair := range said {
		methods = append(methods, fmt.Sprintf("method %s takes %s, answers %s", method, pair[0], pair[1]))
		types = append(types, pair...)
	}
	golden.AssertShape(t, saidFile, wire.ProtocolVersion, golden.Shape(methods, types...))
}

// Every method has its line above.
func TestEveryMethodIsSaid(t *testing.T) {
	source, err := os.ReadFile("../structs/session.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(source)) {
		words := strings.Fields(line)
		if len(words) >= 3 && strings.HasPrefix(words[0], "Method") && words[1] == "=" {
			names = append(names, strings.Trim(words[2], `"`))
		}
	}
	if len(names) < len(said) {
		t.Fatalf("only %d methods are found: the test looks in the wrong place", len(names))
	}
	for _, name := range names {
		if said[name] == nil {
			t.Errorf("method %s is not in the list of what is said", name)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(said) {
		t.Errorf("the list of what is said has methods that are gone")
	}
}
