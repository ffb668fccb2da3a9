package doctor

import (
	"fmt"
	"io"
	"strings"

	"lockstep/sched/hostinfo"
)

// untouched lists the settings that no plan changes.
const untouched = "files on a disk, the kernel's command line and the boot loader; frequencies and idle states of CPUs " +
	"other than the loop's; interrupts that the kernel manages itself, and the CPUs of CAN cards' interrupts; threads, " +
	"unless named above; CAN interfaces that are up, bit rates, and whether an interface is up; BIOS and firmware"

// Text writes the plan for people: all changes, the checks that need another remedy, and the
// settings that no plan changes.
func (p *Plan) Text(w io.Writer) error {
	var b strings.Builder
	p.Host.printHead(&b)
	p.changes(&b)
	printLine(&b, "not changed", untouched)
	if len(p.Preserved) > 0 {
		printLine(&b, "excluded by -keep", strings.Join(p.Preserved, ", "))
	}
	p.left(&b)
	p.boot(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) changes(b *strings.Builder) {
	if len(p.Changes) == 0 {
		b.WriteString("nothing to change while the host runs\n\n")
		return
	}

	fmt.Fprintf(b, "%d to change, until the next boot:\n\n", len(p.Changes))
	if bench := p.host.runningBench(); bench.Process != 0 {
		printLine(b, "  not now", fmt.Sprintf("a bench runs (%s): -fix changes nothing until it has ended", bench))
	}
	for i, c := range p.Changes {
		if i == 0 || p.Changes[i-1].Check != c.Check {
			printLine(b, "  "+c.Check, p.checks[c.Check].Why)
			if text := p.sideEffect(c.Check); text != "" {
				printLine(b, "          note", text)
			}
		}

		fmt.Fprintf(b, "%-*s%s\n", column, "          change", c.Setting)
		fmt.Fprintf(b, "%-*s%s -> %s\n", column, "", c.Now, c.Then)
		fmt.Fprintf(b, "%-*s%s\n", column, "          do", c.Command)
	}

	b.WriteByte('\n')
}

// sideEffect describes a side effect of the changes of a check; "" if there is none.
func (p *Plan) sideEffect(check string) string {
	h := p.host
	switch check {
	case "interrupts":
		if h.irqbalance {
			return "irqbalance runs and may move the interrupts back if the CPU is not isolated"
		}
	case "governor":
		together := h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/related_cpus", h.CPU))
		if list, err := hostinfo.ParseCPUs(strings.ReplaceAll(together, " ", ",")); err == nil && len(list) > 1 {
			return "CPUs " + hostinfo.FormatCPUs(list) + " share one frequency and one governor"
		}
	case "smt":
		return "the host loses the CPU that goes off line; " +
			"a thread bound to this CPU alone moves to another one and stays there"
	}

	return ""
}

// left prints the checks that no change of the plan corrects.
func (p *Plan) left(b *strings.Builder) {
	if len(p.Left) == 0 {
		return
	}
	b.WriteString("\nnot corrected by these changes:\n\n")
	for _, c := range p.Left {
		printLine(b, fmt.Sprintf("  %-8s%s", c.mark(), c.Name), c.Found)
		c.printRemedy(b, p.Host)
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

	b.WriteString("\nadd these options to the kernel's command line yourself, then boot:\n\n")
	for _, text := range p.Boot.Lines() {
		fmt.Fprintf(b, "    %s\n", text)
	}
	fmt.Fprintf(b, "\nmissing in the running kernel: %s\n", strings.Join(p.Boot.Lacks, " "))
	if len(p.Boot.Drop) > 0 {
		fmt.Fprintf(b, "to remove from the command line: %s\n", strings.Join(p.Boot.Drop, " "))
	}
}

// StepsText writes the results of changes, a line for each.
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

// Sum counts the steps that are done, skipped and failed.
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
