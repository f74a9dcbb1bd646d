package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The whole way on a real agent: streams of the page end with the session and
// with the token, and the leader's routes take the cookie.
func TestSessionOnARealAgent(t *testing.T) {
	agent, client := devAgent(t)
	made, err := client.CreateToken(t.Context(), api.TokenRequest{Role: "admin", User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	b := &visitor{door: agent.http.Handler}
	stream := func() <-chan string {
		out := make(chan string, 1)
		go func() { out <- b.send("GET", "/v1/events", "").Body.String() }()
		return out
	}
	open := func(want int) {
		t.Helper()
		waitFor(t, "open streams", func() bool {
			return agent.http.Handler.(*front.Front).Streams(made.Token.ID) == want
		})
	}
	b.signIn(t, made.Secret)
	if answer := b.send("GET", "/v1/operator/autopilot", ""); answer.Code != 200 {
		t.Errorf("autopilot: %d %s", answer.Code, answer.Body)
	}
	answers := stream()
	open(1)
	b.send("DELETE", "/v1/session", "")
	if text := <-answers; !strings.Contains(text, "agent.session_over") {
		t.Errorf("a stream after signing out ends with %q", text)
	}
	open(0)
	b.signIn(t, made.Secret)
	answers = stream()
	open(1)
	if _, err := client.DeleteToken(t.Context(), made.Token.ID); err != nil {
		t.Fatal(err)
	}
	if text := <-answers; !strings.Contains(text, "agent.token_revoked") {
		t.Errorf("a stream of a token that was revoked ends with %q", text)
	}
	answer := b.send("GET", "/v1/jobs", "")
	failure := new(structs.Error)
	if err := json.Unmarshal(answer.Body.Bytes(), failure); err != nil || structs.CodeUnauthorized != failure.Code {
		t.Errorf("the cookie of a token that was revoked: %s", answer.Body)
	}
}

// visitor asks as the page's scripts do: with the cookie, never with a token.
type visitor struct {
	door   http.Handler
	cookie *http.Cookie
}

func (v *visitor) send(method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "https://127.0.0.1"+path, strings.NewReader(body))
	request.RemoteAddr = "192.0.2.1:9"
	request.Header.Set("Origin", "https://127.0.0.1")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set(api.HeaderRequestedBy, "ui")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if v.cookie != nil {
		request.AddCookie(v.cookie)
	}
	answer := httptest.NewRecorder()
	v.door.ServeHTTP(answer, request)
	return answer
}

func (v *visitor) signIn(t *testing.T, token string) {
	t.Helper()
	answer := v.send("POST", "/v1/session", fmt.Sprintf(`{"token":%q}`, token))
	cookies := answer.Result().Cookies()
	if answer.Code != 200 || len(cookies) != 1 {
		t.Fatalf("sign in: %d %s %v", answer.Code, answer.Body, cookies)
	}
	v.cookie = cookies[0]
}
