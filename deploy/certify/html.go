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

// How much of long lists the page shows; the JSON has all.
const (
	shownLate = 100
	shownSets = 24
	shownIRQs = 4
)

// view is the certificate as the page shows it.
type view struct {
	*Certificate
	Peers    []peerRow
	Late     []report.LateTick // the latest first
	LateMore uint64            // that are not among them
	Sets     []check.LockCost
	SetsMore int
	Differ   []doctor.Check
}

// spread is a row of times, ns, the worst first.
type spread struct {
	Name, What string
	Ns         []int64 // max, p99.9, p99, p50
	Samples    uint64  // 0: none of it was measured
}

// peerRow is a row of the comparison with cyclictest.
type peerRow struct {
	Name string
	F    *latency.Figures
}

// countRow is a count: what it counts, how many, and what it should be.
type countRow struct {
	Name, Want string
	There      bool
	N          uint64
}

// HTML is the certificate for people: one page that refers to no other file and is
// readable without a script.
func (c *Certificate) HTML() ([]byte, error) {
	t, err := template.New("certificate").Funcs(template.FuncMap{
		"us": us, "ratio": ratio, "percent": percent, "cause": cause, "join": strings.Join, "seconds": seconds,
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
	// Names come from files: what is no text does not go into the page.
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, bytes.ToValidUTF8(out.Bytes(), []byte(string(utf8.RuneError)))), nil
}

func (c *Certificate) view() *view {
	v := &view{Certificate: c}
	if b := c.Beside; b != nil {
		v.Peers = slices.DeleteFunc([]peerRow{
			{"the loop, in turns with cyclictest beside it", b.Loop},
			{"cyclictest, in the same turns", b.Cyclictest},
			{"the loop, in turns without it", b.Alone},
		}, func(p peerRow) bool { return p.F == nil })
	}

	latest := func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) }
	v.Late = slices.SortedFunc(slices.Values(c.Run.Ledger), latest)
	v.Late = v.Late[:min(len(v.Late), shownLate)]
	v.LateMore = c.Run.LateTicks - min(c.Run.LateTicks, uint64(len(v.Late)))
	if w := c.Worst; w != nil {
		v.Sets = w.Sets[:min(len(w.Sets), shownSets)]
		v.SetsMore = len(w.Sets) + w.More - len(v.Sets)
	}

	fit := func(c doctor.Check) bool { return c.Verdict == doctor.OK }
	v.Differ = slices.DeleteFunc(slices.Clone(c.Doctor.Checks), fit)
	return v
}

// Spreads are the rows of times, of the run's report.
func (c *view) Spreads() []spread {
	row := func(name, what string, s *report.Spread, d *Distribution) spread {
		if s == nil || d == nil {
			return spread{Name: name, What: what}
		}
		return spread{name, what, []int64{s.Max, s.P999, s.P99, s.P50}, d.Samples}
	}

	return []spread{
		row("Wake-up", "from the instant at which a grid point was due to the first instruction of its tick, missed ticks included", &c.Run.Late, c.Certificate.Late),
		row("Tick", "from there to the return of the last send: receive, step, send", &c.Run.Tick, c.Tick),
		row("Bus to bus", "from the kernel's time of a valid frame that came in until the frames of the tick that answers it were handed to the kernel", c.Run.Response, c.Response),
	}
}

// Counts are the counts of the run.
func (c *view) Counts() []countRow {
	r, u, there := c.Run, c.Run.Usage, c.Run.Usage != nil
	if !there {
		u = &report.Usage{}
	}
	return []countRow{
		{"ticks", "", true, r.Ticks},
		{"missed ticks", "0", true, r.Missed},
		{"late ticks", "0", true, r.LateTicks},
		{"grid points not served after the last tick", "0", true, r.Unserved},
		{"frames received", "", true, r.RxFrames},
		{"frames lost in the receive buffer", "0", true, r.RxOverflow},
		{"frames received that are wrong: unknown, too short, out of range, without a value, badly protected", "0", true,
			r.RxUnknown + r.RxShort + r.RxBadSize + r.RxRange + r.RxInvalid + r.RxBad},
		{"frames sent", "", true, r.TxFrames},
		{"frames the bus did not take", "0", true, r.TxDropped},
		{"frames of missed ticks, not sent", "0", true, r.TxLost},
		{"frames not sent for a value that is no number", "0", true, r.TxRefused},
		{"calls to a bus that failed, and ticks that found it down", "0", true, r.BusErrors + r.BusDown},
		{"allocations in the ticking process", "0", there, u.Allocs},
		{"garbage collections in it", "0", there, u.GCCycles},
		{"page faults in it, minor", "0", there, u.MinorFaults},
		{"page faults in it, major", "0", there, u.MajorFaults},
	}
}

