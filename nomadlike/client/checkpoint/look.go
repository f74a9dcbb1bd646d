package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

const (
	entriesMax = 4096 // of a watched directory that are looked at
	insideMax  = 1024 // files of one of its directories
)

// Place is where a watched directory lies on the node. Below Root nothing is
// followed that leads out of it; without a Root the task's user must be able
// to read Dir.
type Place struct {
	Root string // absolute; "": none
	Dir  string // below Root, or absolute
	UID  int    // the task's user, without a Root
	GID  int
}

// Look lists a directory with the rights of the task. It may be called from
// any goroutine; it waits for the file system, which may be a remote one.
func Look(place Place) ([]Entry, error) {
	if place.Root != "" {
		root, err := os.OpenRoot(place.Root)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return list(rootOpener{root}, place.Dir)
	}
	if os.Geteuid() != 0 || place.UID == 0 {
		return list(plainOpener{}, place.Dir)
	}
	return lookAs(place)
}

// lookAs looks as another user.
func lookAs(place Place) (entries []Entry, err error) {
	err = as(place.UID, place.GID, func() error {
		entries, err = list(plainOpener{}, place.Dir)
		return err
	})
	return entries, err
}

// opener opens and describes files below some root.
type opener interface {
	open(name string) (*os.File, error)
	stat(name string) (fs.FileInfo, error)
}

type plainOpener struct{}

func (plainOpener) open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}
func (plainOpener) stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

type rootOpener struct{ root *os.Root }

func (o rootOpener) open(name string) (*os.File, error) {
	return o.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}
func (o rootOpener) stat(name string) (fs.FileInfo, error) { return o.root.Stat(name) }

// list describes the entries of a directory. Entries that go away while it
// looks are left out.
func list(o opener, dir string) ([]Entry, error) {
	names, err := namesOf(o, dir, entriesMax)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, name := range names {
		info, err := o.stat(path.Join(dir, name))
		if err != nil {
			continue
		}
		e := Entry{Name: name, Bytes: info.Size(), Modified: info.ModTime()}
		if info.IsDir() {
			e.Bytes = 0
			inside, err := namesOf(o, path.Join(dir, name), insideMax)
			if err != nil {
				continue
			}
			for _, part := range inside {
				if info, err := o.stat(path.Join(dir, name, part)); err == nil {
					e.Bytes += info.Size()
					if info.ModTime().After(e.Modified) {
						e.Modified = info.ModTime()
					}
				}
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func namesOf(o opener, dir string, most int) ([]string, error) {
	f, err := o.open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
