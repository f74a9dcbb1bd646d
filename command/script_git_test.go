package command

import (
	"net/http/httptest"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"nomadlike/internal/gitservers"
)

// gitGone ends the servers of scripts, by their addresses.
var gitGone sync.Map // string → func()

// serveGit serves the repositories of a directory, or ends that.
func serveGit(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		if gone, there := gitGone.LoadAndDelete(ts.Getenv("GIT")); there {
			gone.(func())()
		}
		return
	}
	handler, err := gitservers.Handler(ts.MkAbs(args[0]))
	ts.Check(err)
	server := httptest.NewServer(handler)
	ts.Setenv("GIT", server.URL)
	gitGone.Store(server.URL, server.Close)
	ts.Defer(server.Close)
}
