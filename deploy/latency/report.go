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
	"lockstep/sched"
)

// ratioText explains the ratios of a report.
const ratioText = "ratio_p50 and ratio_p99 are the medians over the rounds of the ratio of the two quantiles of a round: " +
	"a disturbance of single rounds does not change them. ratio_pooled_p50 and ratio_pooled_p99 are ratios " +
	"of the quantiles over all rounds. `against` names the counterpart."

// noLoad is the value of Report.Load without a load.
const noLoad = "none"

// ByMethod holds the figures of all methods on an idle or a loaded host.
type ByMethod struct {
	Tickers    map[string]*Figures `json:"tickers"`    // figures of lockstep's tickers by name; failed ones are absent
	Cyclictest *Figures            `json:"cyclictest"` // nil if not measured
	CTimerfd   *Figures            `json:"c_timerfd"`  // nil if not measured

	// Figures of the kernel's tracers; nil if not measured.
	TimerlatIRQ    *Figures         `json:"timerlat_irq"`    // from the expiry of a timer to its interrupt
	TimerlatThread *Figures         `json:"timerlat_thread"` // from the expiry of a timer to the thread that it wakes
	OSNoise        *OSNoise         `json:"osnoise"`
	Hardware       *HardwareLatency `json:"hwlatdetect"`
}

// all yields the measured figures in the order of methods.
func (l *ByMethod) all() iter.Seq2[*method, *Figures] {
	return func(yield func(m *method, f *Figures) bool) {
		programs := map[string]*Figures{
			methodCyclictest: l.Cyclictest, methodTimerfdC: l.CTimerfd,
			methodTimerlatIRQ: l.TimerlatIRQ, methodTimerlatThread: l.TimerlatThread,
		}
		for i := range methods {
			m := &methods[i]
			if f := cmp.Or(l.Tickers[m.name], programs[m.name]); f != nil && !yield(m, f) {
				return
			}
		}
	}
}

// Report is the result of a Measurement. Its keys do not change.
type Report struct {
	ByMethod                 // figures under load, or idle if Load is "none"
	Idle           *ByMethod `json:"idle"`
	Load           string    `json:"load"`           // description of the load; "none"
	Ratios         string    `json:"ratios"`         // explanation of the ratios
	Representative bool      `json:"representative"` // true if Reasons is empty
	Reasons        []string  `json:"reasons"`        // reasons why the figures are not those of a tuned real-time host
	Host           Host      `json:"host"`
	Period         int64     `json:"period_ns"`
	Spin           int64     `json:"spin_ns"`             // spin of the methods named _spin
	Runtime        int64     `json:"deadline_runtime_ns"` // CPU time per period of the methods named _deadline
	NotMeasured    []string  `json:"not_measured"`        // methods that the host does not allow, with the reason
	CPU            int       `json:"cpu"`
	Priority       int       `json:"priority"`
	Rounds         int       `json:"rounds"`
	Seconds        float64   `json:"seconds"` // length of all turns together, s

	Timers TimerComparison `json:"timers"` // comparison of timerfd and nanosleep
}

// JSON encodes the report for programs.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// panel is the part of the output for an idle or a loaded host.
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

// title describes the measurement in a line.
func (r *Report) title() string {
	return fmt.Sprintf("wake-up latency on CPU %d, period %v, SCHED_FIFO %d, %.4g s in %d rounds",
		r.CPU, time.Duration(r.Period), r.Priority, r.Seconds, r.Rounds)
}

// machine describes the host in a line.
func (r *Report) machine() string {
	return fmt.Sprintf("Linux %s; %s; CPUs %s", r.Host.Kernel, r.Host.Processor, r.Host.CPUs)
}

// Text writes the report for a terminal of 79 columns.
func (r *Report) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.title())
	wrap(w, "  host  ", r.machine())
	wrap(w, "  load  ", r.Load)
	wrap(w, "  spin  ", time.Duration(r.Spin).String()+" before the grid point, for methods named _spin")
	wrap(w, "  deadline  ", fmt.Sprintf("%v of %v under SCHED_DEADLINE, for methods named _deadline",
		time.Duration(r.Runtime), time.Duration(r.Period)))
	for _, text := range r.NotMeasured {
		wrap(w, "  not measured  ", text)
	}
	if !r.Representative {
		fmt.Fprint(w, "\nNOT REPRESENTATIVE of a tuned real-time host:\n")
		for _, reason := range r.Reasons {
			wrap(w, "  - ", reason)
		}
	}

	for _, p := range r.panels() {
		fmt.Fprintf(w, "\n%-21s%7s%8s%8s%9s%7s%7s%12s\n", p.title+", us", "p50", "p99", "p99.9", "max", "missed", "over 1", "ratio to C")
		for m, f := range p.all() {
			fmt.Fprintln(w, f.row(m.name))
		}

		if p.OSNoise != nil {
			wrap(w, "osnoise: ", p.OSNoise.String())
		}
		if p.Hardware != nil {
			wrap(w, "hwlatdetect: ", p.Hardware.String())
		}
	}

	fmt.Fprint(w, `
missed: grid points without a wake-up; over 1: wake-ups at least a period late;
ratio to C: p50 and p99 over those of the C program above in the list, median
over the rounds
`)
	for _, p := range r.panels() {
		p.chart(w)
	}

	_, verdict := r.Timers.Verdict(sched.Timerfd)
	fmt.Fprintln(w)
	wrap(w, "timer: ", verdict)
}