// Failed says why the run is no proof; none: it is.
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

// us is a time in µs.
func us(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e3) }

// ratio is one that may be unknown.
func ratio(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *r)
}

// percent is a share.
func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// cause says what the host had to do with a late tick.
func cause(e report.LateTick) string {
	list := []string{"most time in " + e.Phase}
	if e.Involuntary > 0 {
		list = append(list, fmt.Sprintf("its CPU was given to something else %d times", e.Involuntary))
	}
	if n := e.Minor + e.Major; n > 0 {
		list = append(list, fmt.Sprintf("%d page faults, %d of them major", n, e.Major))
	}
	most := func(a, b string) int { return cmp.Or(cmp.Compare(e.IRQs[b], e.IRQs[a]), cmp.Compare(a, b)) }
	names := slices.SortedFunc(maps.Keys(e.IRQs), most)
	var irqs []string
	for _, name := range names[:min(len(names), shownIRQs)] {
		irqs = append(irqs, fmt.Sprintf("%s %d", name, e.IRQs[name]))
	}
	if len(irqs) > 0 {
		list = append(list, "interrupts of its CPU in the 100 ms around it: "+strings.Join(irqs, ", "))
	}
	return strings.Join(list, "; ")
}

// figure is a histogram and what is under it.
type figure struct {
	Title, Text string
	SVG         template.HTML
}

// series is a histogram of one figure, in µs.
type series struct {
	name, colour string
	fill         float64 // opacity
	worst        float64
	bars         []plot.Bar
}

// series makes a series of a distribution.
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

// bars are the classes of 1 µs of a histogram.
func bars[N int64 | uint64](micros map[int]N) (list []plot.Bar) {
	for _, us := range slices.Sorted(maps.Keys(micros)) {
		list = append(list, plot.Bar{From: float64(us), To: float64(us + 1), N: float64(micros[us])})
	}
	return list
}

// Plots are the figures of what has samples.
func (c *view) Plots() (list []figure) {
	add := func(title string, d *Distribution, peer *latency.Figures) {
		if d == nil {
			return
		}
		text := fmt.Sprintf("%d samples in %v, classes of 1 us; both axes logarithmic", d.Samples, seconds(c.Run.SimTime))
		all := []series{d.series()}

		if peer != nil {
			text += fmt.Sprintf("; cyclictest: %d samples, in its turns", peer.Samples)
			if peer.OffChart > 0 {
				text += fmt.Sprintf(", of which %d, from 10 ms on, are not drawn", peer.OffChart)
			}
			all = append(all, series{
				name: "cyclictest", colour: "#b04a00", worst: float64(peer.Max) / 1e3, bars: bars(peer.Histogram),
			})
		}

		list = append(list, figure{title, text, template.HTML(chart(all).Inline(title))})
	}

	var peer *latency.Figures
	if c.Beside != nil {
		peer = c.Beside.Cyclictest
	}
	add("Wake-up: lateness of every grid point", c.Certificate.Late, peer)
	add("Tick: receive, step, send", c.Tick, nil)
	add("Bus to bus: from a frame to its answer", c.Response, nil)
	return list
}

// chart is a plot of histograms, each with its worst case; both axes are logarithmic. They
// begin at half a class, and a little below one count.
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

// duration is a time of a plot's axis.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.4g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.4g ms", us/1e3)
	}

	return fmt.Sprintf("%.4g us", us)
}

// count is a number of an axis.
func count(n float64) string {
	if n >= 1e6 {
		return fmt.Sprintf("1e%.0f", math.Log10(n))
	}
	return fmt.Sprintf("%.0f", n)
}
