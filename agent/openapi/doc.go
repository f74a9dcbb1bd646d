// Package openapi describes the HTTP API for programs: the routes of package
// api as an OpenAPI document, and the types of the web pages out of that.
//
// Flow: Document reads the table of routes and the Go types of their bodies by
// reflection; the agent serves it. `make generate` turns it into
// ui/src/types.ts, so the pages cannot name a field that no body has, and into
// what the client for Python calls and holds (scripts/python); tests fail while
// these files are not what the routes say.
//
// Limits: pure, and it describes; it serves nothing and checks no body.
package openapi

//go:generate go test -count=1 -run "TestTypesOfThePages|TestClientForPython" -rewrite .
