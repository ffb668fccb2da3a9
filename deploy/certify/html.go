package certify

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/check"
	"lockstep/rt/plot"
	"lockstep/rt/report"
)

//go:embed certificate.html.tmpl
var page string

// The limits of long lists on the page; the JSON has all entries.
const (
	shownLate = 100
	shownSets = 24
	shownIRQs = 4
)

// view holds a certificate and the lists of its page.
type view struct {
	*Certificate
	Latencies []latencyRow
	Late      []report.LateTick // late ticks, the latest first
	LateMore  uint64            // late ticks that Late does not list
	Sets      []check.LockCost
	SetsMore  int            // lock sets that Sets does not list
	Differ    []doctor.Check // checks that are not OK
}

// timeRow is a row of times, the worst case first.
type timeRow struct {
	Name, What string
	Ns         []int64 // max, p99.9, p99, p50
	Samples    uint64  // 0 if the time was not measured
}

// latencyRow is a row of the comparison with cyclictest.
type latencyRow struct {
	Name string
	F    *latency.Figures
}

// countRow is a row of counts.
type countRow struct {
	Name, Want string // Want is the expected count; "" for any
	Measured   bool
	N          uint64
}

// HTML returns the certificate as a page for people. The page needs no other file and no script.
func (c *Certificate) HTML() ([]byte, error) {
	t, err := template.New("certificate").Funcs(template.FuncMap{
		"us": us, "ratio": ratio, "percent": percent, "causes": causes, "join": strings.Join, "seconds": seconds,
		"megabytes": func(kB int64) string { return fmt.Sprintf("%d MB", kB/1024) },
		"period":    func(ns int64) time.Duration { return time.Duration(ns) },
	}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c.view()); err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	// Names come from files: replace control characters and invalid UTF-8.
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, bytes.ToValidUTF8(out.Bytes(), []byte(string(utf8.RuneError)))), nil
}

func (c *Certificate) view() *view {
	v := &view{Certificate: c}
	if r := c.Reference; r != nil {
		v.Latencies = slices.DeleteFunc([]latencyRow{
			{"loop, while cyclictest runs", r.Loop},
			{"cyclictest, in the same turns", r.Cyclictest},
			{"loop, without cyclictest", r.Alone},
		}, func(l latencyRow) bool { return l.F == nil })
	}

	byLatency := func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) }
	v.Late = slices.SortedFunc(slices.Values(c.Run.Ledger), byLatency)
	v.Late = v.Late[:min(len(v.Late), shownLate)]
	v.LateMore = c.Run.LateTicks - min(c.Run.LateTicks, uint64(len(v.Late)))
	if w := c.Worst; w != nil {
		v.Sets = w.Sets[:min(len(w.Sets), shownSets)]
		v.SetsMore = len(w.Sets) + w.More - len(v.Sets)
	}

	ok := func(c doctor.Check) bool { return c.Verdict == doctor.OK }
	v.Differ = slices.DeleteFunc(slices.Clone(c.Doctor.Checks), ok)
	return v
}

// Times returns the rows of times of the run.
func (c *view) Times() []timeRow {
	row := func(name, what string, s *report.Spread, d *Distribution) timeRow {
		if s == nil || d == nil {
			return timeRow{Name: name, What: what}
		}
		return timeRow{name, what, []int64{s.Max, s.P999, s.P99, s.P50}, d.Samples}
	}

	return []timeRow{
		row("Wake-up", "from the due instant of a grid point to the first instruction of its tick, missed ticks included", &c.Run.Late, c.Certificate.Late),
		row("Tick", "from the first instruction to the return of the last send: receive, step, send", &c.Run.Tick, c.Tick),
		row("Bus to bus", "from the kernel's timestamp of a valid received frame to the return of the send that answers it", c.Run.Response, c.Response),
	}
}

