package host

import (
	"bytes"
	"time"
)

// Hasty makes a host impatient, so that tests of silence are short.
func Hasty(config Config) Config {
	config.timing = timing{start: 3 * time.Second, pingEvery: 300 * time.Millisecond, pingLimit: 2 * time.Second, patience: 2 * time.Second}
	return config
}

// Patient looks as often as Hasty and waits longer: what must come up does so on
// a busy machine, too.
func Patient(config Config) Config {
	config.timing = timing{start: time.Minute, pingEvery: 300 * time.Millisecond, pingLimit: 2 * time.Second, patience: time.Minute}
	return config
}

// InMemory and InFile are the two ways to execute an embedded program.
func InMemory(contents []byte) (path string, close func(), err error) {
	p, err := inMemory(bytes.NewReader(contents))
	if err != nil {
		return "", nil, err
	}
	return p.path(), p.close, nil
}

// InFile is InMemory where that is forbidden.
func InFile(contents []byte, dir string) (path string, close func(), err error) {
	p, err := inFile(bytes.NewReader(contents), dir)
	if err != nil {
		return "", nil, err
	}
	return p.path(), p.close, nil
}

// BuiltinEnv is the environment of a built-in plugin.
func BuiltinEnv(name string, env []string) []string { return builtinEnv(name, env) }
