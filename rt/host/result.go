package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Result is a file that a command writes at its end. Its content goes to NAME.part, and Commit renames
// that file: a reader finds the old content or the new, also after a kill, a loss of power or on a
// full disk. A device, a pipe, a name below /dev or /proc, and "-", the standard output, are written
// directly. A nil *Result is no file.
type Result struct {
	file  *os.File
	name  string // final name; "": written directly
	size  int64  // bytes written
	ended bool
}

// ReportSpace is the space that a run reserves for its report and for the verdict on its scenario,
// bytes: a report with a full ledger takes 0.3 MB.
const ReportSpace = 1 << 20

// CreateResult opens a result file for this process, locks it and reserves space for it, in bytes.
// It fails if the file could not be written later: no folder, no permission, no space, or another
// run that writes it. A refusal of the host is an *Exit with code 3. Name "": no file.
func CreateResult(name string, space int64) (*Result, error) {
	if name == "" {
		return nil, nil
	}
	if isStdout(name) { // /dev/stdout cannot be opened if it is a socket
		return &Result{file: os.Stdout}, nil
	}
	if IsDirect(name) {
		mode := os.O_RDWR // a pipe without a reader does not block
		if unix.Access(name, unix.R_OK) != nil {
			mode = os.O_WRONLY
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() { // the standard output, which other text may go to
			mode |= os.O_APPEND
		}
		f, err := os.OpenFile(name, mode, 0)
		if err != nil {
			return nil, err
		}
		return &Result{file: f}, nil
	}

	r := &Result{name: name}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		r.name = target
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.reserve(space); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func isStdout(name string) bool { return name == "-" || filepath.Clean(name) == "/dev/stdout" }

// IsDirect reports whether a result of this name is written directly, see Result.
func IsDirect(name string) bool {
	if isStdout(name) {
		return true
	}
	clean := filepath.Clean(name)
	info, err := os.Stat(name)
	return err == nil && (!info.Mode().IsRegular() && !info.IsDir() ||
		(strings.HasPrefix(clean, "/dev/") || strings.HasPrefix(clean, "/proc/")) && !strings.HasPrefix(clean, "/dev/shm/"))
}

// open opens and locks NAME.part.
func (r *Result) open() error {
	if info, err := os.Stat(r.name); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file in it", r.name)
	} else if err == nil && unix.Access(r.name, unix.W_OK) != nil {
		return &fs.PathError{Op: "open", Path: r.name, Err: unix.EACCES}
	}
	if f, err := os.OpenFile(r.name, os.O_WRONLY, 0); err == nil { // a record is written under its own name
		taken := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK
		f.Close()
		if taken {
			return Exitf(3, "%s: %w: name another file", r.name, ErrFileTaken)
		}
	}
	part := r.name + ".part"
	f, err := OpenExclusive(part, unix.O_NOFOLLOW)
	if errors.Is(err, ErrFileTaken) {
		return Exitf(3, "%s: %w: name another file", r.name, ErrFileTaken)
	}
	if err != nil {
		return r.named(err)
	}
	named, errNamed := os.Stat(part)
	opened, errOpened := f.Stat()
	if errNamed != nil || errOpened != nil || !os.SameFile(named, opened) { // another run has renamed it
		f.Close()
		return Exitf(3, "%s: %w: name another file", r.name, ErrFileTaken)
	}
	r.file = f
	return nil
}

// fallocate allocates space. Tests replace it.
var fallocate = unix.Fallocate

// reserve empties the file and allocates its space.
func (r *Result) reserve(space int64) error {
	if err := Truncate(r.file); err != nil || space == 0 {
		return r.named(err)
	}
	var err error = unix.EINTR
	for errors.Is(err, unix.EINTR) { // a signal of the runtime interrupts it on tmpfs
		err = fallocate(int(r.file.Fd()), 0, 0, space)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = r.file.WriteAt(make([]byte, space), 0)
	}
	if err != nil {
		return Exitf(3, "%s: no space for %d MB: %w: free some, or name a file on another disk", r.name, space>>20, err)
	}
	return nil
}

// named names the file in an error of NAME.part, as the user does.
func (r *Result) named(err error) error {
	if err == nil { // errors.As would allocate
		return nil
	}
	var path *fs.PathError
	if r.name != "" && errors.As(err, &path) {
		path.Path = r.name
	}
	return err
}

// Write appends to the content of the file.
func (r *Result) Write(b []byte) (int, error) {
	n, err := r.file.Write(b)
	r.size += int64(n)
	return n, r.named(err)
}

// WriteAt writes into the content of the file.
func (r *Result) WriteAt(b []byte, at int64) (int, error) {
	n, err := r.file.WriteAt(b, at)
	r.size = max(r.size, at+int64(n))
	return n, r.named(err)
}

// Commit ends the content and gives the file its name. It returns the first error; the file then keeps
// its old content.
func (r *Result) Commit() error {
	if r == nil || r.ended || r.name == "" {
		r.Close()
		return nil
	}
	defer r.Close()
	// The rest of the space becomes free.
	if err := errors.Join(r.file.Truncate(r.size), r.file.Sync()); err != nil {
		return r.named(err)
	}
	if err := os.Rename(r.file.Name(), r.name); err != nil {
		return err
	}
	r.name = "" // Close removes nothing
	if dir, err := os.Open(filepath.Dir(r.file.Name())); err == nil {
		_ = dir.Sync() // some file systems cannot sync a folder
		dir.Close()
	}
	return nil
}

// Save writes the content of the file and ends it.
func (r *Result) Save(write func(to io.Writer) error) error {
	if r == nil {
		return nil
	}
	if err := write(r); err != nil {
		return err
	}
	return r.Commit()
}

// Close closes the file, and removes its content unless Commit has ended it.
func (r *Result) Close() {
	if r == nil || r.ended {
		return
	}
	r.ended = true
	if r.name != "" {
		_ = os.Remove(r.file.Name())
	}
	if r.file != os.Stdout {
		r.file.Close()
	}
}

// Replace replaces the content of a file as a whole.
func Replace(name string, content []byte) error {
	r, err := CreateResult(name, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Save(func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	})
}
