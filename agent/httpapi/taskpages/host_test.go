package taskpages

import (
	"strings"
	"testing"
)

// A host stands for one port of one allocation, in one spelling, and for nothing else.
func TestHosts(t *testing.T) {
	const domain, alloc = "tasks.example.com", "57ea506c6c4d4def55902c1aee58b5f0"
	for _, host := range []string{Host(domain, alloc, 8080), Host(domain, alloc, 8080) + ":4646", "8080-" + strings.ToUpper(alloc) + ".Tasks.Example.com."} {
		where, ok := placeOf(domain, host)
		if want := (place{host: "8080-" + alloc + "." + domain, alloc: alloc, port: 8080}); !ok || where != want {
			t.Errorf("%s: %+v %v", host, where, ok)
		}
	}
	for _, host := range []string{
		"", domain, "." + domain, "example.com", "8080-" + alloc + ".tasks.example.com.evil.example", "8080-" + alloc + "tasks.example.com",
		"0-" + alloc + "." + domain, "08080-" + alloc + "." + domain, "65536-" + alloc + "." + domain, "-1-" + alloc + "." + domain, "8080." + domain, "8080-." + domain,
		"8080-a.b." + domain, "8080-../x." + domain, "8080-a%2e." + domain, "8080-a_b." + domain, "+80-a." + domain, "8080-" + strings.Repeat("a", 64) + "." + domain,
	} {
		if where, ok := placeOf(domain, host); ok {
			t.Errorf("%q stands for %+v", host, where)
		}
	}
}

// Every name below the domain is the pages' own, so that none is answered by the API.
func TestNamesBelowTheDomain(t *testing.T) {
	d := New(Config{Domain: "tasks.example.com"})
	for host, want := range map[string]bool{
		"a.tasks.example.com": true, "a.b.tasks.example.com:4646": true, "A.TASKS.EXAMPLE.COM.": true, "tasks.example.com": false, "xtasks.example.com": false, "10.0.0.1:4646": false, "[::1]:4646": false, "": false,
	} {
		if d.Answers(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func FuzzPlaceOf(f *testing.F) {
	f.Add("8080-57ea506c6c4d4def55902c1aee58b5f0.tasks.example.com:4646")
	f.Add("1-a.tasks.example.com.")
	f.Fuzz(func(t *testing.T, host string) {
		where, ok := placeOf("tasks.example.com", host)
		if !ok {
			return
		}
		if again, good := placeOf("tasks.example.com", Host("tasks.example.com", where.alloc, where.port)); !good || again != where {
			t.Errorf("%q is %+v, and written anew %+v", host, where, again)
		}
	})
}
