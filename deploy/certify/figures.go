package certify

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Verdict is what became of a figure.
type Verdict string

// The verdicts.
const (
	Same    Verdict = "same"
	Noise   Verdict = "within noise"
	Small   Verdict = "differs, by less than a tenth"
	Better  Verdict = "better"
	Worse   Verdict = "WORSE"
	Open    Verdict = "not judged"
	Unknown Verdict = "not measured in both"
)

// Compared is a figure of two certificates; nil where one has none.
type Compared struct {
	Name     string
	Unit     string // us, or "" of a count or a ratio
	Old, New *float64
	Verdict  Verdict
	Why      string // of the verdict, where the samples decide
}

// judged is a key that is judged, by the name that it is shown under.
type judged struct{ name, key string }

// figures lists the keys that are judged as they are shown; the end of a key says how.
var figures = slices.Concat(
	times("wake-up", "run.late_ns"),
	times("tick", "run.tick_ns"),
	times("bus to bus", "run.response_ns"),
	[]judged{
		{"dearest tick of the plant", "worst_case.dearest_ns"},
		{"ratio to cyclictest, p50", "beside.loop.ratio_p50"},
		{"ratio to cyclictest, p99", "beside.loop.ratio_p99"},
		{"missed ticks", "run.missed"},
		{"grid points not served", "run.unserved"},
		{"late ticks", "run.late_ticks"},
		{"frames not taken by the bus", "run.tx_dropped"},
		{"frames of missed ticks", "run.tx_lost"},
		{"frames refused", "run.tx_refused"},
		{"frames lost in receiving", "run.rx_overflow"},
		{"frames badly protected", "run.rx_bad"},
		{"bus errors", "run.bus_errors"},
		{"allocations", "run.allocs"},
		{"garbage collections", "run.gc_cycles"},
		{"page faults, minor", "run.page_faults_minor"},
		{"page faults, major", "run.page_faults_major"},
	})

// times are the figures of a histogram, the worst first.
func times(name, key string) []judged {
	return []judged{
		{name + ", worst", key + ".max"}, {name + ", p99.9", key + ".p999"},
		{name + ", p99", key + ".p99"}, {name + ", p50", key + ".p50"},
	}
}

// quantiles are the shares of the keys of a histogram.
var quantiles = map[string]float64{".p999": 0.999, ".p99": 0.99, ".p50": 0.5}

// side is one of two certificates.
type side struct {
	*Certificate
	facts
}

// samples are the histogram of a key of the run's times; is says whether it is one.
func (s side) samples(key string) (d *Distribution, is bool) {
	d, is = map[string]*Distribution{
		"run.late_ns": s.Late, "run.tick_ns": s.Tick, "run.response_ns": s.Response,
	}[strings.TrimSuffix(key, path.Ext(key))]
	return d, is
}

// compare judges a figure.
func (f judged) compare(old, now side) Compared {
	c := Compared{Name: f.name, Old: old.number(f.key), New: now.number(f.key)}
	a, timed := old.samples(f.key)
	b, _ := now.samples(f.key)
	if timed || strings.HasSuffix(f.key, "_ns") {
		c.Unit = "us"
	}
	if timed && a == nil { // without samples a 0 is none
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
	case strings.HasSuffix(f.key, "_ns"): // one number without samples
		c.Verdict = direction(x, y, 1.25, 0)
	default:
		c.Verdict, c.Why = judgeCounts(x, y, float64(old.Run.Ticks), float64(now.Run.Ticks))
	}

	return c
}

// What makes a difference: a chance of 1 in 1000 that it is noise, and so many standard
// deviations; a tenth; and 1 µs of a time.
const (
	chance    = 1e-3
	deviation = 3.3
	tenth     = 1.1
	leastNs   = 1e3
)

// direction is where a difference beyond the noise goes; least is what it has at least,
// in the figure's unit.
func direction(x, y, factor, least float64) Verdict {
	switch {
	case y > x*factor && y > x+least:
		return Worse
	case x > y*factor && x > y+least:
		return Better
	}

	return Small
}

// judgeQuantile compares the values around two quantiles.
func judgeQuantile(x, y, q float64, a, b *Distribution) (Verdict, string) {
	al, ah := a.around(q)
	bl, bh := b.around(q)
	if !(bl > ah || bh < al) {
		return Noise, fmt.Sprintf("%.0f to %.0f us against %.0f to %.0f us by the samples", al, ah, bl, bh)
	}
	return direction(x, y, tenth, leastNs), ""
}

// judgeLargest compares two worst cases by how many samples of one are above that of the
// other.
func judgeLargest(a, b *Distribution) (Verdict, string) {
	more, less := b, a
	if a.MaxNs > b.MaxNs {
		more, less = a, b
	}
	k := more.above(less.MaxNs)
	share := float64(more.Samples) / float64(a.Samples+b.Samples)
	if p := math.Pow(share, float64(k)); !(p < chance) {
		return Noise, fmt.Sprintf("%d of %d samples above the other's worst: chance %.2g", k, more.Samples, p)
	}
	return direction(float64(a.MaxNs), float64(b.MaxNs), tenth, leastNs), ""
}

// judgeCounts compares two counts in so many ticks.
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
	if !(z > deviation) {
		return Noise, fmt.Sprintf("%.1f standard deviations apart", max(0, z))
	}
	return direction(x/ticksX, y/ticksY, tenth, 0), ""
}

// around are the values, µs, between which a quantile lies by its samples.
func (d *Distribution) around(q float64) (low, high float64) {
	n := float64(d.Samples)
	wide := deviation * math.Sqrt(n*q*(1-q))
	low, _ = d.class(q*n - wide)
	_, high = d.class(q*n + wide)
	return low, high
}

// class is the class in which a rank lies, µs.
func (d *Distribution) class(rank float64) (lower, upper float64) {
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

// above counts the samples in the classes above a time, ns; at least 1 where the
// largest is.
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

// number is a value as the table shows it.
func (c *Compared) number(v *float64) string {
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

// ratio is new to old.
func (c *Compared) ratio() string {
	if c.Old == nil || c.New == nil || *c.Old == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", *c.New / *c.Old)
}

// verdict is it, with the reason.
func (c *Compared) verdict() string {
	if c.Why == "" {
		return string(c.Verdict)
	}
	return string(c.Verdict) + " (" + c.Why + ")"
}
