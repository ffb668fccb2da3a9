package latency

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"lockstep/sched"
)

// shown lists the methods as they are shown: each beside its counterpart.
func shown() []string {
	const spin, supervised = "_spin", "_supervised"
	return []string{
		peerTimerfd, sched.Timerfd, sched.Timerfd + supervised, sched.Timerfd + spin, naiveMethod,
		peerCyclictest, sched.Nanosleep, sched.Nanosleep + supervised, sched.Nanosleep + spin,
	}
}

// panel is one state of the host to be shown.
type panel struct {
	title string
	*ByMethod
}

func (r *Report) panels() []panel {
	if r.Load == noLoad {
		return []panel{{"idle", r.Idle}}
	}
	return []panel{{"idle", r.Idle}, {"under load", &r.ByMethod}}
}

// title says what was measured.
func (r *Report) title() string {
	return fmt.Sprintf("lateness of wake-ups on CPU %d every %v, SCHED_FIFO %d, %.4g s in %d rounds",
		r.CPU, time.Duration(r.Period), r.Priority, r.Seconds, r.Rounds)
}

// machine says where.
func (r *Report) machine() string {
	return fmt.Sprintf("Linux %s; %s; CPUs %s", r.Host.Kernel, r.Host.Processor, r.Host.CPUs)
}

// Text writes the report for a terminal of 79 columns.
func (r *Report) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.title())
	fold(w, "  host  ", r.machine())
	fold(w, "  load  ", r.Load)
	fold(w, "  spin  ", time.Duration(r.Spin).String()+" before the grid point, where a name says so")
	if !r.Representative {
		fmt.Fprint(w, "\nNOT REPRESENTATIVE of a tuned real-time host:\n")
		for _, reason := range r.Reasons {
			fold(w, "  - ", reason)
		}
	}
	for _, p := range r.panels() {
		fmt.Fprintf(w, "\n%-21s%7s%8s%8s%9s%7s%7s%12s\n", p.title+", us", "p50", "p99", "p99.9", "max", "missed", "over 1", "ratio to C")
		all := p.all()
		for _, name := range shown() {
			if f := all[name]; f != nil {
				fmt.Fprintln(w, f.row(name))
			}
		}
	}
	fmt.Fprint(w, `
missed: grid points without a wake-up of their own; over 1: wake-ups a period
late or more; ratio to C: of p50 and p99 to those of the C program above in the
list, the median over the rounds
`)
	for _, p := range r.panels() {
		p.chart(w)
	}
}

// fold writes a text after head in lines of at most 79 characters, unless a word
// is longer.
func fold(w io.Writer, head, text string) {
	const width = 79
	line := head
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", len(head)-1)
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// row is a line of the table, 79 columns.
func (f *Figures) row(name string) string {
	ratio := func(r *float64) string {
		switch {
		case r == nil:
			return ""
		case *r >= 100:
			return fmt.Sprintf("%.0f", *r)
		}
		return fmt.Sprintf("%.2f", *r)
	}
	line := fmt.Sprintf("%-21s%7s%8s%8s%9s%7d%7d%6s%6s", name, us(f.P50), us(f.P99), us(f.P999), us(f.Max),
		f.Missed, f.OverPeriod, ratio(f.RatioP50), ratio(f.RatioP99))
	return strings.TrimRight(line, " ")
}

// bars is the number of classes of a histogram in the terminal.
const bars = 70

// chart draws the histograms of all methods above each other: a column per class,
// its height the logarithm of the count, and a bar for all that is off the chart.
func (p panel) chart(w io.Writer) {
	width := p.classWidth()
	fmt.Fprintf(w, "\n%s: wake-ups per class of %d us, height logarithmic\n\n  ", p.title, width)
	for c := 0; c < bars; c += 10 {
		fmt.Fprintf(w, "%-10d", c*width)
	}
	fmt.Fprint(w, "us| off\n")
	all, most := p.all(), p.mostPerClass(width)
	for _, name := range shown() {
		f := all[name]
		if f == nil {
			continue
		}
		count, off := f.classesOf(width, bars)
		fmt.Fprintf(w, "  %s: max %s us", name, us(f.Max))
		if off > 0 {
			fmt.Fprintf(w, ", off the chart %d of %d", off, f.Samples)
		}
		upper, lower := "", ""
		for _, n := range count {
			u, l := bar(n, most)
			upper, lower = upper+u, lower+l
		}
		u, l := bar(off, most)
		fmt.Fprintf(w, "\n  %s  |%s\n  %s  |%s\n", upper, strings.TrimRight(" "+u, " "), lower, strings.TrimRight(" "+l, " "))
	}
}

// us is a time in µs, as a table shows it.
func us(ns int64) string {
	if ns >= 1e6 {
		return fmt.Sprintf("%d", (ns+500)/1000)
	}
	return fmt.Sprintf("%.1f", float64(ns)/1e3)
}

// classWidth is the least width of a class, µs, with which 99 of 100 wake-ups of
// every method are on the chart; the naive loop is not asked.
func (p panel) classWidth() int {
	var need float64
	for name, f := range p.all() {
		if name != naiveMethod {
			need = max(need, float64(f.P99)/1e3)
		}
	}
	for decade := 1; ; decade *= 10 {
		for _, step := range []int{1, 2, 5} {
			if width := step * decade; float64(width*bars) > need {
				return width
			}
		}
	}
}

// classesOf sums the histogram up in n classes of width µs; off is what is beyond.
func (f *Figures) classesOf(width, n int) (count []int64, off int64) {
	count, off = make([]int64, n), f.OffChart
	for class, c := range f.Histogram {
		if i := class / width; i < n {
			count[i] += c
		} else {
			off += c
		}
	}
	return count, off
}

// mostPerClass is the largest count of a class, on the chart or off it.
func (p panel) mostPerClass(width int) int64 {
	most := int64(1)
	for _, f := range p.all() {
		count, off := f.classesOf(width, bars)
		for _, n := range append(count, off) {
			most = max(most, n)
		}
	}
	return most
}

// bar is one of two characters, one above the other, whose height is the
// logarithm of n, full at most.
func bar(n, most int64) (upper, lower string) {
	const eighths = " ▁▂▃▄▅▆▇█"
	level := 0
	if n > 0 {
		level = 1 + int(15*math.Log(float64(n))/math.Log(float64(max(most, 2))))
	}
	runes := []rune(eighths)
	return string(runes[max(0, min(level, 16)-8)]), string(runes[min(level, 8)])
}
