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

// reservedSize is the space reserved for each of the two files, bytes: a thousand late ticks and
// three full histograms take 3 MB.
const reservedSize = 4 << 20

// Files reserves the two files of a certificate. Their content goes to FILE.part, with reserved
// space; Write renames these files when they are complete.
type Files struct {
	HTML, JSON string // final names
	parts      []*os.File
}

// Create reserves FILE.html and FILE.json in the same folder. It fails if they could not be written
// after the run: no folder, no permission, no space, or another certify that writes them. A
// refusal of the host is a *host.Exit with code 3.
func Create(html string) (_ *Files, err error) {
	base, ok := strings.CutSuffix(html, ".html")
	if !ok || strings.HasSuffix(base, "/") {
		return nil, fmt.Errorf("certify: -o %s: use a name that ends in .html; the JSON gets the same name with .json", html)
	}
	f := &Files{HTML: html, JSON: base + ".json"}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()

	removeAbandoned(filepath.Dir(html))
	for _, name := range []string{f.JSON, f.HTML} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("certify: -o %s exists and is not a regular file", name)
		}
		if err := f.reserve(name + ".part"); err != nil {
			return nil, fmt.Errorf("certify: -o %s: %w", html, err)
		}
	}

	return f, nil
}

// removeAbandoned removes the files that a killed certify reserved in a folder: unlocked, of the
// reserved size and all zero.
func removeAbandoned(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".html.part") && !strings.HasSuffix(name, ".json.part") {
			continue
		}
		part, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, reservedSize+1))
		if err == nil && bytes.Equal(text, make([]byte, reservedSize)) && unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(part.Name())
		}
		part.Close()
	}
}

// reserve opens and locks a file for this process, and reserves its space.
func (f *Files) reserve(name string) error {
	part, err := host.OpenExclusive(name, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	named, errNamed := os.Stat(name)
	opened, errOpened := part.Stat()
	if errNamed != nil || errOpened != nil || !os.SameFile(named, opened) { // another certify has renamed it
		part.Close()
		return host.Exitf(3, "another certify has just written %s: name another file", strings.TrimSuffix(name, ".part"))
	}

	f.parts = append(f.parts, part) // Close removes it now
	err = unix.Fallocate(int(part.Fd()), 0, 0, reservedSize)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = part.WriteAt(make([]byte, reservedSize), 0)
	}
	if err != nil {
		return host.Exitf(3, "no space for %d MB: %w: free some, or name a file on another disk", reservedSize>>20, err)
	}
	return nil
}

// Close removes the reserved files that were not written.
func (f *Files) Close() {
	for _, part := range f.parts {
		_ = os.Remove(part.Name())
		part.Close()
	}

	f.parts = nil
}

// Write writes a certificate to both files, the JSON first. Each file appears complete or not at
// all, also after a loss of power.
func (f *Files) Write(c *Certificate) error {
	c.Again = compareCommand(f.JSON)
	text, err := c.JSON()
	if err != nil {
		return err
	}
	page, err := c.HTML()
	if err != nil {
		return err
	}
	for i, content := range [][]byte{text, page} {
		if err := writeReserved(f.parts[i], content); err != nil {
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
		_ = dir.Sync() // some file systems cannot sync a folder
		dir.Close()
	}

	return nil
}

// writeReserved writes the content into the reserved space and frees the rest.
func writeReserved(part *os.File, content []byte) error {
	if _, err := part.WriteAt(content, 0); err != nil {
		return err
	}
	if err := part.Truncate(int64(len(content))); err != nil {
		return err
	}
	return part.Sync()
}

// Text writes the summary of a certificate for a terminal; f holds the files it was written to.
func (c *Certificate) Text(w io.Writer, f *Files) {
	length := seconds(c.Run.SimTime).String()
	if c.CutShort != "" {
		length += fmt.Sprintf(" of %v, CUT SHORT (%s)", time.Duration(c.Request.ForNs), c.CutShort)
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
	if r := c.Reference; r != nil && r.Cyclictest != nil {
		fmt.Fprintf(w, "  %-12sworst %s us of %d; loop / cyclictest: p50 %s, p99 %s\n", "cyclictest",
			us(r.Cyclictest.Max), r.Cyclictest.Samples, ratio(r.Loop.RatioP50), ratio(r.Loop.RatioP99))
	}

	if c.Worst != nil {
		fmt.Fprintf(w, "  %-12sworst tick %s us, %s of the period\n", "plant", us(c.Worst.WorstNs), percent(c.Worst.Share))
	}
	fmt.Fprintf(w, "written to %s and %s, sha256 %.16s...\nmeasure again and compare: %s\n", f.HTML, f.JSON, c.SHA256, c.Again)
}

// unquoted matches a word that needs no quotes in a shell.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// compareCommand returns the shell command that measures again and compares with a JSON file.
func compareCommand(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	if !unquoted.MatchString(file) {
		file = "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	return "lockstep certify -compare " + file
}
