package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// width of the text, characters. Commands are not broken: they are to be copied.
const width = 79

// JSON writes the diagnosis as one object.
func (d Diagnosis) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// Text writes the diagnosis for a reader: a line for what is as wanted, a block
// for what is not, and the sum.
func (d Diagnosis) Text(w io.Writer) error {
	var b strings.Builder
	d.Host.head(&b)
	for _, c := range d.Checks {
		line(&b, fmt.Sprintf("  %-8s%s", c.mark(), c.Name), c.Found)
		if c.Verdict == OK {
			continue
		}
		line(&b, "          wanted", c.Wanted)
		line(&b, "          why", c.Why)
		c.remedy(&b, d.Host)
	}

	fmt.Fprintf(&b, "\n%s\n", d.Sum())
	_, err := io.WriteString(w, b.String())
	return err
}

// head are the first lines of a text: the host, and the loop that it is judged for.
func (h Host) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s: Linux %s, CPUs %s\n", h.Name, h.Kernel, h.CPUs)
	fmt.Fprintf(b, "for a loop on CPU %d at SCHED_FIFO %d that sleeps with %s\n\n", h.CPU, h.Priority, h.Timer)
}

// Sum is the last line: fit or not, and what there is to do.
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
	return fmt.Sprintf("not fit: %d stand in the way (MUST); of %s", count[Must], text)
}

// mark is the first word of a check's line.
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

// holds says when a change holds; Outside is said of what the host is inside of.
var holds = map[Can]string{
	Now:      "at once, until the next boot",
	Restart:  "when lockstep is started anew",
	Boot:     "after a boot of this kernel",
	Kernel:   "after a boot of another kernel",
	Firmware: "after a change in the firmware (BIOS)",
	Hardware: "not on this hardware",
	Outside:  "outside of the virtual machine, not in here",
}

// remedy writes what there is to do.
func (c Check) remedy(b *strings.Builder, h Host) {
	fmt.Fprintf(b, "%-*s%s\n", column, "          do", c.Command)
	if c.Can != "" {
		line(b, "          holds", c.Can.text(h))
	}
}

// text says when a change holds.
func (c Can) text(h Host) string {
	if c == Outside && h.Container != "" {
		return "on the host of the container, not in here"
	}
	return holds[c]
}

// column is where the second column of the text begins.
const column = 27

// line writes head and text, the text broken between words to stay within width.
func line(b *strings.Builder, head, text string) {
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
