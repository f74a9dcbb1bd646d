package auth

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

func TestPasswordsAreHashedAndCompared(t *testing.T) {
	stored, err := PasswordCost().Hash("a long enough one", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=65536,t=3,p=4$") || len(stored) > structs.PasswordHashMax {
		t.Errorf("stored as %q", stored)
	}
	other, _ := PasswordCost().Hash("a long enough one", rand.Reader)
	if other == stored {
		t.Error("two hashes of one password are the same: there is no salt")
	}
	for given, want := range map[string]bool{"a long enough one": true, "a long enough onf": false, "": false, stored: false} {
		if right, err := PasswordCost().Matches(stored, given); right != want || err != nil {
			t.Errorf("%q: %v, %v", given, right, err)
		}
	}
	if right, err := PasswordCost().Matches("", ""); right || err != nil {
		t.Errorf("no password matches: %v, %v", right, err)
	}
}

// A stored form may come from a backup that somebody has touched: it must not make a
// server take all its memory.
func TestStoredPasswordsAreBounded(t *testing.T) {
	good := "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	if _, err := PasswordCost().Matches(good, "x"); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"m=8", "m=4294967295"},
		{"m=8", "m=262145"},
		{"m=8", "m=0"},
		{"m=8", "m=-8"},
		{"t=1", "t=17"},
		{"t=1", "t=0"},
		{"p=1", "p=17"},
		{"p=1", "p=0"},
		{"argon2id", "argon2i"},
		{"v=19", "v=16"},
		{"m=8,t=1", "t=1,m=8"},
		{"$c2FsdHNhbHRzYWx0", "$c2Fs"},
		{"$c2FsdHNhbHRzYWx0", "$???"},
		{"$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "$"},
		{"$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "$" + strings.Repeat("A", 200)},
		{"$argon2id", "argon2id"},
	} {
		if _, err := PasswordCost().Matches(strings.Replace(good, change[0], change[1], 1), "x"); err == nil {
			t.Errorf("%s in the place of %s is taken", change[1], change[0])
		}
	}
}

func FuzzStoredPassword(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=8,t=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parsePHC(text); err == nil && (p.memory > hashMemoryMax || p.time > hashTimeMax || p.threads > hashThreadsMax || p.threads == 0 || p.time == 0) {
			t.Errorf("%q asks for %+v", text, p)
		}
	})
}

func TestGeneratedPasswords(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text, err := GeneratePassword(rand.Reader)
		if err != nil || seen[text] || len(text) != 24 || strings.Count(text, "-") != 4 {
			t.Fatalf("%q, %v", text, err)
		}
		if id := structs.PasswordProblem("ann", text); id != "" {
			t.Errorf("%s: %s", text, id)
		}
		seen[text] = true
	}
}

// What may be chosen: length counts, and what everybody would try first does not pass.
func TestPasswordsThatMayBeChosen(t *testing.T) {
	for password, want := range map[string]string{
		"correct horse battery": "",
		"密码是三只熊猫吃竹子在山上":         "",
		"elevenchars":           "password.short",
		"":                      "password.short",
		"aaaaaaaaaaaaaaaa":      "password.guessable",
		"abcabcabcabcabc":       "password.guessable",
		"ann-ann-2026-ann":      "password.guessable",
		"ANN ANN ANN 123":       "password.guessable",
		"with\nbreaks in it":    "password.characters",
		"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4": "password.characters",
		strings.Repeat("long ", 60):                        "password.long",
		"ann walks her dog every day":                      "",
	} {
		if got := structs.PasswordProblem("ann", password); got != want {
			t.Errorf("%q: %q, want %q", password, got, want)
		}
	}
}

// Whoever guesses is held up, from however many addresses, and holds up nobody who is
// signed in already.
func TestGuessingHoldsUpNobodyElse(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	var g Guesses
	tries := 0
	for i := range 1000 { // a thousand addresses, ten tries from each
		address := "198.51.100." + string(rune('a'+i%26)) + string(rune('a'+i/26))
		for range 10 {
			if g.Wait("ann", address, false, now) == 0 {
				g.Failed("ann", address, false, now)
				tries++
			}
		}
	}
	if tries != guessesOfAccount {
		t.Errorf("%d tries at once from a thousand addresses, want %d", tries, guessesOfAccount)
	}
	if wait := g.Wait("ann", "192.0.2.1", true, now); wait != 0 {
		t.Errorf("ann waits %v at an address where she is signed in", wait)
	}
	if wait := g.Wait("bob", "198.51.100.aa", false, now); wait != 0 {
		t.Errorf("bob waits %v for what was guessed of ann", wait)
	}
	if wait := g.Wait("ann", "203.0.113.9", false, now); wait <= 0 || wait > guessRefill {
		t.Errorf("from elsewhere ann waits %v", wait)
	}
	if wait := g.Wait("ann", "203.0.113.9", false, now.Add(guessRefill)); wait != 0 {
		t.Errorf("after %v ann still waits %v", guessRefill, wait)
	}
	for range 2 * guessesOfAddress { // at her own address her own mistakes count
		g.Failed("ann", "192.0.2.1", true, now)
	}
	if g.Wait("ann", "192.0.2.1", true, now) == 0 {
		t.Error("at a known address anybody may guess for ever")
	}
	g.Passed("ann", "192.0.2.1", true)
	if wait := g.Wait("ann", "192.0.2.1", true, now); wait != 0 {
		t.Errorf("after the right one ann waits %v", wait)
	}
}

// Right passwords leave no trace, so a program that signs in every second is not held up.
func TestRightPasswordsDoNotCount(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	var g Guesses
	for range 100 {
		if wait := g.Wait("ci", "192.0.2.1", false, now); wait != 0 {
			t.Fatalf("it waits %v", wait)
		}
		g.Failed("ci", "192.0.2.1", false, now)
		g.Passed("ci", "192.0.2.1", false)
	}
}

// One address costs the leader one hash a second, whatever names it makes up, and holds
// up nobody who is signed in there.
func TestAddressesAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	var g Guesses
	tries := 0
	for i := range 1000 {
		name := fmt.Sprint("user-", i)
		if g.Wait(name, "198.51.100.1", false, now) == 0 {
			g.Failed(name, "198.51.100.1", false, now)
			tries++
		}
	}
	if tries != guessesFrom {
		t.Errorf("%d tries at once from one address, want %d", tries, guessesFrom)
	}
	if wait := g.Wait("ann", "198.51.100.1", false, now); wait <= 0 || wait > guessRefillFrom {
		t.Errorf("the next one waits %v", wait)
	}
	if wait := g.Wait("ann", "198.51.100.1", true, now); wait != 0 {
		t.Errorf("ann, who is signed in there, waits %v", wait)
	}
	if wait := g.Wait("ann", "198.51.100.2", false, now); wait != 0 {
		t.Errorf("from elsewhere ann waits %v", wait)
	}
}

// A flood of names takes no more memory than is meant for it, and frees nobody who is
// kept out.
func TestGuessesAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	var g Guesses
	for range guessesOfAccount {
		g.Failed("ann", "192.0.2.1", false, now)
	}
	for i := range 3 * guessesKept {
		g.Failed(fmt.Sprint("x", i), "192.0.2.2", false, now)
		if len(g.buckets) > guessesKept+1 {
			t.Fatalf("%d buckets", len(g.buckets))
		}
	}
	if g.Wait("ann", "192.0.2.1", false, now) == 0 {
		t.Error("a flood of names lets one guess on")
	}
}

func BenchmarkHashPassword(b *testing.B) {
	for b.Loop() {
		if _, err := PasswordCost().Hash("a long enough one", rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}