// Counts returns the rows of counts of the run.
func (c *view) Counts() []countRow {
	r, u, measured := c.Run, c.Run.Usage, c.Run.Usage != nil
	if !measured {
		u = &report.Usage{}
	}
	return []countRow{
		{"ticks", "", true, r.Ticks},
		{"missed ticks", "0", true, r.Missed},
		{"late ticks", "0", true, r.LateTicks},
		{"grid points without a tick after the last tick", "0", true, r.Unserved},
		{"frames received", "", true, r.RxFrames},
		{"frames lost in the receive buffer", "0", true, r.RxOverflow},
		{"invalid frames received: unknown, wrong format, too short, out of range, without a value, wrong counter or checksum", "0", true,
			r.RxUnknown + r.RxFormat + r.RxShort + r.RxBadSize + r.RxRange + r.RxInvalid + r.RxBad},
		{"frames sent", "", true, r.TxFrames},
		{"frames dropped by the bus", "0", true, r.TxDropped},
		{"frames of missed ticks, not sent", "0", true, r.TxLost},
		{"frames not sent because a value is not a number", "0", true, r.TxRefused},
		{"failed calls to a bus, and ticks while a bus was down", "0", true, r.BusErrors + r.BusDown},
		{"allocations in the ticking process", "0", measured, u.Allocs},
		{"garbage collections in the ticking process", "0", measured, u.GCCycles},
		{"page faults in the ticking process, minor", "0", measured, u.MinorFaults},
		{"page faults in the ticking process, major", "0", measured, u.MajorFaults},
	}
}

// Failed lists the reasons why the run failed; nil if it passed.
func (c *Certificate) Failed() (list []string) {
	if !c.Run.Clean {
		list = append(list, c.Run.Ended)
	}
	if c.Run.Soak != nil {
		for _, d := range c.Run.Soak.Criteria {
			if !d.Held {
				list = append(list, fmt.Sprintf("%s: expected %s; saw %s", d.What, d.Want, d.Seen))
			}
		}
	}

	return list
}

// us formats a time, ns, in µs.
func us(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e3) }

// ratio formats a ratio; "-" if it is unknown.
func ratio(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *r)
}

// percent formats a share, 0 to 1.
func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// causes describes what delayed a late tick.
func causes(e report.LateTick) string {
	list := []string{"most time in " + e.Phase}
	if e.Involuntary > 0 {
		list = append(list, fmt.Sprintf("preempted %d times", e.Involuntary))
	}
	if n := e.Minor + e.Major; n > 0 {
		list = append(list, fmt.Sprintf("%d page faults, %d of them major", n, e.Major))
	}
	byTime := func(a, b string) int { return cmp.Or(cmp.Compare(e.Taken[b], e.Taken[a]), cmp.Compare(a, b)) }
	for i, name := range slices.SortedFunc(maps.Keys(e.Taken), byTime) {
		if i == shownIRQs {
			break
		}
		list = append(list, fmt.Sprintf("%s took %.3f ms", name, float64(e.Taken[name])/1e6))
	}
	byCount := func(a, b string) int { return cmp.Or(cmp.Compare(e.IRQs[b], e.IRQs[a]), cmp.Compare(a, b)) }
	names := slices.SortedFunc(maps.Keys(e.IRQs), byCount)
	var irqs []string
	for _, name := range names[:min(len(names), shownIRQs)] {
		irqs = append(irqs, fmt.Sprintf("%s %d", name, e.IRQs[name]))
	}
	if len(irqs) > 0 {
		list = append(list, "interrupts of the CPU within 100 ms: "+strings.Join(irqs, ", "))
	}
	return strings.Join(list, "; ")
}

// histogramPlot is a plot of histograms with its caption.
type histogramPlot struct {
	Title, Text string
	SVG         template.HTML
}

// series is one histogram of a plot.
type series struct {
	name, colour string
	fill         float64 // opacity, 0 to 1
	worst        float64 // worst case, µs
	bars         []plot.Bar
}

