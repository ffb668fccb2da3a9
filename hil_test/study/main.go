// Command study compares methods of published theses with the kernel and writes tables and plots:
//
//	go run ./hil_test/study -o DIR           methods of Reiter, chapter 3, for a mass on a spring with regions
//	go run ./hil_test/study judder -o DIR    torques at which the vehicle of the judder paper shows stick-slip
//	go run ./hil_test/study rail -o DIR      methods of Gyebroszki, chapter 9, for a rail car
//	go run ./hil_test/study trains -o DIR    cost of a tick over the length of a train
//	go run ./hil_test/study peers -o DIR     accuracy and cost beside other engines, which Debian has
//
// The command is not part of the product and not a test. README.md has the conclusions.
//
// A study has an extent (its parameters), a result, and files with tables and plots. Reading order:
// main.go (the studies; files, pages, plots, plants), then study.go (spring.go, methods.go,
// report.go), judder.go (judder_vehicle.go, judder_compare.go, judder_report.go), rail.go
// (railreport.go), trains.go and peers.go.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/stat"

	"lockstep/hil_test/rig"
	"lockstep/model"
	"lockstep/model/plants"
	"lockstep/rt/plot"
)

// studies run a study by the argument of the command line and return its files.
var studies = map[string]func() files{
	"study":  func() files { return do(whole).files() },
	"judder": func() files { return doJudder(wholeJudder).files() },
	"rail":   func() files { return doRail(wholeRail).files() },
	"trains": func() files { return doTrains(wholeTrains).files() },
	"peers":  func() files { return doPeers(wholePeers).files() },
}

func main() {
	name, args := "study", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	dir := flags.String("o", "", "folder for the tables and plots")
	_ = flags.Parse(args) // ends the program at an error
	study := studies[name]
	if study == nil || *dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study [judder | rail | trains | peers] -o DIR")
		os.Exit(2)
	}

	made := study()
	if err := made.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}

	os.Stdout.Write(made[name+".md"])
}

// files are the tables and plots of a study by name.
type files map[string][]byte

func (f files) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, data := range f {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}

	return nil
}

// page is a text in Markdown, or rows of CSV.
type page struct{ bytes.Buffer }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes the head of a table.
func (p *page) table(head string) {
	p.line("%s\n|%s", head, strings.Repeat("---|", strings.Count(head, "|")-1))
}

// draw returns a chart as SVG, in the common size and with a legend.
func draw(c plot.Chart) []byte {
	c.Width, c.Height, c.Legend = 1080, 540, 330
	return c.SVG()
}

func curve(name, colour string, width float64, x, y []float64) plot.Curve {
	return plot.Curve{Name: name, Colour: colour, Width: width, X: x, Y: y}
}

// span is the range of values.
type span struct{ low, high float64 }

func newSpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

func (s *span) width() float64 { return s.high - s.low }

// bisect narrows the interval from a to b, in which past becomes true, to the width fine or to
// rounding. past is false at low and true at high.
func bisect(a, b, fine float64, past func(at float64) bool) (low, high float64) {
	for math.Abs(b-a) > fine {
		mid := a + (b-a)/2
		switch {
		case mid == a || mid == b:
			return a, b
		case past(mid):
			b = mid
		default:
			a = mid
		}
	}

	return a, b
}

// powerLaw fits e = a·h^b by least squares of the logarithms.
func powerLaw(h, e []float64) (a, b float64) {
	x, y := make([]float64, len(h)), make([]float64, len(h))
	for i := range h {
		x[i], y[i] = math.Log(h[i]), math.Log(e[i])
	}
	a, b = stat.LinearRegression(x, y, nil, false)
	return math.Exp(a), b
}

// edit replaces all occurrences of a text in a plant file.
type edit struct{ from, to string }

// system assembles an embedded plant with edits.
func system(plant string, edits ...edit) (*model.System, error) {
	text, err := plants.Read(plant)
	if err != nil {
		return nil, err
	}
	edited := string(text)
	for _, e := range edits {
		if !strings.Contains(edited, e.from) {
			return nil, fmt.Errorf("plant %s has no %q", plant, e.from)
		}
		edited = strings.ReplaceAll(edited, e.from, e.to)
	}

	return rig.Load(edited)
}

// must panics at an error: the embedded plants must be as the study expects.
func must[T any](v T, err error) T {
	if err != nil {
		panic("study: " + err.Error())
	}
	return v
}
