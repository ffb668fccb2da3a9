package certify

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Verdict is the result of comparing a figure of two certificates.
type Verdict string

// The verdicts.
const (
	Same    Verdict = "same"
	Noise   Verdict = "within noise"
	Small   Verdict = "small difference"
	Better  Verdict = "better"
	Worse   Verdict = "WORSE"
	Open    Verdict = "not judged"
	Unknown Verdict = "not measured in both"
)

// Compared is a figure of two certificates with its verdict.
type Compared struct {
	Name     string
	Unit     string   // us for a time, ns in the values; "" for a count or a ratio
	Old, New *float64 // values; nil if a certificate does not have the figure
	Verdict  Verdict
	Why      string // reason for Noise and Small, and for a count that was 0
}

// figure is a compared figure: its name in the output and its key in facts.
type figure struct{ name, key string }

// figures lists the compared figures in the order of the output. The end of a key selects the
// rule of comparison.
var figures = slices.Concat(
	histogramFigures("wake-up", "run.late_ns"),
	histogramFigures("tick", "run.tick_ns"),
	histogramFigures("bus to bus", "run.response_ns"),
	[]figure{
		{"worst tick of the plant", "worst_case.dearest_ns"},
		{"ratio to cyclictest, p50", "beside.loop.ratio_p50"},
		{"ratio to cyclictest, p99", "beside.loop.ratio_p99"},
		{"missed ticks", "run.missed"},
		{"grid points without a tick at the end", "run.unserved"},
		{"late ticks", "run.late_ticks"},
		{"frames dropped by the bus", "run.tx_dropped"},
		{"frames of missed ticks", "run.tx_lost"},
		{"frames refused", "run.tx_refused"},
		{"frames lost in the receive buffer", "run.rx_overflow"},
		{"frames with bad counter or checksum", "run.rx_bad"},
		{"bus errors", "run.bus_errors"},
		{"allocations", "run.allocs"},
		{"garbage collections", "run.gc_cycles"},
		{"page faults, minor", "run.page_faults_minor"},
		{"page faults, major", "run.page_faults_major"},
	})

// histogramFigures returns the figures of a histogram, the worst case first.
func histogramFigures(name, key string) []figure {
	return []figure{
		{name + ", worst", key + ".max"}, {name + ", p99.9", key + ".p999"},
		{name + ", p99", key + ".p99"}, {name + ", p50", key + ".p50"},
	}
}

// quantiles maps the end of a key to the share of samples of the quantile, 0 to 1.
var quantiles = map[string]float64{".p999": 0.999, ".p99": 0.99, ".p50": 0.5}

// source is one of two compared certificates, with its facts.
type source struct {
	*Certificate
	facts
}

// samples returns the histogram of a key. ok reports whether the key belongs to a histogram; d is nil
// if the certificate does not have this histogram.
func (s source) samples(key string) (d *Distribution, ok bool) {
	d, ok = map[string]*Distribution{
		"run.late_ns": s.Late, "run.tick_ns": s.Tick, "run.response_ns": s.Response,
	}[strings.TrimSuffix(key, path.Ext(key))]
	return d, ok
}

// compare compares a figure of two certificates.
func (f figure) compare(old, now source) Compared {
	c := Compared{Name: f.name, Old: old.number(f.key), New: now.number(f.key)}
	a, timed := old.samples(f.key)
	b, _ := now.samples(f.key)
	if timed || strings.HasSuffix(f.key, "_ns") {
		c.Unit = "us"
	}
	if timed && a == nil { // the report has 0 if there are no samples
		c.Old = nil
	}
	if timed && b == nil {
		c.New = nil
	}
	if c.Old == nil || c.New == nil {
		c.Verdict = Unknown
		return c
	}

	x, y := *c.Old, *c.New
	switch q := quantiles[path.Ext(f.key)]; {
	case x == y:
		c.Verdict = Same
	case q > 0:
		c.Verdict, c.Why = judgeQuantile(x, y, q, a, b)
	case timed:
		c.Verdict, c.Why = judgeLargest(a, b)
	case strings.Contains(f.key, ".ratio_"):
		c.Verdict = Open
	case strings.HasSuffix(f.key, "_ns"): // a number without samples
		c.Verdict, c.Why = judgeSize(x, y, 1.25, 0)
	default:
		c.Verdict, c.Why = judgeCounts(x, y, float64(old.Run.Ticks), float64(now.Run.Ticks))
	}

	return c
}

// The thresholds of a difference.
const (
	maxChance     = 1e-3 // probability that noise causes the difference
	maxDeviations = 3.3  // the same in standard deviations
	maxFactor     = 1.1  // larger value over smaller value
	maxDeltaNs    = 1e3  // difference of two times, ns
)