// series converts the distribution to a series of the loop.
func (d *Distribution) series() series {
	s := series{name: "loop", colour: "#0072b2", fill: 0.18, worst: float64(d.MaxNs) / 1e3, bars: bars(d.Micros)}
	from := 1e4
	for _, b := range d.Beyond {
		to := float64(b.UpperNs+1) / 1e3
		s.bars = append(s.bars, plot.Bar{From: max(from, to*63/64), To: to, N: float64(b.N)})
		from = to
	}

	return s
}

// bars converts the classes of 1 µs of a histogram to bars.
func bars[N int64 | uint64](micros map[int]N) (list []plot.Bar) {
	for _, us := range slices.Sorted(maps.Keys(micros)) {
		list = append(list, plot.Bar{From: float64(us), To: float64(us + 1), N: float64(micros[us])})
	}
	return list
}

// Plots returns the plots of the times that have samples.
func (c *view) Plots() (list []histogramPlot) {
	add := func(title string, d *Distribution, cyclictest *latency.Figures) {
		if d == nil {
			return
		}
		text := fmt.Sprintf("%d samples in %v, classes of 1 us; both axes logarithmic", d.Samples, seconds(c.Run.SimTime))
		all := []series{d.series()}

		if cyclictest != nil {
			text += fmt.Sprintf("; cyclictest: %d samples, in its turns", cyclictest.Samples)
			if cyclictest.OffChart > 0 {
				text += fmt.Sprintf(", %d samples from 10 ms on not drawn", cyclictest.OffChart)
			}
			all = append(all, series{
				name: "cyclictest", colour: "#b04a00", worst: float64(cyclictest.Max) / 1e3, bars: bars(cyclictest.Histogram),
			})
		}

		list = append(list, histogramPlot{title, text, template.HTML(chart(all).Inline(title))})
	}

	var cyclictest *latency.Figures
	if c.Reference != nil {
		cyclictest = c.Reference.Cyclictest
	}
	add("Wake-up latency of every grid point", c.Certificate.Late, cyclictest)
	add("Tick: receive, step, send", c.Tick, nil)
	add("Bus to bus: from a frame to its answer", c.Response, nil)
	return list
}

// chart plots histograms, each with its worst case, on logarithmic axes. The axes begin at half a
// class, and a little below one count.
func chart(all []series) plot.Chart {
	const leastTime, leastCount = 0.5, 0.7
	reach, most := 100.0, 1.0
	for _, s := range all {
		reach = max(reach, 1.05*s.worst)
		for _, b := range s.bars {
			reach, most = max(reach, b.To), max(most, b.N)
		}
	}

	top := math.Pow(10, math.Ceil(math.Log10(1.5*most)))
	c := plot.Chart{
		Width: 690, Height: 240,
		X: plot.Axis{Low: leastTime, High: reach, Log: true, Format: duration},
		Y: plot.Axis{Low: leastCount, High: top, Log: true, Format: count},
	}
	for i, s := range all {
		histogram := plot.Curve{Colour: s.colour, Width: 0.9, Fill: s.fill}
		histogram.X, histogram.Y = plot.Outline(s.bars, leastCount)
		worst := plot.Curve{
			Colour: s.colour, Width: 0.9, Dash: []float64{3, 2}, X: []float64{s.worst, s.worst}, Y: []float64{leastCount, top},
		}
		c.Curves = append(c.Curves, histogram, worst)
		c.Labels = append(c.Labels, plot.Label{
			X: s.worst, Y: top * math.Pow(leastCount/top, 0.07*float64(i)), Colour: s.colour,
			Text: fmt.Sprintf("worst %s, %s", duration(s.worst), s.name), Before: s.worst > math.Sqrt(leastTime*reach),
		})
	}

	return c
}

// duration formats a time of an axis, µs.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.4g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.4g ms", us/1e3)
	}

	return fmt.Sprintf("%.4g us", us)
}

// count formats a count of an axis.
func count(n float64) string {
	if n >= 1e6 {
		return fmt.Sprintf("1e%.0f", math.Log10(n))
	}
	return fmt.Sprintf("%.0f", n)
}
