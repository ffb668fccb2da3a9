package doctor

import (
	"fmt"
	"io"
	"strings"

	"lockstep/sched/hostinfo"
)

// untouched is what no plan changes.
const untouched = "files on a disk, the kernel's command line and the boot loader; frequencies and idle states of CPUs " +
	"other than the loop's; interrupts that the kernel manages itself, and where those of CAN cards go; threads, " +
	"unless named above; CAN interfaces that are up, bit rates, and what is up or down; BIOS and firmware"

// Text writes the plan for a reader: every change, what else there is to do, and
// what is not touched.
func (p *Plan) Text(w io.Writer) error {
	var b strings.Builder
	p.Host.head(&b)
	p.changes(&b)
	line(&b, "does not touch", untouched)
	if len(p.Kept) > 0 {
		line(&b, "left by -keep", strings.Join(p.Kept, ", "))
	}
	p.left(&b)
	p.boot(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) changes(b *strings.Builder) {
	if len(p.Changes) == 0 {
		b.WriteString("nothing to change while it runs\n\n")
		return
	}

	fmt.Fprintf(b, "%d to change, until the next boot:\n\n", len(p.Changes))
	if bench := p.host.busy(); bench.Process != 0 {
		line(b, "  not now", fmt.Sprintf("a bench runs (%s): nothing is changed until it has ended", bench))
	}
	for i, c := range p.Changes {
		if i == 0 || p.Changes[i-1].Check != c.Check {
			line(b, "  "+c.Check, p.checks[c.Check].Why)
			if text := p.mind(c.Check); text != "" {
				line(b, "          mind", text)
			}
		}

		fmt.Fprintf(b, "%-*s%s\n", column, "          change", c.Setting)
		fmt.Fprintf(b, "%-*s%s -> %s\n", column, "", c.Now, c.Then)
		fmt.Fprintf(b, "%-*s%s\n", column, "          do", c.Command)
	}

	b.WriteByte('\n')
}

// mind is what else comes with the changes of a check; empty: nothing.
func (p *Plan) mind(check string) string {
	h := p.host
	switch check {
	case "interrupts":
		if h.irqbalance {
			return "irqbalance runs, and may move them back where the CPU is not isolated"
		}
	case "governor":
		together := h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/related_cpus", h.CPU))
		if list, err := hostinfo.ParseCPUs(strings.ReplaceAll(together, " ", ",")); err == nil && len(list) > 1 {
			return "CPUs " + hostinfo.FormatCPUs(list) + " have one frequency, and so one governor"
		}
	case "smt":
		return "a CPU that is off line runs nothing: the host has one less, " +
			"and what was bound to it alone goes elsewhere and stays there"
	}

	return ""
}

// left are the checks that no setting of the running kernel mends.
func (p *Plan) left(b *strings.Builder) {
	if len(p.Left) == 0 {
		return
	}
	b.WriteString("\nnot done here:\n\n")
	for _, c := range p.Left {
		line(b, fmt.Sprintf("  %-8s%s", c.mark(), c.Name), c.Found)
		c.remedy(b, p.Host)
	}
}

func (p *Plan) boot(b *strings.Builder) {
	if p.Host.Container != "" {
		return
	}
	if len(p.Boot.Lacks) == 0 {
		fmt.Fprintf(b, "\nthe kernel's command line is as recommended: %s\n", strings.Join(p.Boot.Wanted, " "))
		return
	}

	b.WriteString("\nfor you to write, and to boot with (nothing of it is written here):\n\n")
	for _, text := range p.Boot.Lines() {
		fmt.Fprintf(b, "    %s\n", text)
	}
	fmt.Fprintf(b, "\nof it the running kernel lacks %s\n", strings.Join(p.Boot.Lacks, " "))
	if len(p.Boot.Drop) > 0 {
		fmt.Fprintf(b, "and has, to be taken out where it stands: %s\n", strings.Join(p.Boot.Drop, " "))
	}
}

// StepsText writes what became of the changes, a line for each, and the sum.
func StepsText(w io.Writer, steps []Step) error {
	var b strings.Builder
	for _, s := range steps {
		text := fmt.Sprintf("%s -> %s", s.Now, s.Then)
		mark := "done"
		switch {
		case s.Err != "":
			mark, text = "FAILED", fmt.Sprintf("%s, not %s: %s", s.Now, s.Then, s.Err)
		case s.Left != "":
			mark, text = "left", s.Left
		}

		fmt.Fprintf(&b, "  %-8s%s: %s\n", mark, s.Setting, text)
	}

	_, err := io.WriteString(w, b.String())
	return err
}

// Sum counts the steps: done, left alone, failed.
func Sum(steps []Step) (done, left, failed int) {
	for _, s := range steps {
		switch {
		case s.Err != "":
			failed++
		case s.Done:
			done++
		default:
			left++
		}
	}

	return done, left, failed
}
