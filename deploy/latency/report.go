package latency

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lockstep/rt/plot"
)

// ratioText says how the ratios are made.
const ratioText = "ratio_p50 and ratio_p99 are medians over the rounds of the quotient of the two quantiles of one round, " +
	"so that a burst of another tenant in one round does not decide; ratio_pooled_p50 and ratio_pooled_p99 are quotients " +
	"of the quantiles over all rounds. The counterpart is named in `against`."

// noLoad is the text of the load where there was none.
const noLoad = "none"

// ByMethod are the figures of all methods in one state of the host.
type ByMethod struct {
	Tickers    map[string]*Figures `json:"tickers"`    // ours, by name; one that failed is not there
	Cyclictest *Figures            `json:"cyclictest"` // nil: not measured
	CTimerfd   *Figures            `json:"c_timerfd"`  // nil: not measured
}

// all yields the figures that there are, in the order of the methods.
func (l *ByMethod) all() iter.Seq2[*method, *Figures] {
	return func(yield func(m *method, f *Figures) bool) {
		peers := map[string]*Figures{peerCyclictest: l.Cyclictest, peerTimerfd: l.CTimerfd}
		for i := range methods {
			m := &methods[i]
			if f := cmp.Or(l.Tickers[m.name], peers[m.name]); f != nil && !yield(m, f) {
				return
			}
		}
	}
}

// Report is the outcome of a Measurement. Its keys do not change.
type Report struct {
	ByMethod                 // under load, or idle if Load is "none"
	Idle           *ByMethod `json:"idle"`
	Load           string    `json:"load"`           // what the load was, "none"
	Ratios         string    `json:"ratios"`         // how the ratios are made
	Representative bool      `json:"representative"` // nothing speaks against the figures
	Reasons        []string  `json:"reasons"`        // what does
	Host           Host      `json:"host"`
	Period         int64     `json:"period_ns"`
	Spin           int64     `json:"spin_ns"` // of the methods called _spin
	CPU            int       `json:"cpu"`
	Priority       int       `json:"priority"`
	Rounds         int       `json:"rounds"`
	Seconds        float64   `json:"seconds"` // all turns together
}

// JSON is the report for machines.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
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
		for m, f := range p.all() {
			fmt.Fprintln(w, f.row(m.name))
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
	most := p.mostPerClass(width, bars)
	for m, f := range p.all() {
		count, off := f.classesOf(width, bars)
		fmt.Fprintf(w, "  %s: max %s us", m.name, us(f.Max))
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

// longestP99 is the longest p99, µs, of every method but the naive loop.
func (p panel) longestP99() (longest float64) {
	for m, f := range p.all() {
		if m.name != naiveMethod {
			longest = max(longest, float64(f.P99)/1e3)
		}
	}

	return longest
}

// classWidth is the least width of a class, µs, with which 99 of 100 wake-ups of
// every method are on the chart; the naive loop is not asked.
func (p panel) classWidth() int {
	need := p.longestP99()
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

// mostPerClass is the largest count of n classes of width µs, or off them.
func (p panel) mostPerClass(width, n int) int64 {
	most := int64(1)
	for _, f := range p.all() {
		count, off := f.classesOf(width, n)
		most = max(most, off, slices.Max(count))
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

// Measures of a panel, px.
const (
	panelHeight = 370
	chartWidth  = 710 // of the chart of classes
	offStep     = 14  // from bar to bar off the chart
)

// SVG draws the histograms: classes of 1 µs, logarithmic counts, and what is off
// the chart as a bar of its own with its count and the largest.
func (r *Report) SVG() []byte {
	s := plot.Sheet{Width: 1200, Height: 26}
	line := func(t plot.Text) {
		t.X, t.Y = 20, s.Height
		s.Texts = append(s.Texts, t)
		s.Height += 19
	}

	line(plot.Text{Size: 16, Bold: true, Text: "lockstep: " + r.title()})
	line(plot.Text{Size: 12, Text: r.machine()})
	const missed = "missed: grid points without a wake-up of their own"
	line(plot.Text{Size: 12, Text: fmt.Sprintf("load: %s; spin: %v; %s", r.Load, time.Duration(r.Spin), missed)})
	if !r.Representative {
		const colour = "#b00000"
		line(plot.Text{Size: 12, Colour: colour, Text: "Not representative of a tuned real-time host:"})
		for _, reason := range r.Reasons {
			line(plot.Text{Size: 12, Colour: colour, Text: reason})
		}
	}

	for _, p := range r.panels() {
		s.Texts = append(s.Texts, plot.Text{X: 70, Y: s.Height + 20, Size: 14, Bold: true, Text: p.title})
		s.Charts = append(s.Charts, p.charts(s.Height+30)...)
		s.Height += 30 + panelHeight
	}

	return s.SVG()
}

// reach is how many classes the chart has: half as far again as 99 of 100
// wake-ups of every method but the naive loop; 50, or hundreds up to 500.
func (p panel) reach() int {
	most := 1.5 * p.longestP99()
	if most <= 50 {
		return 50
	}
	return min(100*int(math.Ceil(most/100)), 500)
}

// charts are the two charts of a panel at top, px: the classes, and what is off them.
func (p panel) charts(top float64) []plot.Chart {
	const floor = 0.6 // a count of 1 is a little above the axis
	reach := p.reach()
	decades := math.Ceil(math.Log10(float64(p.mostPerClass(1, reach))))
	counts := plot.Axis{Low: floor, High: math.Pow(10, max(decades, 1)), Log: true}

	in := plot.Chart{
		Left: 20, Top: top, Width: chartWidth, Height: panelHeight,
		X: plot.Axis{Name: "lateness, classes of 1 us", High: float64(reach)}, Y: counts,
	}
	in.Y.Name = "wake-ups, logarithmic"
	off := plot.Chart{
		Left: 20 + chartWidth, Top: top, Width: 1200 - chartWidth - 20, Height: panelHeight, Y: counts,
		X: plot.Axis{Name: fmt.Sprintf("off: %d us and later", reach), High: float64(len(methods)), Format: blank},
	}
	off.Y.Format, off.Legend = blank, off.Width-offStep*float64(len(methods))-30

	for m, f := range p.all() {
		classes, beyond := f.classesOf(1, reach)
		var bars, bar []plot.Bar
		for class, n := range classes {
			if n > 0 {
				bars = append(bars, plot.Bar{From: float64(class), To: float64(class + 1), N: float64(n)})
			}
		}

		if at := float64(len(off.Curves)); beyond > 0 {
			bar = append(bar, plot.Bar{From: at + 0.15, To: at + 0.85, N: float64(beyond)})
			off.Labels = append(off.Labels, plot.Label{
				X: at + 0.5, Y: floor, Text: fmt.Sprintf("%d, max %s", beyond, us(f.Max)), Upright: true,
			})
		}

		curve := plot.Curve{Colour: m.colour, Dash: m.dash, Width: 1.4}
		curve.X, curve.Y = plot.Outline(bars, floor)
		in.Curves = append(in.Curves, curve)

		curve.X, curve.Y = plot.Outline(bar, floor)
		curve.Width, curve.Fill, curve.Name = 1, 0.25, m.name
		curve.Note = fmt.Sprintf("p50 %s, p99 %s, max %s us, missed %d", us(f.P50), us(f.P99), us(f.Max), f.Missed)
		off.Curves = append(off.Curves, curve)
	}

	return []plot.Chart{in, off}
}

// blank keeps the room of a label.
func blank(float64) string { return " " }
