package docker_test

const agentArgument = "play-agent"

func playAgent([]string) int { return 0 }
