package certify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/host"
)

// room is how much is kept free on the disk for each of the two files: a thousand late
// ticks and three full histograms take 3 MB.
const room = 4 << 20

// Files are the two files of a certificate before they are there: written beside their
// places, with room for what comes, and renamed when they are whole.
type Files struct {
	HTML, JSON string // their names in the end
	parts      []*os.File
}

// Create reserves FILE.html and the FILE.json beside it. It fails where they could not
// be written in an hour: no folder, no right to it, no room, or somebody else at it. What the
// host does not allow now is a *host.Exit with the code 3.
func Create(html string) (_ *Files, err error) {
	base, is := strings.CutSuffix(html, ".html")
	if !is || strings.HasSuffix(base, "/") {
		return nil, fmt.Errorf("certify: -o %s: a name that ends in .html is wanted; the JSON is written beside it", html)
	}
	f := &Files{HTML: html, JSON: base + ".json"}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()

	sweep(filepath.Dir(html))
	for _, name := range []string{f.JSON, f.HTML} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("certify: -o %s is there and no file", name)
		}
		if err := f.reserve(name + ".part"); err != nil {
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
	part, err := host.OpenExclusive(name)
	if err != nil {
		return err
	}
	there, errThere := os.Stat(name)
	own, errOwn := part.Stat()
	if errThere != nil || errOwn != nil || !os.SameFile(there, own) { // it has its final name by now
		part.Close()
		return host.Exitf(3, "another certify has just written %s: name another file", strings.TrimSuffix(name, ".part"))
	}

	f.parts = append(f.parts, part) // from here on Close removes it
	err = unix.Fallocate(int(part.Fd()), 0, 0, room)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = part.WriteAt(make([]byte, room), 0)
	}
	if err != nil {
		return host.Exitf(3, "room for %d MB: %w: make some, or name a file elsewhere", room>>20, err)
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
	if dir, err := os.Open(filepath.Dir(f.HTML)); err == nil {
		_ = dir.Sync() // not every file system can
		dir.Close()
	}

	return nil
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

// Text is what a terminal shows of a certificate that has been written to two files.
func (c *Certificate) Text(w io.Writer, f *Files) {
	length := seconds(c.Run.SimTime).String()
	if c.CutShort != "" {
		length += fmt.Sprintf(" of %v, CUT SHORT (%s)", time.Duration(c.Asked.ForNs), c.CutShort)
	}
	fmt.Fprintf(w, "\ncertificate of %s on %s, %s\n", c.Run.Bench, c.Box.Name, length)
	if !c.Representative {
		fmt.Fprint(w, "NOT REPRESENTATIVE of a tuned real-time host:\n")
		for _, reason := range c.Reasons {
			fmt.Fprintf(w, "  - %s\n", reason)
		}
	}

	worst := func(name string, d *Distribution) {
		if d == nil {
			fmt.Fprintf(w, "  %-12snot measured\n", name)
			return
		}

		fmt.Fprintf(w, "  %-12sworst %s us of %d\n", name, us(d.MaxNs), d.Samples)
	}

	worst("wake-up", c.Late)
	worst("tick", c.Tick)
	worst("bus to bus", c.Response)
	if c.Beside != nil && c.Beside.Cyclictest != nil {
		fmt.Fprintf(w, "  %-12sworst %s us of %d; ratio of the loop to it: p50 %s, p99 %s\n", "cyclictest",
			us(c.Beside.Cyclictest.Max), c.Beside.Cyclictest.Samples, ratio(c.Beside.Loop.RatioP50), ratio(c.Beside.Loop.RatioP99))
	}

	if c.Worst != nil {
		fmt.Fprintf(w, "  %-12sdearest %s us, %s of the period\n", "plant", us(c.Worst.WorstNs), percent(c.Worst.Share))
	}
	fmt.Fprintf(w, "in %s and %s, sha256 %.16s...\nagain, and what has changed: %s\n", f.HTML, f.JSON, c.SHA256, c.Again)
}

// bare matches a word that a shell takes as it is.
var bare = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// again is the command that measures once more what is in a file, and compares.
func again(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	if !bare.MatchString(file) {
		file = "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	return "lockstep certify -compare " + file
}
