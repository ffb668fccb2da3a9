package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrFileTaken says that another run writes a file.
var ErrFileTaken = errors.New("another run writes it")

// CreateExclusive is os.Create for a file that no other run writes at the same time.
func CreateExclusive(path string) (*os.File, error) {
	f, err := OpenExclusive(path)
	if err != nil {
		return nil, err
	}
	if err := Truncate(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenExclusive is CreateExclusive for a file that keeps what it has.
func OpenExclusive(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if Regular(f) && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		f.Close()
		return nil, &Exit{3, fmt.Errorf("%s: %w: name another file", path, ErrFileTaken)}
	}
	return f, nil // several may write to a device
}

// Truncate empties a file, where it is one.
func Truncate(f *os.File) error {
	if !Regular(f) {
		return nil
	}
	return f.Truncate(0)
}

// Regular tells whether f is a file, and no device or pipe.
func Regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
