package certify

import (
	"fmt"
	"maps"
	"math"
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

// kind is how a figure is judged.
type kind int

const (
	quantile kind = iota
	largest
	counted
	single // one number without samples, ns
	quotient
)

// measure is a figure of every certificate.
type measure struct {
	name, path string
	kind       kind
	q          float64 // of a quantile
	of         func(c *Certificate) *Distribution
}

// figures lists them as they are shown.
var figures = slices.Concat(
	times("wake-up", "run.late_ns", func(c *Certificate) *Distribution { return c.Late }),
	times("tick", "run.tick_ns", func(c *Certificate) *Distribution { return c.Tick }),
	times("bus to bus", "run.response_ns", func(c *Certificate) *Distribution { return c.Response }),
	[]measure{
		{name: "dearest tick of the plant", path: "worst_case.dearest_ns", kind: single},
		{name: "ratio to cyclictest, p50", path: "beside.loop.ratio_p50", kind: quotient},
		{name: "ratio to cyclictest, p99", path: "beside.loop.ratio_p99", kind: quotient},
		{name: "missed ticks", path: "run.missed", kind: counted},
		{name: "grid points not served", path: "run.unserved", kind: counted},
		{name: "late ticks", path: "run.late_ticks", kind: counted},
		{name: "frames not taken by the bus", path: "run.tx_dropped", kind: counted},
		{name: "frames of missed ticks", path: "run.tx_lost", kind: counted},
		{name: "frames refused", path: "run.tx_refused", kind: counted},
		{name: "frames lost in receiving", path: "run.rx_overflow", kind: counted},
		{name: "frames badly protected", path: "run.rx_bad", kind: counted},
		{name: "bus errors", path: "run.bus_errors", kind: counted},
		{name: "allocations", path: "run.allocs", kind: counted},
		{name: "garbage collections", path: "run.gc_cycles", kind: counted},
		{name: "page faults, minor", path: "run.page_faults_minor", kind: counted},
		{name: "page faults, major", path: "run.page_faults_major", kind: counted},
	})

// times are the figures of a histogram, the worst first.
func times(name, path string, of func(c *Certificate) *Distribution) []measure {
	return []measure{
		{name + ", worst", path + ".max", largest, 1, of},
		{name + ", p99.9", path + ".p999", quantile, 0.999, of},
		{name + ", p99", path + ".p99", quantile, 0.99, of},
		{name + ", p50", path + ".p50", quantile, 0.5, of},
	}
}

// side is one of two certificates.
type side struct {
	*Certificate
	tree map[string]any
}

// number is the one at a path; nil where there is none.
func (s side) number(path string) *float64 {
	var at any = s.tree
	for name := range strings.SplitSeq(path, ".") {
		level, is := at.(map[string]any)
		if !is {
			return nil
		}
		at = level[name]
	}
	v, is := at.(float64)
	if !is || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// compare judges a figure.
func (m measure) compare(old, now side) Compared {
	c := Compared{Name: m.name, Old: old.number(m.path), New: now.number(m.path)}
	if m.kind != counted && m.kind != quotient {
		c.Unit = "us"
	}
	var a, b *Distribution
	if m.of != nil {
		a, b = m.of(old.Certificate), m.of(now.Certificate)
		if a == nil { // without samples a 0 is none
			c.Old = nil
		}
		if b == nil {
			c.New = nil
		}
	}
	if c.Old == nil || c.New == nil {
		c.Verdict = Unknown
		return c
	}
	x, y := *c.Old, *c.New
	switch {
	case x == y:
		c.Verdict = Same
	case m.kind == quotient:
		c.Verdict = Open
	case m.kind == single:
		c.Verdict = direction(x, y, 1.25, 0)
	case m.kind == counted:
		c.Verdict, c.Why = judgeCounts(x, y, float64(old.Run.Ticks), float64(now.Run.Ticks))
	case m.kind == largest:
		c.Verdict, c.Why = judgeLargest(a, b)
	default:
		c.Verdict, c.Why = judgeQuantile(x, y, m.q, a, b)
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
	return d.at(q*n-wide, false), d.at(q*n+wide, true)
}

// at is the end of the class in which a rank lies, µs: the upper or the lower one.
func (d *Distribution) at(rank float64, upper bool) float64 {
	sum := 0.0
	for _, us := range slices.Sorted(maps.Keys(d.Micros)) {
		if sum += float64(d.Micros[us]); sum >= rank {
			if upper {
				return float64(us + 1)
			}
			return float64(us)
		}
	}
	for _, b := range d.Beyond {
		if sum += float64(b.N); sum >= rank {
			if upper {
				return float64(b.UpperNs) / 1e3
			}
			return float64(b.UpperNs) / 1e3 * 63 / 64
		}
	}
	return float64(d.MaxNs) / 1e3
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
