// Package config knows what an agent can be told, and what it means.
//
// Flow: Load reads configuration files, each a layer of Settings in which what is not
// said stays nil, merges them in order, puts the flags of the command line over them,
// and resolves the result into a Config: typed, complete, checked. Everything that is
// wrong comes at once, as an Error with file and line.
//
// Limits: it looks at the machine for defaults only (name, address, working
// directory), starts nothing and writes nothing. It knows neither the agent nor its
// API, which both read a Config.
package config
