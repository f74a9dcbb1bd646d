// Package python is the client for programs in Python: the package nomadlike, in the
// standard library alone, for Python 3.8 and later.
//
// Flow: nomadlike/calls.py and nomadlike/bodies.py are written from the OpenAPI document
// by agent/openapi; what stands beside them is written by hand. The Go here runs the
// tests below tests/ with python3, against agents of its own.
//
// Limits: no websockets, so no commands inside of tasks; code of git servers is not
// fetched.
package python
