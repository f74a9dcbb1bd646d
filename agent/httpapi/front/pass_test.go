package front

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
)

// enters asks for an entry to a host, as somebody with a token or a sign-in does.
func enters(t *testing.T, s *Sessions, caller Caller, host string) string {
	t.Helper()
	asked, _ := http.NewRequest(http.MethodPost, "https://localhost/", nil)
	asked.Header.Set("Authorization", "Bearer secret")
	entry, until, err := s.Entry(&Request{Request: asked, Caller: caller}, host)
	if err != nil || until.Sub(s.now()) != entryLife {
		t.Fatal(until, err)
	}
	return entry
}

// An entry works once, for half a minute, at its host; the pass that it is exchanged for
// works there alone, at every server, and until the sign-in ends that asked for it.
func TestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const host, remote = "8080-a.tasks.example.com", "192.0.2.1:999"
		key := make([]byte, 32)
		s, other := at(t, key, t.TempDir()), at(t, key, t.TempDir())
		text, _ := s.begin("secret", "192.0.2.1", time.Time{})
		caller := Caller{Token: new(structs.Token), session: s.find(text, "192.0.2.1")}
		entry := enters(t, s, caller, host)
		if _, _, ok := s.Enter(entry, "8081-a.tasks.example.com"); ok {
			t.Error("an entry is taken at another host")
		}
		pass, life, ok := s.Enter(entry, host)
		if !ok || life != passLife {
			t.Fatalf("%s %v", life, ok)
		}
		if _, _, again := s.Enter(entry, host); again {
			t.Error("an entry is taken twice")
		}
		for name, taken := range map[string]func() bool{
			"an entry as a pass":        func() bool { _, ok := s.Holder(entry, host, remote); return ok },
			"a pass as an entry":        func() bool { _, _, ok := s.Enter(pass, host); return ok },
			"a pass at another host":    func() bool { _, ok := s.Holder(pass, "8081-a.tasks.example.com", remote); return ok },
			"a pass as a sign-in":       func() bool { return s.find(pass, "192.0.2.1") != nil },
			"a sign-in's cookie as one": func() bool { _, ok := s.Holder(text, host, remote); return ok },
		} {
			if taken() {
				t.Errorf("%s is taken", name)
			}
		}
		late := enters(t, s, caller, host)
		time.Sleep(entryLife + time.Second)
		if _, _, ok := s.Enter(late, host); ok {
			t.Error("an entry is taken a minute late")
		}
		holder, ok := other.Holder(pass, host, remote)
		if !ok {
			t.Fatal("another server does not know the pass")
		}
		made, _ := http.NewRequest(http.MethodGet, "https://"+host+"/", nil)
		r, done, err := holder.Request(t.Context(), made, http.MethodGet, "/v1/x")
		if err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.Host != "localhost" {
			t.Fatalf("%v %v", r, err)
		}
		defer done()
		other.finish(text)
		synctest.Wait()
		if r.Context().Err() == nil {
			t.Error("signing out left open what a pass had opened")
		}
		if _, ok := other.Holder(pass, host, remote); ok {
			t.Error("a pass outlives its sign-in")
		}

		// Without a sign-in at the page a pass ends with its token, at the latest.
		short := new(structs.Token)
		short.ExpiresAt = structs.At(time.Now().Add(time.Hour))
		pass, life, ok = s.Enter(enters(t, s, Caller{Token: short}, host), host)
		if !ok || life != time.Hour {
			t.Fatalf("%s %v", life, ok)
		}
		time.Sleep(time.Hour)
		if _, ok := s.Holder(pass, host, remote); ok {
			t.Error("a pass outlives its token")
		}
	})
}

// A service account signs in nowhere.
func TestNoPassForPrograms(t *testing.T) {
	s := newSessions(time.Now)
	asked, _ := http.NewRequest(http.MethodPost, "https://localhost/", nil)
	asked.Header.Set("Authorization", "Bearer secret")
	r := &Request{Request: asked, Caller: Caller{Token: new(structs.Token)}}
	r.Caller.Principal.Service = true
	if _, _, err := s.Entry(r, "8080-a.tasks.example.com"); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a program got an entry: %v", err)
	}
}
