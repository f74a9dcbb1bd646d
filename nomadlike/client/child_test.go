package client

// childEnv makes the test binary a whole agent in the directory it names.
const childEnv = "NOMADLIKE_TEST_AGENT_DIR"

func runChild(string) {}
