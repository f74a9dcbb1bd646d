package jobspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func TestSkeletonsAreJobsOfToday(t *testing.T) {
	for _, kind := range SkeletonKinds() {
		var first *structs.Job
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			text, err := Skeleton(kind, language)
			if err != nil {
				t.Fatal(err)
			}
			job, places, diags := Parse(kind+".hcl", text, Options{})
			if len(diags) > 0 {
				t.Fatalf("%s in %s:\n%s", kind, language, rendered(t, diags, messages.English))
			}
			if later := places.Diagnose(job.NotAvailable(), SeverityError); len(later) > 0 {
				t.Errorf("%s in %s:\n%s", kind, language, rendered(t, later, messages.English))
			}
			formatted, _ := Format(kind, text)
			if diff := cmp.Diff(string(formatted), string(text)); diff != "" {
				t.Errorf("%s in %s is not formatted (-formatted +skeleton):\n%s", kind, language, diff)
			}
			if first == nil {
				first = job
			} else if diff := cmp.Diff(first, job); diff != "" {
				t.Errorf("%s differs between the languages:\n%s", kind, diff)
			}
		}
	}
	if _, err := Skeleton("nope", messages.English); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("unknown kind: %v", err)
	}
}
