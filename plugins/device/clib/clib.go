// Package clib calls the functions of a vendor's shared library without C.
//
// Flow: Load opens a library; Has looks functions up, and Call calls those that
// are there. Results go into buffers larger than the structures of today's
// interfaces and are read by offset: a library that knows longer ones does no
// harm.
//
// Limits: the calls are made with purego, so that a plugin's program runs with
// C libraries older than that of the machine that built it. Arguments are
// integers, handles and buffers. It belongs into the plugin's own process only:
// a vendor's library may hang and crash.
package clib

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// textMax bounds a text that a library points at.
const textMax = 256

// Library is a vendor's shared library. Its methods may be called from any
// goroutine.
type Library struct {
	// Path is a file, or a name that the dynamic loader finds.
	Path string

	mu struct {
		sync.Mutex
		handle  uintptr            // 0: not loaded
		symbols map[string]uintptr // looked up; 0: the library has none
	}
}

// Load opens the library.
func (l *Library) Load() error {
	handle, err := purego.Dlopen(l.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.handle, l.mu.symbols = handle, make(map[string]uintptr)
	return nil
}

// Unload forgets the library. It stays mapped: unloading one that has threads
// of its own ends the process.
func (l *Library) Unload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.handle, l.mu.symbols = 0, nil
}

// symbol returns the address of a function; 0: the library has none.
func (l *Library) symbol(name string) uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.handle == 0 {
		return 0
	}
	address, looked := l.mu.symbols[name]
	if !looked {
		found, err := purego.Dlsym(l.mu.handle, name)
		if err != nil {
			found = 0
		}
		address = found
		l.mu.symbols[name] = address
	}
	return address
}

// Has reports whether the library has a function.
func (l *Library) Has(name string) bool { return l.symbol(name) != 0 }

// Missing returns the first of some functions that the library does not have;
// "": it has all.
func (l *Library) Missing(names ...string) string {
	for _, name := range names {
		if !l.Has(name) {
			return name
		}
	}
	return ""
}

// Call calls a function with arguments of the types int, uintptr, *Buffer and
// Bytes, and returns its result as a C int; false: the library does not have it.
func (l *Library) Call(name string, arguments ...any) (int, bool) {
	result, there := l.call(name, arguments)
	return int(int32(result)), there
}

// CallText calls a function that returns a text of its own.
func (l *Library) CallText(name string, arguments ...any) string {
	result, there := l.call(name, arguments)
	if !there || result == 0 {
		return ""
	}
	// The address is the library's, so nothing moves it.
	start := *(**[textMax]byte)(unsafe.Pointer(&result))
	length := 0
	for length < textMax && start[length] != 0 {
		length++
	}
	return Bytes(start[:length]).Text(0, length)
}

func (l *Library) call(name string, arguments []any) (uintptr, bool) {
	address := l.symbol(name)
	if address == 0 {
		return 0, false
	}
	words := make([]uintptr, len(arguments))
	var pinned runtime.Pinner
	defer pinned.Unpin()
	for i, argument := range arguments {
		switch a := argument.(type) {
		case int:
			words[i] = uintptr(a)
		case uintptr:
			words[i] = a
		case *Buffer:
			pinned.Pin(a)
			words[i] = uintptr(unsafe.Pointer(a))
		case Bytes:
			pinned.Pin(&a[0])
			words[i] = uintptr(unsafe.Pointer(&a[0]))
		default:
			panic(fmt.Sprintf("call %s with a %T", name, argument)) // a mistake of the caller
		}
	}
	result, _, _ := purego.SyscallN(address, words...)
	return result, true
}

// Describe says what a code of a library means: in words, where there are some,
// and with its number.
func Describe(library string, words map[int]string, code int) string {
	if text, known := words[code]; known {
		return fmt.Sprintf("%s (%d)", text, code)
	}
	return fmt.Sprintf("%s error %d", library, code)
}
