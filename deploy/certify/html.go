package certify

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/check"
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
	Length   time.Duration
	Spreads  []spread
	Plots    []figure
	Peers    []peerRow
	Counts   []countRow
	Late     []report.LateTick // the latest first
	LateMore uint64            // that are not among them
	Sets     []check.LockCost
	SetsMore int
	Differ   []doctor.Check

	PlotLeft, PlotRight, PlotTop, PlotBottom float64
}

// spread is a row of times, ns, the worst first.
type spread struct {
	Name, What string
	Ns         []int64 // max, p99.9, p99, p50
	Samples    uint64  // 0: none of it was measured
}

// figure is a plot and what is under it.
type figure struct {
	Title, Text string
	*plot
}

// peerRow is a row of the comparison with cyclictest.
type peerRow struct {
	Name           string
	F              *latency.Figures
	RatioP50, P99  *float64
	PoolP50, PoolH *float64
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
	v := &view{Certificate: c, Length: time.Duration(c.Asked.ForNs), Spreads: c.spreads(), Plots: c.plots(), Counts: c.counts(),
		PlotLeft: plotLeft, PlotRight: plotRight, PlotTop: plotTop, PlotBottom: plotBottom}
	if b := c.Beside; b != nil {
		v.Peers = append(v.Peers, peerRow{"the loop, in turns with cyclictest beside it", b.Loop, b.Loop.RatioP50, b.Loop.RatioP99, b.Loop.PooledP50, b.Loop.PooledP99})
		if b.Cyclictest != nil {
			v.Peers = append(v.Peers, peerRow{Name: "cyclictest, in the same turns", F: b.Cyclictest})
		}
		if b.Alone != nil {
			v.Peers = append(v.Peers, peerRow{Name: "the loop, in turns without it", F: b.Alone})
		}
	}
	v.Late = slices.SortedFunc(slices.Values(c.Run.Ledger), func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) })
	v.Late = v.Late[:min(len(v.Late), shownLate)]
	v.LateMore = c.Run.LateTicks - min(c.Run.LateTicks, uint64(len(v.Late)))
	if w := c.Worst; w != nil {
		v.Sets = w.Sets[:min(len(w.Sets), shownSets)]
		v.SetsMore = len(w.Sets) + w.More - len(v.Sets)
	}
	for _, check := range c.Doctor.Checks {
		if check.Verdict != doctor.OK {
			v.Differ = append(v.Differ, check)
		}
	}
	return v
}

// spreads are the rows of times, of the run's report.
func (c *Certificate) spreads() []spread {
	row := func(name, what string, s *report.Spread, d *Distribution) spread {
		if s == nil || d == nil {
			return spread{Name: name, What: what}
		}
		return spread{name, what, []int64{s.Max, s.P999, s.P99, s.P50}, d.Samples}
	}
	return []spread{
		row("Wake-up", "from the instant at which a grid point was due to the first instruction of its tick, missed ticks included", &c.Run.Late, c.Late),
		row("Tick", "from there to the return of the last send: receive, step, send", &c.Run.Tick, c.Tick),
		row("Bus to bus", "from the kernel's time of a valid frame that came in until the frames of the tick that answers it were handed to the kernel", c.Run.Response, c.Response),
	}
}

// plots are those that have samples.
func (c *Certificate) plots() (list []figure) {
	samples := func(d *Distribution) string {
		return fmt.Sprintf("%d samples in %v, classes of 1 us; both axes logarithmic", d.Samples, seconds(c.Run.SimTime))
	}
	if c.Late != nil {
		f := figure{Title: "Wake-up: lateness of every grid point", Text: samples(c.Late)}
		all := []series{c.Late.series("loop", "loop")}
		if c.Beside != nil && c.Beside.Cyclictest != nil {
			all = append(all, peerSeries(c.Beside.Cyclictest, "cyclictest", "peer"))
			f.Text += fmt.Sprintf("; cyclictest: %d samples, in its turns", c.Beside.Cyclictest.Samples)
			if n := c.Beside.Cyclictest.OffChart; n > 0 {
				f.Text += fmt.Sprintf(", of which %d, from 10 ms on, are not drawn", n)
			}
		}
		f.plot = newPlot(all...)
		list = append(list, f)
	}
	if c.Tick != nil {
		list = append(list, figure{"Tick: receive, step, send", samples(c.Tick), newPlot(c.Tick.series("loop", "loop"))})
	}
	if c.Response != nil {
		list = append(list, figure{"Bus to bus: from a frame to its answer", samples(c.Response), newPlot(c.Response.series("loop", "loop"))})
	}
	return list
}

// counts are the counts of the run.
func (c *Certificate) counts() []countRow {
	r := c.Run
	list := []countRow{
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
	}
	u, there := r.Usage, r.Usage != nil
	if !there {
		u = &report.Usage{}
	}
	return append(list,
		countRow{"allocations in the ticking process", "0", there, u.Allocs},
		countRow{"garbage collections in it", "0", there, u.GCCycles},
		countRow{"page faults in it, minor", "0", there, u.MinorFaults},
		countRow{"page faults in it, major", "0", there, u.MajorFaults})
}

// Failed says why the run is no proof; none: it is.
func (c *Certificate) Failed() (list []string) {
	if !c.Run.Clean {
		list = append(list, c.Run.Ended)
	}
	if c.Run.Soak != nil {
		for _, d := range c.Run.Soak.Demands {
			if !d.Held {
				list = append(list, fmt.Sprintf("%s: demanded %s; seen %s", d.What, d.Want, d.Seen))
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
	if e.Thrown > 0 {
		list = append(list, fmt.Sprintf("its CPU was given to something else %d times", e.Thrown))
	}
	if n := e.Minor + e.Major; n > 0 {
		list = append(list, fmt.Sprintf("%d page faults, %d of them major", n, e.Major))
	}
	names := slices.SortedFunc(maps.Keys(e.IRQs), func(a, b string) int { return cmp.Or(cmp.Compare(e.IRQs[b], e.IRQs[a]), cmp.Compare(a, b)) })
	var irqs []string
	for _, name := range names[:min(len(names), shownIRQs)] {
		irqs = append(irqs, fmt.Sprintf("%s %d", name, e.IRQs[name]))
	}
	if len(irqs) > 0 {
		list = append(list, "interrupts of its CPU in the 100 ms around it: "+strings.Join(irqs, ", "))
	}
	return strings.Join(list, "; ")
}
