package structs

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTagProblem(t *testing.T) {
	for tag, want := range map[string]string{
		"ablation": "", "paper-3": "", "消融实验": "", "lr=3e-4": "", "7b": "", "table/2": "", "v1.2": "", "é́": "",
		"": "tag.empty", "-x": "tag.first", "+x": "tag.first", ".x": "tag.first", "#1": "tag.first",
		"a b": "tag.characters", "a,b": "tag.characters", "a\n": "tag.characters", "a\"": "tag.characters", "a\xff": "tag.characters",
		"a\u202eb": "tag.characters", "😀": "tag.first",
		strings.Repeat("长", TagLengthMax): "", strings.Repeat("长", TagLengthMax+1): "tag.too_long",
	} {
		if got := TagProblem(tag); got != want {
			t.Errorf("TagProblem(%q) = %q, want %q", tag, got, want)
		}
	}
}

func TestNoteProblem(t *testing.T) {
	for note, want := range map[string]string{
		"": "", "diverged at step 40k\nsee run 7": "", "学习率太高，改成 3e-4": "",
		"a\tb": "note.characters", "a\x1b[31m": "note.characters", "\xff": "note.characters",
		strings.Repeat("字", NoteMax): "", strings.Repeat("字", NoteMax+1): "note.too_long",
	} {
		if got := NoteProblem(note); got != want {
			t.Errorf("NoteProblem(%q) = %q, want %q", note, got, want)
		}
	}
}

func TestAnnotationProblems(t *testing.T) {
	long := strings.Repeat("x", NoteMax+1)
	for _, c := range []struct {
		change JobAnnotate
		want   string
	}{
		{JobAnnotate{Add: []string{"a"}, Remove: []string{"b"}}, ""},
		{JobAnnotate{Add: []string{"a b"}}, "tag.characters"},
		{JobAnnotate{Remove: []string{""}}, "tag.empty"},
		{JobAnnotate{Add: []string{"a"}, Remove: []string{"a"}}, "tag.both"},
		{JobAnnotate{Add: strings.Split(strings.Repeat("a", TagsMax+1), "")}, "tag.many"},
		{JobAnnotate{Note: &long}, "note.too_long"},
	} {
		got := ""
		if problem := c.change.Problem(); problem != nil {
			got = problem.ID
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.change, got, c.want)
		}
	}
}

// What is added is there once, what is removed is gone, the others keep their order,
// and a change that is made twice is one.
func TestTagsAfterAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4)
		before := slices.Compact(slices.Sorted(slices.Values(some.Draw(t, "before"))))
		change := JobAnnotate{Add: some.Draw(t, "add"), Remove: some.Draw(t, "remove")}
		after := change.Tags(before)
		for _, tag := range []string{"a", "b", "c", "d"} {
			want := 0
			if !slices.Contains(change.Remove, tag) && (slices.Contains(before, tag) || slices.Contains(change.Add, tag)) {
				want = 1
			}
			if got := len(after) - len(slices.DeleteFunc(slices.Clone(after), func(one string) bool { return one == tag })); got != want {
				t.Fatalf("%v after %+v is %v: %s is there %d times", before, change, after, tag, got)
			}
		}
		kept := slices.DeleteFunc(slices.Clone(before), func(tag string) bool { return slices.Contains(change.Remove, tag) })
		if !slices.Equal(after[:len(kept)], kept) {
			t.Fatalf("%v after %+v is %v: the order has changed", before, change, after)
		}
		if again := change.Tags(after); !slices.Equal(again, after) {
			t.Fatalf("%v becomes %v the second time", after, again)
		}
	})
}

func TestJobFileTags(t *testing.T) {
	job := &Job{Tags: []string{"ok", "ok", "a b", "-x"}, Note: "a\x00"}
	v := &validator{}
	v.annotations(job)
	var got []string
	for _, p := range v.problems {
		got = append(got, p.Path+" "+p.ID)
	}
	want := []string{"tags[1] job.duplicate", "tags[2] tag.characters", "tags[3] tag.first", "note note.characters"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
