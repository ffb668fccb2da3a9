package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// width is the width of the text, characters. Commands are not wrapped, so that they can be copied.
const width = 79

// JSON writes the diagnosis as one object.
func (d Diagnosis) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// Text writes the diagnosis for people: a line for each check that is OK, a block for each other
// check, and the totals.
func (d Diagnosis) Text(w io.Writer) error {
	var b strings.Builder
	d.Host.printHead(&b)
	for _, c := range d.Checks {
		printLine(&b, fmt.Sprintf("  %-8s%s", c.mark(), c.Name), c.Found)
		if c.Verdict == OK {
			continue
		}
		printLine(&b, "          wanted", c.Wanted)
		printLine(&b, "          why", c.Why)
		c.printRemedy(&b, d.Host)
	}

	fmt.Fprintf(&b, "\n%s\n", d.Sum())
	_, err := io.WriteString(w, b.String())
	return err
}

// printHead prints the first lines of a text: the host and the loop.
func (h Host) printHead(b *strings.Builder) {
	fmt.Fprintf(b, "%s: Linux %s, CPUs %s\n", h.Name, h.Kernel, h.CPUs)
	fmt.Fprintf(b, "for a loop on CPU %d at SCHED_FIFO %d that sleeps with %s\n\n", h.CPU, h.Priority, h.Timer)
}

// Sum returns the last line of the text: fit or not, and the number of checks to change.
func (d Diagnosis) Sum() string {
	count := map[Level]int{}
	unknown := 0
	for _, c := range d.Checks {
		switch {
		case c.Verdict == OK:
		case c.Verdict == Unknown && c.Level != Must:
			unknown++
		default:
			count[c.Level]++
		}
	}

	text := fmt.Sprintf("%d checks, %d should change, %d unknown", len(d.Checks), count[Should], unknown)
	if d.Fit {
		return "fit: " + text
	}
	return fmt.Sprintf("not fit: %d must change; %s", count[Must], text)
}

// mark returns the first word of a check's line.
func (c Check) mark() string {
	switch {
	case c.Verdict == OK:
		return "ok"
	case c.Level == Must && c.Verdict == Unknown:
		return "MUST ?"
	case c.Level == Must:
		return "MUST"
	case c.Verdict == Unknown:
		return "unknown"
	case c.Level == Should:
		return "should"
	}

	return "note"
}

// effects describes when a change takes effect.
var effects = map[Can]string{
	Now:      "at once, until the next boot",
	Restart:  "after a restart of lockstep",
	Boot:     "after a boot of this kernel",
	Kernel:   "after a boot of another kernel",
	Firmware: "after a change in the firmware (BIOS)",
	Hardware: "not on this hardware",
	Outside:  "only outside of the virtual machine",
}

// printRemedy prints the command that corrects the check, and when it takes effect.
func (c Check) printRemedy(b *strings.Builder, h Host) {
	fmt.Fprintf(b, "%-*s%s\n", column, "          do", c.Command)
	if c.Can != "" {
		printLine(b, "          takes effect", c.Can.text(h))
	}
}

// text describes when a change takes effect.
func (c Can) text(h Host) string {
	if c == Outside && h.Container != "" {
		return "only on the host of the container"
	}
	return effects[c]
}

// column is the start of the second column of the text, characters.
const column = 27

// printLine prints head and text; the text is wrapped between words to stay within width.
func printLine(b *strings.Builder, head, text string) {
	at := column
	fmt.Fprintf(b, "%-*s", column, head)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			fmt.Fprintf(b, "\n%*s", column, "")
			at = column
		default:
			b.WriteByte(' ')
			at++
		}

		b.WriteString(word)
		at += len(word)
	}

	b.WriteByte('\n')
}
