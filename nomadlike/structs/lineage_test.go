package structs

import "testing"

func TestNameStem(t *testing.T) {
	for name, want := range map[string]string{
		"resnet-ab-3": "resnet-ab", "resnet-ab-12": "resnet-ab", "resnet-ab": "resnet-ab", "resnet50": "resnet", "llama-7b-sft": "llama-7b-sft",
		"train-0k3v9a": "train", "my-resnet": "my-resnet", "a1": "a", "a": "a", "x-1": "x", "train-zzzzz9": "train-zzzzz",
	} {
		if got := NameStem(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestKinship(t *testing.T) {
	job := func(id, name, user, project, resumed string) *Job {
		j := &Job{ID: id, Name: name, User: user, Project: project}
		if resumed != "" {
			j.Resume = &SavedCheckpoint{JobID: resumed}
		}
		return j
	}
	one := job("1", "train-1", "ann", "vision", "")
	for _, test := range []struct {
		name  string
		other *Job
		want  Kinship
	}{
		{"itself", one, KinNone},
		{"same name", job("2", "train-1", "bob", "vision", ""), KinSame},
		{"same name elsewhere", job("2", "train-1", "ann", "speech", ""), KinNone},
		{"next number", job("2", "train-2", "ann", "vision", ""), KinNumbered},
		{"next number of another user", job("2", "train-2", "bob", "vision", ""), KinNone},
		{"goes on from it", job("2", "other", "bob", "vision", "1"), KinSame},
		{"a stranger", job("2", "other", "ann", "vision", ""), KinNone},
	} {
		if got := KinshipOf(one, test.other); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
		if got := KinshipOf(test.other, one); got != test.want {
			t.Errorf("%s the other way: %d, want %d", test.name, got, test.want)
		}
	}
}
