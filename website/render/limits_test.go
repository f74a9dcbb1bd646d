package render

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"nomadlike/internal/golden"
)

//go:generate go test -count=1 -run TestLimits -rewrite .

// between lists bounds that no person meets, for they are on what agents tell each
// other or on what one step of a server takes.
var between = map[string][]string{
	"nomadlike/structs": {
		"DataNamesMax", "DataWrongMax", "NotifyHoldsMax", "NotifyLinesMax", "NotifyLinesSizeMax", "NotifyMadeMax", "NotifyNamesMax", "NotifyProblemMax", "NotifyRaisedMax", "NotifySettledMax", "NotifySpanMax", "DeviceProcessesMax", "DeviceReasonMax", "HistoryGaugesMax", "MetricsAllocsMax", "NodeFaultsMax", "NoteParamMax", "NoteParamsMax",
		"WorkdirBranchMax", "CodeAskMax", "CodeForgetMax", "DataExpireMax", "CodePartMax", "DataAskBytesMax", "StagingNearMax", "StagingPeersMax", "StagingPieceMax", "DataAskChunksMax", "DataListMax", "ImageNamesMax", "NodeRefusalsMax", "OnceMax", "PasswordHashMax", "PastCAsMax", "SecretKeysMax", "ProgressCardsMax", "RankHistoryAllocsMax", "SeenMax", "SeenValueMax", "SourceMax", "UnwellServersMax", "TokenUsesMax",
	},
	"nomadlike/state": {
		"FeaturesMax", "ForecastRevisionsMax", "ForecastsMax", "ForgottenMax", "InventoryMax", "JournalMax", "LedgerHoursMax", "LimitsMax",
		"NotesMax", "PlanGangsMax",
		"ReportsMax", "ResealsMax", "VictimsMax", "WaitsMax",
	},
	"nomadlike/api":             {"AgentsNamedMax", "AnswerSizeMax", "CodeBytesMax", "CodeChunksMax", "CodeLeftOutMax", "CodeMissingMax", "CodeRequestsMax", "DataOutputJobsMax", "DataUploadsMax", "DebugSpanMax", "ImagesMax", "LineageNodesMax", "LineageStepsMax", "NoteShownMax", "OutputsMax", "TrendJobsMax", "TrendPointsMax", "UseZoneMax"},
	"nomadlike/structs/outlook": {"HelpsMax"},
	"jobspec":                   {},
}

// TestLimits keeps the page equal to the constants; -rewrite writes it anew.
func TestLimits(t *testing.T) {
	for _, language := range Languages {
		page, err := Limits(os.DirFS("../.."), language)
		if err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, filepath.Join("..", "reference", string(language), "limits.md"), page)
	}
}

// TestLimitsAreListed: a bound of the packages that people meet is on the page, or is
// listed above as one that nobody meets.
func TestLimitsAreListed(t *testing.T) {
	sources := &constants{root: os.DirFS("../.."), packages: make(map[string]map[string]ast.Expr)}
	for dir, inner := range between {
		names, err := sources.exported(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range inner {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s", dir, name)
			}
		}
		for _, name := range names {
			listed := slices.ContainsFunc(limitGroups, func(group limitGroup) bool {
				return slices.ContainsFunc(group.limits, func(one limit) bool { return one.dir == dir && one.name == name })
			})
			if listed == slices.Contains(inner, name) {
				t.Errorf("%s.%s: put it either into limitGroups, where people read of it, or into the list of this test", dir, name)
			}
		}
	}
}

// TestConstants evaluates what bounds are written as.
func TestConstants(t *testing.T) {
	sources := &constants{packages: make(map[string]map[string]ast.Expr), root: fstest.MapFS{
		"nomadlike/structs/a.go": {Data: []byte("package structs\nconst (\n\tGiB = 1 << 30\n\tHoursMax = Duration(24 * time.Hour)\n)\n")},
		"a/a.go": {Data: []byte("package a\nconst (\n\tone = 128<<10 - 1\n\tTwoMax = 2 * structs.GiB\n\tThreeMax = 1e6\n\tfour = 10_000 / 4\n\tfive = len(\"a\" + \"b\", 1)\n)\n" +
			"type Duration int64\n")},
		"a/a_test.go": {Data: []byte("package a\nconst OtherMax = 1\n")},
	}}
	for name, want := range map[string]string{"one": "131,071 B", "TwoMax": "2 GiB", "ThreeMax": "1,000,000 B", "four": "2,500 B"} {
		value, err := sources.value("a", name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := size.written(value); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if value, err := sources.value("nomadlike/structs", "HoursMax"); err != nil || span.written(value) != "1 d" {
		t.Errorf("a span: %v, %v", value, err)
	}
	for _, name := range []string{"five", "none"} {
		if value, err := sources.value("a", name); err == nil {
			t.Errorf("%s is %v", name, value)
		}
	}
	if names, err := sources.exported("a"); err != nil || !slices.Equal(names, []string{"ThreeMax", "TwoMax"}) {
		t.Errorf("exported: %v, %v", names, err)
	}
}
