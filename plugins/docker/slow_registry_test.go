package docker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// slowRegistry is a registry that lets a push wait, and then refuses it.
type slowRegistry struct {
	host          string
	asked, refuse chan struct{}
}

func newSlowRegistry(t *testing.T) *slowRegistry {
	r := &slowRegistry{asked: make(chan struct{}), refuse: make(chan struct{})}
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/v2/" {
			fmt.Fprint(w, "{}")
			return
		}
		once.Do(func() { close(r.asked) })
		select {
		case <-r.refuse:
		case <-request.Context().Done():
		}
		http.Error(w, `{"errors":[{"code":"DENIED","message":"denied"}]}`, http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}
