package certify

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// reservedSize is the space reserved for each of the two files, bytes: a thousand late ticks and
// three full histograms take 3 MB.
const reservedSize = 4 << 20

// Files reserves the two files of a certificate, see host.Result.
type Files struct {
	HTML, JSON string // final names
	results    []*host.Result
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
	kinds := []string{"certificate", "HTML"}
	for i, name := range []string{f.JSON, f.HTML} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("certify: -o %s exists and is not a regular file", name)
		}
		r, err := bench.CreateResult(name, reservedSize, kinds[i])
		if err != nil {
			return nil, fmt.Errorf("certify: -o %s: %w", html, err)
		}
		f.results = append(f.results, r)
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

// Close removes the reserved files that were not written.
func (f *Files) Close() {
	for _, r := range f.results {
		r.Close()
	}
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
		if _, err := f.results[i].Write(content); err != nil {
			return fmt.Errorf("certify: %w", err)
		}
	}

	for _, r := range f.results {
		if err := r.Commit(); err != nil {
			return fmt.Errorf("certify: %w", err)
		}
	}
	return nil
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
