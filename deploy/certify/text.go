package certify

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

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
		fmt.Fprintf(w, "  %-12sdearest %s us, %s of the period\n", "plant", us(c.Worst.DearestNs), percent(c.Worst.Share))
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
