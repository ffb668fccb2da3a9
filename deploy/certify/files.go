package certify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// room is how much is kept free on the disk for each of the two files: a thousand late
// ticks and three full histograms take 3 MB.
const room = 4 << 20

// Errors of Create, for errors.Is. A Refused is of the host; others are of the name.
var (
	ErrName    = errors.New("a name that ends in .html is wanted; the JSON is written beside it")
	ErrNotFile = errors.New("is there and no file")
	ErrInUse   = errors.New("another certify is writing it")
	ErrNoRoom  = errors.New("no room")
)

// Refused is why the host does not let the files be written now, with what helps.
type Refused struct {
	Text string
	Err  error // ErrInUse, ErrNoRoom
}

func (e *Refused) Error() string { return e.Text }

// Unwrap returns Err.
func (e *Refused) Unwrap() error { return e.Err }

// Files are the two files of a certificate before they are there: written beside their
// places, with room for what comes, and renamed when they are whole.
type Files struct {
	HTML, JSON string // their names in the end
	parts      []*os.File
}

// Create reserves FILE.html and the FILE.json beside it. It fails where they could not
// be written in an hour: no folder, no right to it, no room, or somebody else at it.
func Create(html string) (f *Files, err error) {
	base, is := strings.CutSuffix(html, ".html")
	if !is || filepath.Base(base) == "" || strings.HasSuffix(base, "/") {
		return nil, fmt.Errorf("certify: -o %s: %w", html, ErrName)
	}
	f = &Files{HTML: html, JSON: base + ".json"}
	sweep(filepath.Dir(html))
	for _, name := range []string{f.JSON, f.HTML} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			f.Close()
			return nil, fmt.Errorf("certify: -o %s %w", name, ErrNotFile)
		}
		if err := f.reserve(name + ".part"); err != nil {
			f.Close()
			return nil, fmt.Errorf("certify: -o %s: %w", html, err)
		}
	}
	return f, nil
}

// sweep removes what earlier ones that were killed have reserved in a folder: of that size,
// with nothing in it, and nobody's any more.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".html.part") && !strings.HasSuffix(name, ".json.part") {
			continue
		}
		part, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, room+1))
		if err == nil && bytes.Equal(text, make([]byte, room)) && unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(part.Name())
		}
		part.Close()
	}
}

// reserve opens a file, takes it for this process, and fills it.
func (f *Files) reserve(name string) error {
	part, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		part.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return &Refused{fmt.Sprintf("another certify is writing %s: let it end, or name another file", name), ErrInUse}
		}
		return os.NewSyscallError("flock", err)
	}
	there, errThere := os.Stat(name)
	own, errOwn := part.Stat()
	if errThere != nil || errOwn != nil || !os.SameFile(there, own) { // it has its final name by now
		part.Close()
		return &Refused{fmt.Sprintf("another certify has just written %s: name another file", strings.TrimSuffix(name, ".part")), ErrInUse}
	}
	f.parts = append(f.parts, part) // from here on Close removes it
	err = unix.Fallocate(int(part.Fd()), 0, 0, room)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = part.WriteAt(make([]byte, room), 0)
	}
	if err != nil {
		return &Refused{fmt.Sprintf("room for %d MB: %v: make some, or name a file elsewhere", room>>20, err), errors.Join(ErrNoRoom, err)}
	}
	return nil
}

// Close removes what was reserved and not written.
func (f *Files) Close() {
	for _, part := range f.parts {
		_ = os.Remove(part.Name())
		part.Close()
	}
	f.parts = nil
}

// Write puts a certificate in both places, the JSON first: each is there whole or not at
// all, also where the host loses its power.
func (f *Files) Write(c *Certificate) error {
	c.Again = again(f.JSON)
	text, err := c.JSON()
	if err != nil {
		return err
	}
	page, err := c.HTML()
	if err != nil {
		return err
	}
	for i, content := range [][]byte{text, page} {
		if err := put(f.parts[i], content); err != nil {
			return fmt.Errorf("certify: %w", err)
		}
	}
	for i, name := range []string{f.JSON, f.HTML} {
		if err := os.Rename(f.parts[i].Name(), name); err != nil {
			return fmt.Errorf("certify: %w", err)
		}
	}
	for _, part := range f.parts {
		part.Close()
	}
	f.parts = nil
	return settle(filepath.Dir(f.HTML))
}

// put writes over the reserved room, which it then gives back.
func put(part *os.File, content []byte) error {
	if _, err := part.WriteAt(content, 0); err != nil {
		return err
	}
	if err := part.Truncate(int64(len(content))); err != nil {
		return err
	}
	return part.Sync()
}

// settle writes the names in a folder to the disk.
func settle(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("certify: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("certify: %s: %w", dir, err)
	}
	return nil
}