// String describes the noise in a line.
func (n *OSNoise) String() string {
	return fmt.Sprintf("%.3f %% of the CPU left in %d periods, at most %s us taken in one, %s us at once; "+
		"noises: %d hardware, %d NMI, %d interrupts, %d softirqs, %d threads",
		n.Available, n.Periods, us(n.MaxNoise), us(n.MaxSingle), n.Hardware, n.NMI, n.IRQ, n.Softirq, n.Thread)
}

// String describes the gaps in a line.
func (l *HardwareLatency) String() string {
	if l.Samples == 0 && l.Max == 0 {
		return fmt.Sprintf("no gap above %s us with interrupts off", us(l.Threshold))
	}
	return fmt.Sprintf("%d gaps above %s us with interrupts off, at most %s us", l.Samples, us(l.Threshold), us(l.Max))
}

// wrap writes a text after head in lines of at most 79 characters, unless a word is longer.
func wrap(w io.Writer, head, text string) {
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

// row formats a line of the table, 79 columns.
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

// chart draws the histograms of all methods above each other. The height of a column is the
// logarithm of the count of a class; the last bar counts the wake-ups off the chart.
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

// us formats a time, ns, in µs.
func us(ns int64) string {
	if ns >= 1e6 {
		return fmt.Sprintf("%d", (ns+500)/1000)
	}
	return fmt.Sprintf("%.1f", float64(ns)/1e3)
}

// longestP99 returns the longest p99, µs, of all methods except the naive loop.
func (p panel) longestP99() (longest float64) {
	for m, f := range p.all() {
		if m.name != methodNaive {
			longest = max(longest, float64(f.P99)/1e3)
		}
	}

	return longest
}

// classWidth returns the smallest class, µs, with which the chart shows 99 of 100 wake-ups of every
// method except the naive loop.
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

// classesOf sums the histogram in n classes of width µs; off counts the wake-ups beyond them.
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

// mostPerClass returns the largest count of n classes of width µs, or off the chart.
func (p panel) mostPerClass(width, n int) int64 {
	most := int64(1)
	for _, f := range p.all() {
		count, off := f.classesOf(width, n)
		most = max(most, off, slices.Max(count))
	}

	return most
}

// bar returns two characters, one above the other, whose height is the logarithm of n; most fills
// both.
func bar(n, most int64) (upper, lower string) {
	const eighths = " ▁▂▃▄▅▆▇█"
	level := 0
	if n > 0 {
		level = 1 + int(15*math.Log(float64(n))/math.Log(float64(max(most, 2))))
	}
	runes := []rune(eighths)
	return string(runes[max(0, min(level, 16)-8)]), string(runes[min(level, 8)])
}

// The dimensions of a panel, px.
const (
	panelHeight = 370
	chartWidth  = 710  // width of the chart of classes
	offStep     = 11.5 // distance of the bars off the chart
)

// SVG draws the histograms in classes of 1 µs with logarithmic counts. A separate bar shows the
// wake-ups off the chart with their count and the largest latency.
func (r *Report) SVG() []byte {
	s := plot.Sheet{Width: 1200, Height: 26}
	line := func(t plot.Text) {
		t.X, t.Y = 20, s.Height
		s.Texts = append(s.Texts, t)
		s.Height += 19
	}

	line(plot.Text{Size: 16, Bold: true, Text: "lockstep: " + r.title()})
	line(plot.Text{Size: 12, Text: r.machine()})
	const missed = "missed: grid points without a wake-up"
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

// chartClasses returns the number of classes of the chart: 1.5 times the longest p99 except that of
// the naive loop, at least 50, otherwise hundreds up to 500.
func (p panel) chartClasses() int {
	most := 1.5 * p.longestP99()
	if most <= 50 {
		return 50
	}
	return min(100*int(math.Ceil(most/100)), 500)
}

// charts returns the two charts of a panel at top, px: the classes, and the bars off the chart.
func (p panel) charts(top float64) []plot.Chart {
	const floor = 0.6 // a count of 1 is a little above the axis
	reach := p.chartClasses()
	decades := math.Ceil(math.Log10(float64(p.mostPerClass(1, reach))))
	counts := plot.Axis{Low: floor, High: math.Pow(10, max(decades, 1)), Log: true}

	in := plot.Chart{
		Left: 20, Top: top, Width: chartWidth, Height: panelHeight,
		X: plot.Axis{Name: "wake-up latency, classes of 1 us", High: float64(reach)}, Y: counts,
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

// blank formats an empty label that takes the space of a label.
func blank(float64) string { return " " }
