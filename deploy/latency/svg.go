package latency

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"lockstep/sched"
)

//go:embed latency.svg.tmpl
var chartTemplate string

// Measures of the chart, in pixels of the SVG.
const (
	chartLeft   = 70
	chartWidth  = 640 // of the classes
	offLeft     = chartLeft + chartWidth + 30
	offStep     = 14 // from bar to bar off the chart
	chartHeight = 300
	panelHeight = chartHeight + 100
	lineHeight  = 17
)

// What the template draws.
type (
	svgChart struct {
		Title, Machine, Load string
		Reasons              []string
		Height, LoadY        int
		ReasonsY             int
		Panels               []svgPanel
	}
	svgPanel struct {
		Title              string
		Y, Bottom          int // of its top; of the axis, from there
		Left, Width, OffX  int
		OffWidth, Legend   int
		X, Decades         []svgMark
		Methods            []svgMethod
		Unit, OffTitle     string
		OffTitleX, LegendX int
	}
	svgMark struct {
		At    float64
		Label string
	}
	svgMethod struct {
		Name, Colour, Dash, Path, Figures string
		X, Y, Height                      float64 // of the bar off the chart
		Off                               string
		LegendY                           int
	}
)

// look is how a method is drawn: the colour says which clock, the dash how it is
// used. The colours are of Okabe and Ito's palette, which the colour-blind can
// tell apart.
func look(name string) (colour, dash string) {
	switch {
	case name == peerCyclictest:
		return "#000000", ""
	case name == peerTimerfd:
		return "#d55e00", ""
	case name == naiveMethod:
		return "#cc79a7", ""
	case strings.HasPrefix(name, sched.Timerfd):
		colour = "#0072b2"
	default:
		colour = "#009e73"
	}
	switch {
	case strings.HasSuffix(name, "_spin"):
		dash = "1 2"
	case strings.HasSuffix(name, "_supervised"):
		dash = "5 2"
	}
	return colour, dash
}

// SVG draws the histograms: classes of 1 µs, logarithmic counts, and what is off
// the chart as a bar of its own with its count and the largest.
func (r *Report) SVG() ([]byte, error) {
	const head = 96
	c := svgChart{Title: "lockstep: " + r.title(), Machine: r.machine(),
		Load: fmt.Sprintf("load: %s; spin: %v; missed: grid points without a wake-up of their own", r.Load, time.Duration(r.Spin)), LoadY: 66, ReasonsY: 88}
	if !r.Representative {
		c.Reasons = append([]string{"Not representative of a tuned real-time host:"}, r.Reasons...)
	}
	y := head + lineHeight*len(c.Reasons)
	for _, p := range r.panels() {
		c.Panels = append(c.Panels, p.svg(y))
		y += panelHeight
	}
	c.Height = y
	t, err := template.New("chart").Parse(chartTemplate)
	if err != nil {
		return nil, fmt.Errorf("latency: chart: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		return nil, fmt.Errorf("latency: chart: %w", err)
	}
	return out.Bytes(), nil
}

// reach is how many classes the chart has: half as far again as 99 of 100
// wake-ups of every method but the naive loop; 50, or hundreds up to 500.
func (p panel) reach() int {
	var most float64
	for name, f := range p.all() {
		if name != naiveMethod {
			most = max(most, 1.5*float64(f.P99)/1e3)
		}
	}
	if most <= 50 {
		return 50
	}
	return min(100*int(math.Ceil(most/100)), 500)
}

// svg lays a panel out below y.
func (p panel) svg(y int) svgPanel {
	reach, all := p.reach(), p.all()
	offWidth := offStep * len(shown())
	d := svgPanel{
		Title: p.title, Y: y, Bottom: chartHeight, Left: chartLeft, Width: chartWidth, OffX: offLeft, OffWidth: offWidth,
		Unit: "lateness, classes of 1 us", OffTitle: fmt.Sprintf("off: %d us and later", reach), OffTitleX: offLeft + offWidth/2,
		LegendX: offLeft + offWidth + 24,
	}
	most := 1.0
	for _, f := range all {
		count, off := f.classesOf(1, reach)
		for _, n := range append(count, off) {
			most = max(most, float64(n))
		}
	}
	// A count of 1 is a little above the axis.
	const floor = 0.6
	top := math.Pow(10, math.Ceil(math.Log10(most)))
	height := func(n int64) float64 {
		if n <= 0 {
			return 0
		}
		return chartHeight * math.Log(float64(n)/floor) / math.Log(top/floor)
	}
	for n := int64(1); float64(n) <= top; n *= 10 {
		d.Decades = append(d.Decades, svgMark{chartHeight - height(n), fmt.Sprint(n)})
	}
	scale := float64(chartWidth) / float64(reach)
	for class := 0; class <= reach; class += reach / 10 {
		d.X = append(d.X, svgMark{chartLeft + scale*float64(class), fmt.Sprint(class)})
	}
	for i, name := range shown() {
		f := all[name]
		if f == nil {
			continue
		}
		count, off := f.classesOf(1, reach)
		m := svgMethod{Name: name, X: float64(offLeft + offStep*i + 2), Height: height(off), Y: chartHeight - height(off), LegendY: 8 + 33*len(d.Methods)}
		m.Colour, m.Dash = look(name)
		m.Path = steps(count, scale, height)
		if off > 0 {
			m.Off = fmt.Sprintf("%d, max %s", off, us(f.Max))
		}
		m.Figures = fmt.Sprintf("p50 %s, p99 %s, max %s us, missed %d", us(f.P50), us(f.P99), us(f.Max), f.Missed)
		d.Methods = append(d.Methods, m)
	}
	return d
}

// steps is the outline of a histogram as the path of an SVG; where there are no
// counts there is no line.
func steps(count []int64, scale float64, height func(int64) float64) string {
	var path strings.Builder
	for i, n := range count {
		if n == 0 {
			continue
		}
		if i == 0 || count[i-1] == 0 {
			fmt.Fprintf(&path, "M%.1f %d", chartLeft+scale*float64(i), chartHeight)
		}
		fmt.Fprintf(&path, "V%.1fH%.1f", chartHeight-height(n), chartLeft+scale*float64(i+1))
		if i+1 == len(count) || count[i+1] == 0 {
			fmt.Fprintf(&path, "V%d", chartHeight)
		}
	}
	return path.String()
}
