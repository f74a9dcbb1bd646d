package taskpages

import (
	"net/http"
	"testing"
)

// A task sees its own cookies as they are, and none of ours in any spelling.
func TestCookiesToTheTask(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  string
	}{
		{[]string{"__Host-nomadlike-task=pass"}, ""},
		{[]string{"a=1; __Host-nomadlike-task=pass; b=\"x y\""}, "a=1; b=\"x y\""},
		{[]string{"__host-nomadlike=x", "a=1;b=2", " __Host-nomadlike-task = y ;c"}, "a=1; b=2; c"},
		{[]string{"=; ;"}, ""},
		{nil, ""},
	} {
		if got := foreignCookies(c.given); got != c.want {
			t.Errorf("%q: %q, want %q", c.given, got, c.want)
		}
	}
}

// What a task answers stays within its origin.
func TestAnswersAreConfined(t *testing.T) {
	request, _ := http.NewRequest(http.MethodGet, "http://task/", nil)
	request.Host = "8080-a.tasks.example.com:4646"
	answer := &http.Response{Request: request, Header: http.Header{
		"Set-Cookie": {"a=1; Path=/; DOMAIN=tasks.example.com; HttpOnly", "__HOST-nomadlike=stolen; Path=/; Secure", " __Host-nomadlike-task=x", "b=2; domain ; SameSite=Lax"},
		"Alt-Svc":    {`h2="evil.example:443"`}, "Strict-Transport-Security": {"max-age=1; includeSubDomains"},
		"Location": {"http://8080-a.tasks.example.com:4646/lab?x=1"}, "Content-Security-Policy": {"default-src 'self'"},
	}}
	if err := confine(answer); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Set-Cookie": {"a=1; Path=/; HttpOnly", "b=2; SameSite=Lax"}, "Alt-Svc": nil, "Strict-Transport-Security": nil, "Location": {"/lab?x=1"},
		"Content-Security-Policy": {"default-src 'self'", "frame-ancestors 'self'"}, "Cross-Origin-Resource-Policy": {"same-origin"},
	}
	for name, values := range want {
		if got := answer.Header.Values(name); len(got) != len(values) {
			t.Errorf("%s: %q, want %q", name, got, values)
		} else {
			for i := range got {
				if got[i] != values[i] {
					t.Errorf("%s: %q, want %q", name, got, values)
				}
			}
		}
	}
	answer.Header.Set("Location", "http://elsewhere.example/")
	if _ = confine(answer); answer.Header.Get("Location") != "http://elsewhere.example/" {
		t.Error("a redirect to another host was changed")
	}
}
