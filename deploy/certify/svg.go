package certify

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/deploy/latency"
)

// Measures of a plot, in units of its viewBox.
const (
	plotLeft   = 56.0
	plotWidth  = 620.0
	plotTop    = 22.0
	plotHeight = 190.0
	plotRight  = plotLeft + plotWidth
	plotBottom = plotTop + plotHeight
)

// bar is a class of a histogram: from and to in µs.
type bar struct {
	from, to float64
	n        float64
}

// series is a histogram in a plot.
type series struct {
	Name, Class string // Class is its CSS class
	Worst       float64
	Samples     uint64
	bars        []bar
}

// plot is what the template draws; both axes are logarithmic.
type plot struct {
	Left, Right, Top, Bottom float64
	X, Y                     []mark
	Series                   []drawn
}

// mark is a line across a plot with its label.
type mark struct {
	At   float64
	Text string
}

// drawn is a series laid out.
type drawn struct {
	series
	Path   string
	At     float64 // of the worst case
	Label  string
	Anchor string
	LabelX float64
	LabelY float64
}

// series makes a series of a distribution.
func (d *Distribution) series(name, class string) series {
	s := series{Name: name, Class: class, Worst: float64(d.MaxNs) / 1e3, Samples: d.Samples}
	for _, us := range slices.Sorted(maps.Keys(d.Micros)) {
		s.bars = append(s.bars, bar{float64(us), float64(us + 1), float64(d.Micros[us])})
	}
	from := 1e4
	for _, b := range d.Beyond {
		to := float64(b.UpperNs+1) / 1e3
		s.bars = append(s.bars, bar{max(from, to*63/64), to, float64(b.N)})
		from = to
	}
	return s
}

// peerSeries makes a series of figures, as those of cyclictest; what is off their chart
// has no classes and is not drawn.
func peerSeries(f *latency.Figures, name, class string) series {
	s := series{Name: name, Class: class, Worst: float64(f.Max) / 1e3, Samples: uint64(f.Samples)}
	for _, us := range slices.Sorted(maps.Keys(f.Histogram)) {
		s.bars = append(s.bars, bar{float64(us), float64(us + 1), float64(f.Histogram[us])})
	}
	return s
}

// floors of the axes: half a class, and a little below one count.
const (
	leastTime  = 0.5
	leastCount = 0.7
)

// newPlot lays out histograms in one plot.
func newPlot(list ...series) *plot {
	reach, most := 100.0, 1.0
	for _, s := range list {
		reach = max(reach, 1.05*s.Worst)
		for _, b := range s.bars {
			reach, most = max(reach, b.to), max(most, b.n)
		}
	}
	top := math.Pow(10, math.Ceil(math.Log10(1.5*most)))
	x := func(us float64) float64 {
		return plotLeft + plotWidth*math.Log(max(us, leastTime)/leastTime)/math.Log(reach/leastTime)
	}
	y := func(n float64) float64 {
		return plotBottom - plotHeight*math.Log(n/leastCount)/math.Log(top/leastCount)
	}
	p := &plot{Left: plotLeft, Right: plotRight, Top: plotTop, Bottom: plotBottom}
	for us := 1.0; us <= reach; us *= 10 {
		p.X = append(p.X, mark{x(us), duration(us)})
	}
	for n := 1.0; n <= top; n *= 10 {
		p.Y = append(p.Y, mark{y(n), count(n)})
	}
	for i, s := range list {
		d := drawn{series: s, At: x(s.Worst), Label: fmt.Sprintf("worst %s, %s", duration(s.Worst), s.Name), LabelY: plotTop - 12 + 11*float64(i)}
		d.LabelX, d.Anchor = d.At+3, "start"
		if d.At > plotLeft+plotWidth/2 {
			d.LabelX, d.Anchor = d.At-3, "end"
		}
		d.Path = outline(s.bars, x, y)
		p.Series = append(p.Series, d)
	}
	return p
}

// outline is the path of a histogram's steps; where there are no counts it is on the
// axis.
func outline(bars []bar, x, y func(float64) float64) string {
	var path strings.Builder
	last := -1.0
	for i, b := range bars {
		if b.from != last {
			fmt.Fprintf(&path, "M%.1f %.1f", x(b.from), plotBottom)
		}
		fmt.Fprintf(&path, "V%.1fH%.1f", y(b.n), x(b.to))
		if last = b.to; i+1 == len(bars) || bars[i+1].from != last {
			fmt.Fprintf(&path, "V%.1f", plotBottom)
		}
	}
	return path.String()
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