// judgeSize judges a difference that exceeds the noise. It is Small up to factor, the larger
// value over the smaller one, or up to delta, ns.
func judgeSize(x, y, factor, delta float64) (Verdict, string) {
	small, large := min(x, y), max(x, y)
	switch {
	case !(large > small*factor):
		return Small, fmt.Sprintf("factor of %g at most", factor)
	case !(large > small+delta):
		return Small, fmt.Sprintf("%g us at most", delta/1e3)
	case y > x:
		return Worse, ""
	}

	return Better, ""
}

// judgeQuantile compares the q-quantiles x and y of a and b, ns.
func judgeQuantile(x, y, q float64, a, b *Distribution) (Verdict, string) {
	lowA, highA := a.confidence(q)
	lowB, highB := b.confidence(q)
	if !(lowB > highA || highB < lowA) {
		return Noise, fmt.Sprintf("confidence intervals overlap: %.0f to %.0f us and %.0f to %.0f us", lowA, highA, lowB, highB)
	}
	return judgeSize(x, y, maxFactor, maxDeltaNs)
}

// judgeLargest compares two worst cases by the number of samples that exceed the smaller one.
func judgeLargest(a, b *Distribution) (Verdict, string) {
	larger, smaller := b, a
	if a.MaxNs > b.MaxNs {
		larger, smaller = a, b
	}
	k := larger.above(smaller.MaxNs)
	share := float64(larger.Samples) / float64(a.Samples+b.Samples)
	if p := math.Pow(share, float64(k)); !(p < maxChance) {
		return Noise, fmt.Sprintf("%d of %d samples above the other's worst: chance %.2g", k, larger.Samples, p)
	}
	return judgeSize(float64(a.MaxNs), float64(b.MaxNs), maxFactor, maxDeltaNs)
}

// judgeCounts compares a count x in ticksX ticks with a count y in ticksY ticks.
func judgeCounts(x, y, ticksX, ticksY float64) (Verdict, string) {
	switch {
	case x == 0:
		return Worse, "it was 0"
	case y == 0:
		return Better, ""
	case !(ticksX > 0 && ticksY > 0):
		return Open, ""
	}

	all, share := x+y, ticksY/(ticksX+ticksY)
	z := (math.Abs(y-all*share) - 0.5) / math.Sqrt(all*share*(1-share))
	if !(z > maxDeviations) {
		return Noise, fmt.Sprintf("%.1f standard deviations apart", max(0, z))
	}
	return judgeSize(x/ticksX, y/ticksY, maxFactor, 0)
}

// confidence returns the confidence interval of the q-quantile, µs, maxDeviations to each side.
func (d *Distribution) confidence(q float64) (low, high float64) {
	n := float64(d.Samples)
	width := maxDeviations * math.Sqrt(n*q*(1-q))
	low, _ = d.classOf(q*n - width)
	_, high = d.classOf(q*n + width)
	return low, high
}

// classOf returns the bounds, µs, of the class that holds the sample of a rank.
func (d *Distribution) classOf(rank float64) (lower, upper float64) {
	sum := 0.0
	for _, us := range slices.Sorted(maps.Keys(d.Micros)) {
		if sum += float64(d.Micros[us]); sum >= rank {
			return float64(us), float64(us + 1)
		}
	}

	for _, b := range d.Beyond {
		if sum += float64(b.N); sum >= rank {
			upper := float64(b.UpperNs) / 1e3
			return upper * 63 / 64, upper
		}
	}

	return float64(d.MaxNs) / 1e3, float64(d.MaxNs) / 1e3
}

// above counts the samples in the classes above ns; at least 1 if the largest sample is above.
func (d *Distribution) above(ns int64) (n uint64) {
	for us, k := range d.Micros {
		if int64(us)*1000 > ns {
			n += k
		}
	}

	for _, b := range d.Beyond {
		if b.UpperNs/64*63 > ns {
			n += b.N
		}
	}

	if n == 0 && d.MaxNs > ns {
		n = 1
	}
	return n
}

// format formats a value of the figure for the table.
func (c *Compared) format(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case c.Unit == "us":
		return fmt.Sprintf("%.1f us", *v/1e3)
	case *v == math.Trunc(*v) && math.Abs(*v) < 1e15:
		return fmt.Sprintf("%.0f", *v)
	}

	return fmt.Sprintf("%.3g", *v)
}

// formatRatio formats the ratio of the new value to the old one.
func (c *Compared) formatRatio() string {
	if c.Old == nil || c.New == nil || *c.Old == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", *c.New / *c.Old)
}

// formatVerdict formats the verdict with its reason.
func (c *Compared) formatVerdict() string {
	if c.Why == "" {
		return string(c.Verdict)
	}
	return string(c.Verdict) + " (" + c.Why + ")"
}
