package certify

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Comparison is what two certificates say of each other.
type Comparison struct {
	Boxes    string // how they are of different boxes; "" they are of one
	Settings []Change
	Figures  []Compared
}

// Change is something that is not as it was; "" there was none, or is none.
type Change struct{ What, Old, New string }

// Compare compares an older certificate with a newer one.
//
// A figure is worse where three things hold: it is larger; its difference is beyond the
// noise of the samples, at a chance of 1 in 1000 with samples that do not depend on each
// other; and it is more than a tenth, a time also more than 1 µs. The noise:
//
//	a quantile   the values of the ranks around it, ±3.3·√(n·q·(1-q)), do not meet
//	a worst case k samples of the new one above the old worst would by chance be all in the
//	             new one: (new/(old+new))^k
//	a count      3.3 standard deviations of its share of both counts, by ticks; one that
//	             was 0 and is not any more is worse whatever its size
//
// The dearest tick of the plant, which has no samples, is worse from a quarter on. Ratios
// to cyclictest are shown and not judged: their parts are.
func Compare(old, now *Certificate) (*Comparison, error) {
	a, err := facts(old)
	if err != nil {
		return nil, err
	}
	b, err := facts(now)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Boxes: boxes(old, now)}
	before, after := old.settings(), now.settings()
	for _, what := range union(before, after) {
		if x, y := before[what], after[what]; x != y {
			c.Settings = append(c.Settings, Change{what, x, y})
		}
	}
	for _, f := range figures {
		c.Figures = append(c.Figures, f.compare(side{old, a}, side{now, b}))
	}
	return c, nil
}

// facts is a certificate as JSON has it: what is not there is not 0.
func facts(c *Certificate) (tree map[string]any, err error) {
	text := c.text
	if text == nil {
		if text, err = json.Marshal(c); err != nil {
			return nil, fmt.Errorf("certify: %w", err)
		}
	}
	return tree, json.Unmarshal(text, &tree)
}

// boxes says how two certificates are of different boxes.
func boxes(old, now *Certificate) string {
	a, b := old.Box, now.Box
	if a.ID == b.ID && a.Board == b.Board && a.Processor == b.Processor && (a.ID != "" || a.Name == b.Name) {
		return ""
	}
	say := func(c *Certificate) string {
		return fmt.Sprintf("%s (%s)", c.Box.Name, strings.Join(slices.DeleteFunc([]string{c.Box.Board, c.Box.Processor, c.Box.ID}, func(s string) bool { return s == "" }), ", "))
	}
	return fmt.Sprintf("the old one is of %s, the new one of %s", say(old), say(now))
}

// passing matches what a check of the doctor finds and is another every time.
var passing = regexp.MustCompile(` ?\(\d+ so far\)| \d+ (?:FIFO|RR)`)

// settings are the host's, what was asked for and what ran, by name.
func (c *Certificate) settings() map[string]string {
	b, d, v := c.Box, c.Doctor.Host, c.Versions
	m := map[string]string{
		"host": b.Name, "board": b.Board, "firmware": b.Firmware, "processor": b.Processor, "microcode": b.Microcode,
		"cores": fmt.Sprint(b.Cores), "CPUs": b.CPUs, "MHz": fmt.Sprint(b.MHz), "memory": fmt.Sprintf("%d MB", b.MemoryKB/1024),
		"Linux": b.Kernel, "command line": b.Cmdline, "isolated CPUs": b.Isolated, "governor of the loop's CPU": b.Governor,
		"idle driver": b.Idle, "clock": b.Clock, "hypervisor": b.Hypervisor, "container": b.Container,
		"CPU of the loop": fmt.Sprint(d.CPU), "scheduler of the loop": c.Scheduler(), "timer": d.Timer,
		"bench": c.Asked.Bench, "length": time.Duration(c.Asked.ForNs).String(), "cut short": c.CutShort,
		"buses": fmt.Sprint(c.Buses), "unit on": c.Asked.UnitBus, "load": fmt.Sprint(c.Asked.Load), "best effort": fmt.Sprint(c.Run.BestEffort),
		"kernel of the plant": c.Asked.Kernel, "representative": fmt.Sprint(c.Representative),
		"period": time.Duration(c.Run.StepNs).String(), "overrun policy": c.Run.Overrun,
		"lockstep": v.Lockstep, "Go": v.Go + " " + v.Arch, "binary": v.Binary,
	}
	for _, card := range b.CAN {
		m["CAN "+card.Interface] = card.String()
	}
	for _, f := range v.Files {
		m[f.Role+" "+f.Name] = f.SHA256
	}
	for _, check := range c.Doctor.Checks {
		m["doctor: "+check.Name] = fmt.Sprintf("%s: %s", check.Verdict, passing.ReplaceAllString(check.Found, ""))
	}
	return m
}

// union are the keys of both, sorted.
func union(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// Worse lists the figures that are.
func (c *Comparison) Worse() (list []Compared) {
	for _, f := range c.Figures {
		if f.Verdict == Worse {
			list = append(list, f)
		}
	}
	return list
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) {
	if c.Boxes != "" {
		fmt.Fprintf(w, "DIFFERENT BOXES: %s\n\n", c.Boxes)
	}
	for _, s := range c.Settings {
		fmt.Fprintf(w, "  %s\n    was  %s\n    is   %s\n", s.What, said(s.Old), said(s.New))
	}
	if len(c.Settings) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  %-38s%12s%12s%8s\n", "", "old", "new", "ratio")
	for _, f := range c.Figures {
		fmt.Fprintf(w, "  %-38s%12s%12s%8s  %s\n", f.Name, f.number(f.Old), f.number(f.New), f.ratio(), f.verdict())
	}
	switch worse := len(c.Worse()); {
	case worse > 0:
		fmt.Fprintf(w, "\n%d figures are worse\n", worse)
	case len(c.Settings) == 0 && !slices.ContainsFunc(c.Figures, func(f Compared) bool { return f.Verdict != Same && f.Verdict != Unknown }):
		fmt.Fprint(w, "\nnothing changed\n")
	default:
		fmt.Fprint(w, "\nno figure is worse\n")
	}
}

// said is a setting that may be none.
func said(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
