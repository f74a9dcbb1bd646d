package jobspec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"nomadlike/nomadlike/structs"
)

// notWritten are the fields that no author writes, with the reason.
func notWritten() map[string]string {
	const admission, state, before, sent = "fixed at admission", "written by the state", "of jobs of protocol 15", "written by the program that sends it"
	return map[string]string{
		"Job.ID": admission, "Job.User": admission, "Job.SubmittedAt": admission, "Job.IdempotencyKey": admission,
		"Job.Source": admission, "Job.Resume": admission, "Job.PatientStarts": admission, "Job.OutsideYields": admission,
		"Job.Algorithms.Object": admission, "Job.Datasets.Object": admission, "Job.Models.Object": admission, "Job.Volumes.Object": admission,
		"Job.After.ID": admission, "Job.BeginAt": admission, "Job.DeadlineAt": admission, "Job.Number": state,
		"Job.OutputKeep.Storage": admission, "Job.OutputKeep.Apart": admission, "Job.SavesAtEnds": admission, "Job.KillsLast": admission,
		"Job.Workdir.Tree": sent, "Job.Workdir.Files": sent, "Job.Workdir.Bytes": sent, "Job.Workdir.Git": sent,
		"Job.Distributed.MinNodes": before, "Job.Checkpoint.Elastic": before,
		"Job.Resources.RDMAByNodes": admission, "Job.Resources.LastDevices": admission,
		"Pool.CreateIndex": state, "Pool.ModifyIndex": state, "Project.CreateIndex": state, "Project.ModifyIndex": state,
		"Pool.CeilingsBy": admission, "Pool.CeilingsAt": admission,
		"Project.BoundsBy": admission, "Project.BoundsAt": admission,
		"Project.Granted":  state,
		"Project.Archived": state, "Project.ArchivedBy": state, "Project.ArchivedAt": state,
	}
}

// TestWalksVisitEveryField fails for a field of a noun that its walk forgets: it
// would be lost when a file is read or written, and stand on no page.
func TestWalksVisitEveryField(t *testing.T) {
	excused := notWritten()
	for _, n := range nouns() {
		subject := n.empty()
		visited := make(map[uintptr]bool)
		for _, entry := range describe(n, subject) {
			for _, to := range entry.value.to {
				visited[reflect.ValueOf(to).Pointer()] = true
			}
		}
		of := reflect.ValueOf(subject.value).Elem()
		leaves(of, of.Type().Name(), func(path string, field reflect.Value) {
			_, excuse := excused[path]
			if there := visited[field.Addr().Pointer()]; there == excuse {
				t.Errorf("%s: a walk visits it: %t; has an excuse: %t", path, there, excuse)
			}
			delete(excused, path)
		})
	}
	for path := range excused {
		t.Errorf("%s has an excuse and is no field", path)
	}
}

// leaves goes over the fields that hold values. A walk that visits a block has
// made it, so a block that is not there is a leaf that nobody visited.
func leaves(of reflect.Value, path string, leaf func(path string, field reflect.Value)) {
	for i := range of.NumField() {
		field, at := of.Field(i), path+"."+of.Type().Field(i).Name
		inner := field
		if field.Kind() == reflect.Pointer && !field.IsNil() {
			inner = field.Elem()
		}
		if field.Kind() == reflect.Slice && field.Len() > 0 {
			inner = field.Index(0)
		}
		if inner.Kind() == reflect.Struct {
			leaves(inner, at, leaf)
		} else {
			leaf(at, field)
		}
	}
}

// fill sets everything that a walk visits to a value of its own, so that a field
// that is read from, or written to, the place of another one shows.
type fill struct{ number int }

func (f *fill) label(_ string, to *string, _ bool) { f.argument("", text(to)) }

func (f *fill) block(b block) {
	for index := range 2 {
		if index == 0 || b.many {
			b.walk(f, index)
		}
	}
}

func (f *fill) argument(_ string, v value) {
	f.number++
	n, word := f.number, fmt.Sprint("w", f.number)
	switch to := v.to[0].(type) {
	case *string:
		*to = word
	case *int:
		*to = n
	case **int:
		*to = &n
	case *float64:
		*to = float64(n) + 0.5
	case *bool:
		*to = true
	case **bool:
		no := n%2 == 0
		*to = &no
	case *int64:
		*to = int64(n) * structs.GiB
	case *structs.Duration:
		*to = structs.Duration(n) * 1_000_000_000
	case *[]string:
		*to = []string{word, word + "b"}
	case **structs.Workdir:
		*to = &structs.Workdir{Source: word}
	case *[]structs.SecretUse:
		if len(*to) == 0 { // image_credentials comes before env, and env before secrets
			*to = []structs.SecretUse{{Name: word, Image: true}, {Name: word, Var: "K1"}, {Name: "other", Var: "K2"}, {Name: word}}
		}
	case *map[string]string:
		*to = map[string]string{word: "x", "k": word}
	default:
		panic(fmt.Sprintf("no value for a %T", to))
	}
}

// TestWalksReadWhatTheyWrite writes nouns with every field, and reads them.
func TestWalksReadWhatTheyWrite(t *testing.T) {
	for _, n := range nouns() {
		given := n.empty()
		given.walk(&fill{})
		file := hclwrite.NewEmptyFile()
		given.walk(writer{file.Body().AppendNewBlock(n.kind, nil)})
		written := hclwrite.Format(file.Bytes())

		again := n.empty()
		p := newParser(Options{})
		diags := p.read("written.hcl", written, n, func(block *hclsyntax.Block) { p.top(n, block).read(again.walk) })
		if diags.HasErrors() {
			t.Errorf("%v\n%s", diags, written)
		}
		if diff := cmp.Diff(given.value, again.value); diff != "" {
			t.Errorf("%s: (-given +read)\n%s\n%s", n.kind, diff, written)
		}
	}
}

// TestHomes: what stands in a wrong block is sent where the walk has it.
func TestHomes(t *testing.T) {
	for _, test := range []struct {
		noun  noun
		name  string
		block bool
		want  string
	}{
		{jobNoun, "command", false, "task"},
		{jobNoun, "env", true, "task"},
		{jobNoun, "model", false, "device"},
		{jobNoun, "model", true, "job"},
		{jobNoun, "device", true, "resources"},
		{jobNoun, "nodes", false, "job"},
		{jobNoun, "dir", false, "task, checkpoint"},
		{jobNoun, "storage", false, ""},
		{jobNoun, "nothing", false, ""},
		{poolNoun, "env", false, "defaults"},
		{poolNoun, "device", true, "sku"},
		{projectNoun, "task", true, ""},
	} {
		if got := strings.Join(homesOf(test.noun).of(test.name, test.block), ", "); got != test.want {
			t.Errorf("%s in a %s: %q, want %q", test.name, test.noun.kind, got, test.want)
		}
	}
}
