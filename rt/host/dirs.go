package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// ServicesDir is where those of services are, and root's where there are none.
const ServicesDir = "/run/lockstep"

// ControlDir is where the control sockets of this user's runs are.
func ControlDir() string {
	if os.Getuid() == 0 {
		return controlDirBesideServices(ServicesDir, 0)
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "lockstep")
	}
	return fmt.Sprintf("/tmp/lockstep-%d", os.Getuid())
}

// controlDirBesideServices is dir, or one beside it where that belongs to the user of the services.
func controlDirBesideServices(dir string, uid int) string {
	var s unix.Stat_t
	if unix.Stat(dir, &s) == nil && int(s.Uid) != uid {
		return fmt.Sprintf("%s-%d", dir, uid)
	}
	return dir
}

// FileName is a bench's name as part of a file's.
func FileName(bench string) string {
	plain := func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}
	return strings.TrimLeft(strings.Map(plain, bench), ".")
}

// Printable is a text without what a terminal would act upon: it may be another user's.
func Printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' {
			return -1
		}
		return c
	}, text)
}

// maxOwn is how much ReadOwn reads, bytes.
const maxOwn = 64 << 10

// ReadOwn reads a small file that this program has left. The folder may be a service's
// while this is root: no link there is followed, and nothing is waited for.
func ReadOwn(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxOwn))
}

// OwnDir makes the directory, and opens it if nobody else can put something there. To
// root one of a service's user will do: no link there is followed.
func OwnDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := believed(dir)
	var s unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &s)
	}
	if me := os.Getuid(); err == nil && me != 0 && int(s.Uid) != me {
		f.Close()
		err = notAlone(dir)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func notAlone(dir string) error { return fmt.Errorf("%s %w: rm -r %s", dir, ErrNotAlone, dir) }

// ErrNotAlone says that others can write to a folder.
var ErrNotAlone = errors.New("is not this user's alone")

// believed opens a directory in which only this user or root has written, to root also one
// of a service's user.
func believed(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var s unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &s); err == nil && (int(s.Uid) != os.Getuid() && s.Uid != 0 && os.Getuid() != 0 || s.Mode&0o022 != 0) {
		err = notAlone(dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
