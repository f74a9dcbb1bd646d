package checkpoint

import (
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// EnvInbox names the inbox in the environment of a task.
const EnvInbox = "NOMADLIKE_CHECKPOINT_INBOX"

// InboxDir is the inbox below a task's directory.
const InboxDir = ".nomadlike/checkpoints"

const (
	messageMax = structs.CheckpointPathMax + 256 // bytes of a message
	messages   = 16                              // taken at one time
	namesMax   = 1024                            // of an inbox that are looked at

	partSuffix   = ".tmp"  // a message that is still being written
	answerSuffix = ".done" // what the agent answers
)

// message is what a task says: a path in the first line, then "step N", and
// "answer" when it waits for one.
type message struct {
	path   string
	step   int64
	answer bool
}

// parse reads a message. False: it is not whole yet, its last line has no end.
func parse(text string) (m message, problem string, whole bool) {
	if !strings.HasSuffix(text, "\n") {
		return message{}, "", false
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	m.path = lines[0]
	if problem = structs.CheckpointPathProblem(m.path); problem != "" {
		return m, problem, true
	}
	for _, line := range lines[1:] {
		word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "step":
			step, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || step < 0 {
				return m, "client.checkpoint_step_bad", true
			}
			m.step = step
		case "answer":
			m.answer = true
		}
	}
	return m, "", true
}

// text is the message as parse reads it.
func (m message) text() string {
	text := m.path + "\n"
	if m.step > 0 {
		text += "step " + strconv.FormatInt(m.step, 10) + "\n"
	}
	if m.answer {
		text += "answer\n"
	}
	return text
}
