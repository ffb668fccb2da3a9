package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// ServicesDir holds the control sockets of services, and root's if there are no services.
const ServicesDir = "/run/lockstep"

// ControlDir returns the folder of this user's control sockets.
func ControlDir() string {
	if os.Getuid() == 0 {
		return controlDirBesideServices(ServicesDir, 0)
	}
	return userControlDir(os.Getenv("XDG_RUNTIME_DIR"), os.Getuid())
}

// userControlDir returns the folder of a user with a runtime folder. A relative one is ignored, as the
// XDG Base Directory Specification has it: another working directory would have other runs.
func userControlDir(runtime string, uid int) string {
	if filepath.IsAbs(runtime) {
		return filepath.Join(runtime, "lockstep")
	}
	return fmt.Sprintf("/tmp/lockstep-%d", uid)
}

// controlDirBesideServices returns dir, or a folder beside it if dir belongs to another user.
func controlDirBesideServices(dir string, uid int) string {
	var s unix.Stat_t
	if unix.Stat(dir, &s) == nil && int(s.Uid) != uid {
		return fmt.Sprintf("%s-%d", dir, uid)
	}
	return dir
}

// FileName returns the name of a bench as part of a file name.
func FileName(bench string) string {
	plain := func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}

	return strings.TrimLeft(strings.Map(plain, bench), ".")
}

// Printable returns text without control characters, which a terminal could act upon: the text may
// come from another user.
func Printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' {
			return -1
		}
		return c
	}, text)
}

// PrintableLine returns text as a part of one line, without control characters and line ends.
func PrintableLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", "")
}

// maxOwnFile is the number of bytes that ReadOwn reads.
const maxOwnFile = 64 << 10

// ReadOwn reads a small file written by this program. The folder may be a service's while this
// process is root, so ReadOwn follows no link, reads no pipe and does not block.
func ReadOwn(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !IsRegular(f) {
		return nil, &fs.PathError{Op: "read", Path: file, Err: fs.ErrInvalid}
	}
	return io.ReadAll(io.LimitReader(f, maxOwnFile))
}

// OwnDir makes the directory and opens it if no other user can write to it. Root accepts a
// directory of a service's user. OwnDir follows no link.
func OwnDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return openDir(dir, true)
}

// ErrWritableByOthers means that other users can write to a folder.
var ErrWritableByOthers = errors.New("is not this user's alone")

// openDir opens a directory in which only this user can write and, unless own is true, root. Root
// accepts a directory of any user.
func openDir(dir string, own bool) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var s unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &s)
	me := os.Getuid()
	others := me != 0 && int(s.Uid) != me && (own || s.Uid != 0)
	if err == nil && (others || s.Mode&0o022 != 0) {
		remedy := "rm -r " + dir
		if others {
			remedy = fmt.Sprintf("it is user %d's, so set XDG_RUNTIME_DIR to a folder of this user", s.Uid)
		}
		err = fmt.Errorf("%s %w: %s", dir, ErrWritableByOthers, remedy)
	}
	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

// ErrFileTaken means that another run writes a file.
var ErrFileTaken = errors.New("another run writes it")

// CreateExclusive creates or truncates a file like os.Create, and fails if another run writes it.
func CreateExclusive(path string) (*os.File, error) {
	f, err := OpenExclusive(path, 0)
	if err != nil {
		return nil, err
	}
	if err := Truncate(f); err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

// OpenExclusive opens or creates a file without truncating it, and fails if another run writes it.
// flags is unix.O_NOFOLLOW for a name that the user has not given: in a shared folder another user may
// have made it, as a link to a file of this user.
func OpenExclusive(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flags, 0o666)
	if err != nil {
		return nil, err
	}
	if IsRegular(f) && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		f.Close()
		return nil, Exitf(3, "%s: %w: name another file", path, ErrFileTaken)
	}

	return f, nil // several runs may write to a device
}

// Truncate empties a regular file; other files stay as they are.
func Truncate(f *os.File) error {
	if !IsRegular(f) {
		return nil
	}
	return f.Truncate(0)
}

// IsRegular reports whether f is a regular file, not a device or pipe.
func IsRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
