package bench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// createReport makes the file of the report, which is written at the end; nil: there is none.
func (r *run) createReport() (*os.File, error) {
	if r.options.Report == "" {
		return nil, nil
	}
	f, err := createOwn(r.options.Report)
	if err != nil {
		return nil, fmt.Errorf("run: report: %w", err)
	}
	return f, nil
}

// ErrFileTaken says that another run writes a file.
var ErrFileTaken = errors.New("another run writes it")

// createOwn is os.Create for a file that no other run writes at the same time.
func createOwn(path string) (*os.File, error) {
	f, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	if err := empty(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openOwn is createOwn for a file that keeps what it has.
func openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if regular(f) && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		f.Close()
		return nil, &Exit{3, fmt.Errorf("%s: %w: name another file", path, ErrFileTaken)}
	}
	return f, nil // several may write to a device
}

// createRecord is createOwn for a file of which older ones are kept, as path.1 and so on:
// the record of a run that has failed outlives the next starts.
func createRecord(path string, older int) (*os.File, error) {
	f, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (older == 0 || !regular(f) || info.Size() == 0) {
		if err = empty(f); err == nil {
			return f, nil
		}
	}
	defer f.Close() // with its lock, when it has its new name
	for i := older; i > 0 && err == nil; i-- {
		from := path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", path, i-1)
		}
		if err = os.Rename(from, fmt.Sprintf("%s.%d", path, i)); errors.Is(err, fs.ErrNotExist) && i > 1 {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return createOwn(path)
}

// empty empties a file, where it is one.
func empty(f *os.File) error {
	if !regular(f) {
		return nil
	}
	return f.Truncate(0)
}

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// save writes the report so that a host that loses its power now has it.
func save(report *Report, file *os.File) error {
	if err := report.JSON(file); err != nil {
		return err
	}
	if err := file.Sync(); !errors.Is(err, syscall.EINVAL) { // a pipe and a device have nothing to sync
		return err
	}
	return nil
}

// maxOwn is how much readOwn reads, bytes.
const maxOwn = 64 << 10

// readOwn reads a small file that this program has left. The folder may be a service's
// while this is root: no link there is followed, and nothing is waited for.
func readOwn(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxOwn))
}

// ownDir makes the directory, and opens it if nobody else can put something there. To
// root one of a service's user will do: no link there is followed.
func ownDir(dir string) (*os.File, error) {
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
