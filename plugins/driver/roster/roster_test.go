package roster_test

import (
	"errors"
	"testing"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/roster"
)

func TestTasksAreKnownFromAddToForget(t *testing.T) {
	r := roster.New[string]()
	defer r.Close()
	if err := r.Add("a", "first"); err != nil {
		t.Fatal(err)
	}
	if err := r.Add("a", "second"); !errors.Is(err, driver.ErrTaskExists) {
		t.Errorf("a taken id is added: %v", err)
	}
	if found, err := r.Find("a"); err != nil || found != "first" {
		t.Errorf("found %q, %v", found, err)
	}
	r.Forget("a")
	if _, err := r.Find("a"); !errors.Is(err, driver.ErrUnknownTask) {
		t.Errorf("a forgotten task is found: %v", err)
	}
	if err := r.Add("a", "third"); err != nil {
		t.Errorf("a free id is not added: %v", err)
	}
}

// TestCloseWaits: what runs ends with the life, and Close returns after it.
func TestCloseWaits(t *testing.T) {
	r := roster.New[string]()
	ended := false
	if !r.Go(func() { <-r.Life().Done(); ended = true }) {
		t.Fatal("an open roster runs nothing")
	}
	if !r.Close() || !ended {
		t.Errorf("closed before its work had ended: %t", ended)
	}
	if r.Close() {
		t.Error("closed twice")
	}
	if r.Go(func() { t.Error("work of a closed roster") }) {
		t.Error("a closed roster runs something")
	}
	if err := r.Add("a", "late"); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a closed roster takes a task: %v", err)
	}
}
