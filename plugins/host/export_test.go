package host

import "time"

// Hasty makes a host impatient, so that tests of silence are short.
func Hasty(config Config) Config {
	config.timing = timing{start: 3 * time.Second, pingEvery: 300 * time.Millisecond, pingLimit: 2 * time.Second, patience: 2 * time.Second}
	return config
}
