package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"nomadlike/internal/beneath"
	"nomadlike/nomadlike/structs"
)

// Inbox is the agent's end of one task's inbox. Its methods may be called from
// any goroutine.
type Inbox struct {
	taskDir string

	mu struct {
		sync.Mutex
		taken map[string]message // by file name: told to the servers, not acknowledged
	}
}

// NewInbox returns the inbox of the task that has the directory.
func NewInbox(taskDir string) *Inbox {
	b := &Inbox{taskDir: taskDir}
	b.mu.taken = make(map[string]message)
	return b
}

// Saved is a checkpoint that a task made known by the message in the file Name.
type Saved struct {
	Name       string
	Checkpoint structs.SavedCheckpoint // Path, Step and SavedAt are set
}

// Take returns the messages that were not given before, oldest first, and
// answers those that say nothing good. The error says that there is no inbox
// that could be read.
func (b *Inbox) Take() ([]Saved, error) {
	root, err := b.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := listNames(root)
	if err != nil {
		return nil, err
	}
	var found []Saved
	for _, name := range names {
		if len(found) == messages {
			break
		}
		if b.known(name) || strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, answerSuffix) || strings.HasPrefix(name, ".") {
			continue
		}
		text, at, err := readMessage(root, path.Join(InboxDir, name))
		if err != nil {
			_ = root.Remove(path.Join(InboxDir, name)) // a directory with entries stays, and does no harm
			continue
		}
		m, problem, whole := parse(text)
		switch {
		case !whole:
		case problem != "":
			finish(root, name, m.answer || strings.Contains(text, "\nanswer\n"), problem)
		default:
			b.take(name, m)
			found = append(found, Saved{Name: name, Checkpoint: structs.SavedCheckpoint{Path: m.path, Step: m.step, SavedAt: at}})
		}
	}
	slices.SortStableFunc(found, func(x, y Saved) int {
		switch {
		case x.Checkpoint.SavedAt < y.Checkpoint.SavedAt:
			return -1
		case x.Checkpoint.SavedAt > y.Checkpoint.SavedAt:
			return 1
		}
		return 0
	})
	return found, nil
}

// Delivered says that the servers have the messages in their log: they are
// removed, and whoever waits for an answer gets it.
func (b *Inbox) Delivered(names ...string) {
	root, err := b.open()
	if err != nil {
		return // swept with its allocation
	}
	defer root.Close()
	for _, name := range names {
		b.mu.Lock()
		m, ok := b.mu.taken[name]
		delete(b.mu.taken, name)
		b.mu.Unlock()
		if ok {
			finish(root, name, m.answer, answerGood)
		}
	}
}

// open opens the task's directory. It and the one above it, of the allocation,
// are no links, whatever a task could put in their place.
func (b *Inbox) open() (*os.Root, error) {
	above, task := path.Split(b.taskDir)
	above, alloc := path.Split(path.Clean(above))
	return beneath.Root(above, path.Join(alloc, task))
}

func (b *Inbox) known(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.mu.taken[name]
	return ok
}

func (b *Inbox) take(name string, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.taken[name] = m
}

// answerGood is the answer to a message that counted; others are the message
// id of a problem.
const answerGood = "ok"

// finish removes a message and answers it. What cannot be written is not:
// whoever waits gives up by itself.
func finish(root *os.Root, name string, answer bool, text string) {
	at := path.Join(InboxDir, name)
	if answer {
		f, err := root.OpenFile(at+answerSuffix+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
		if err == nil {
			_, err = io.WriteString(f, text+"\n")
			if closeErr := f.Close(); err == nil {
				err = closeErr
			}
			if err == nil {
				_ = root.Rename(at+answerSuffix+partSuffix, at+answerSuffix)
			}
		}
	}
	_ = root.Remove(at)
}

// listNames lists an inbox by name.
func listNames(root *os.Root) ([]string, error) {
	dir, err := root.OpenFile(InboxDir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(namesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// readMessage reads a small regular file without waiting for anybody.
func readMessage(root *os.Root, at string) (string, structs.UnixNano, error) {
	f, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > messageMax {
		return "", 0, fmt.Errorf("read message %s: %w", at, fs.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, messageMax))
	return string(text), structs.At(info.ModTime()), err
}
