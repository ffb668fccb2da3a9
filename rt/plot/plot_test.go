package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// picture is the content of an SVG: the number of times each text occurs, and the paths by colour.
type picture struct {
	texts map[string]int
	lines map[string][][][2]float64
}

// parse reads an SVG; a coordinate that is not finite is an error.
func parse(t *testing.T, svg string) picture {
	t.Helper()
	p := picture{map[string]int{}, map[string][][][2]float64{}}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.CharData:
			p.texts[strings.TrimSpace(string(e))]++
		case xml.StartElement:
			attribute := map[string]string{}
			for _, a := range e.Attr {
				attribute[a.Name.Local] = a.Value
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
			if _, stroke, found := strings.Cut(attribute["style"], "stroke:"); found && e.Name.Local == "path" {
				colour, _, _ := strings.Cut(stroke, ";")
				p.lines[colour] = append(p.lines[colour], points(t, attribute["d"]))
			}
		}
	}
}

// points returns the corners of a path.
func points(t *testing.T, path string) (list [][2]float64) {
	t.Helper()
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == 'M' || r == 'L' || r == 'Z' }) {
		var at [2]float64
		if _, err := fmt.Sscanf(part, "%g,%g", &at[0], &at[1]); err != nil {
			t.Fatalf("path %q: %v", path, err)
		}
		list = append(list, at)
	}
	return list
}

func TestCurvesAreDrawnAtTheirCoordinates(t *testing.T) {
	c := Chart{
		Width: 600, Height: 400, Legend: 100,
		X: Axis{Name: "t, s", Low: 0, High: 100}, Y: Axis{Name: "error", Low: 1e-4, High: 1, Log: true},
		Curves: []Curve{
			{Name: "a", Colour: "#0072b2", Width: 1, X: []float64{0, 50, 100}, Y: []float64{1e-4, 1e-3, 1}},
			{Name: "b & c", Colour: "#d55e00", Width: 1, X: []float64{0, math.NaN(), 25, 75}, Y: []float64{1, 1, 0, 1e6}},
		},
		Labels: []Label{{X: 50, Y: 1e-2, Text: "worst <1>"}, {X: -7, Y: 0, Text: "outside"}},
	}
	p := parse(t, string(c.SVG()))

	a := p.lines["#0072B2"][0]
	if len(a) != 3 {
		t.Fatalf("the curve has points %v", a)
	}
	width, height := a[2][0]-a[0][0], a[2][1]-a[0][1] // upwards is positive
	if !(width > 350 && width < 500 && height > 300 && height < 400) {
		t.Errorf("the plot is %g px wide and %g px high", width, height)
	}
	if x, y := (a[1][0]-a[0][0])/width, (a[1][1]-a[0][1])/height; !scalar.EqualWithinAbs(x, 0.5, 1e-3) || !scalar.EqualWithinAbs(y, 0.25, 1e-3) {
		t.Errorf("the middle of the x axis is at %g, the first of four decades at %g", x, y)
	}
	for _, at := range p.lines["#D55E00"][0] {
		if !(at[0] >= a[0][0]-1e-3 && at[0] <= a[2][0]+1e-3 && at[1] >= a[0][1]-1e-3 && at[1] <= a[2][1]+1e-3) {
			t.Errorf("%v lies outside of the plot, whose corners are %v and %v", at, a[0], a[2])
		}
	}
	for _, want := range []string{"a", "b & c", "t, s", "error", "worst <1>", "outside", "0.0001", "0.001", "1", "100"} {
		if p.texts[want] == 0 {
			t.Errorf("no text %q in %v", want, p.texts)
		}
	}
}

func TestOutlineGoesToTheFloorBetweenSeparateBars(t *testing.T) {
	x, y := Outline([]Bar{{1, 2, 10}, {2, 3, 5}, {7, 8, 1}}, 0.5)
	want := [][2]float64{{1, 0.5}, {1, 10}, {2, 10}, {2, 5}, {3, 5}, {3, 0.5}, {math.NaN(), math.NaN()}, {7, 0.5}, {7, 1}, {8, 1}, {8, 0.5}}
	if len(x) != 1+len(want) || !math.IsNaN(x[0]) {
		t.Fatalf("%v, %v", x, y)
	}
	for i, w := range want {
		if got := [2]float64{x[i+1], y[i+1]}; got != w && !math.IsNaN(w[0]+got[0]) {
			t.Errorf("point %d is %v, want %v", i, got, w)
		}
	}
}

func TestTickLabelsHaveTheFormatOfTheirAxis(t *testing.T) {
	c := Chart{Width: 300, Height: 200, Y: Axis{High: 1, Hidden: true},
		X: Axis{Low: 0.5, High: 2e6, Log: true, Format: func(us float64) string { return fmt.Sprintf("%g us", us) }}}
	p := parse(t, c.Inline(`a "chart"`))
	for _, want := range []string{"1 us", "10 us", "1000 us", "1e+06 us"} {
		if p.texts[want] != 1 {
			t.Errorf("%q is there %d times: %v", want, p.texts[want], p.texts)
		}
	}
	if svg := c.Inline(`a "chart"`); strings.Contains(svg, "//") || !strings.Contains(svg, `aria-label="a &#34;chart&#34;"`) {
		t.Errorf("an element of a page refers to nothing outside and has a label: %.200s", svg)
	}
}

func TestSheetContainsItsTextsAndCharts(t *testing.T) {
	s := Sheet{Width: 800, Height: 300, Texts: []Text{{X: 20, Y: 26, Size: 16, Bold: true, Text: "head"}}}
	for i, colour := range []string{"#111111", "#222222"} {
		s.Charts = append(s.Charts, Chart{
			Left: 400 * float64(i), Top: 50, Width: 400, Height: 250, Title: fmt.Sprint("chart ", i), X: Axis{High: 1}, Y: Axis{High: 1},
			Curves: []Curve{{Colour: colour, Width: 1, Fill: 0.2, X: []float64{0, 1}, Y: []float64{0, 1}}},
		})
	}
	p := parse(t, string(s.SVG()))
	left, right := p.lines["#111111"][0], p.lines["#222222"][0]
	if !(left[1][0] < 400 && right[0][0] > 400 && right[1][1] <= 250) || p.texts["head"] != 1 || p.texts["chart 1"] != 1 {
		t.Errorf("curves %v and %v, texts %v", left, right, p.texts)
	}
}
