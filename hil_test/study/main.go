// Command study compares ways to step a mass on a spring with regions, those of Reiter,
// chapter 3 (000), and of the kernel, and writes tables and plots:
//
//	go run ./hil_test/study -o DIR
//
// and, with judder, looks for the torques at which the vehicle of the judder paper (001)
// sticks and slips:
//
//	go run ./hil_test/study judder -o DIR
//
// and, with rail, compares ways to step a rail car, those of Gyebroszki, chapter
// 9 (003), and of the kernel:
//
//	go run ./hil_test/study rail -o DIR
//
// and, with trains, measures what ticks cost over the length of a train:
//
//	go run ./hil_test/study trains -o DIR
//
// It is not part of the product, and not a test. README.md in its folder has the conclusions;
// model/kernel/METHOD.md names the papers.
//
// A study has an extent (how much of it is run), results, and the files made of them. Reading order: main.go (the studies; files, pages, plots, plants), then study.go (spring.go,
// methods.go, report.go), judder.go (judder_vehicle.go, judder_compare.go, judder_report.go), rail.go
// (railreport.go) and trains.go.
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

// studies make their files by the word of the command line.
var studies = map[string]func() files{
	"study":  func() files { return do(whole).files() },
	"judder": func() files { return doJudder(wholeJudder).files() },
	"rail":   func() files { return doRail(wholeRail).files() },
	"trains": func() files { return doTrains(wholeTrains).files() },
}

func main() {
	name, args := "study", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	dir := flags.String("o", "", "folder for the tables and plots")
	_ = flags.Parse(args) // it ends the program
	study := studies[name]
	if study == nil || *dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study [judder | rail | trains] -o DIR")
		os.Exit(2)
	}

	made := study()
	if err := made.write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}

	os.Stdout.Write(made[name+".md"])
}

// files are what a study leaves: tables and plots by name.
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

// table begins a table; head is its first row.
func (p *page) table(head string) {
	p.line("%s\n|%s", head, strings.Repeat("---|", strings.Count(head, "|")-1))
}

// draw draws a chart in the size of all, with the names of its curves.
func draw(c plot.Chart) []byte {
	c.Width, c.Height, c.Legend = 1080, 540, 330
	return c.SVG()
}

func curve(name, colour string, width float64, x, y []float64) plot.Curve {
	return plot.Curve{Name: name, Colour: colour, Width: width, X: x, Y: y}
}

// span is what values reach from and to.
type span struct{ low, high float64 }

func newSpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

func (s *span) width() float64 { return s.high - s.low }

// bisect narrows where past becomes true between a and b down to fine, or to rounding: it is
// not at low, it is at high.
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

// edit replaces a part of a plant's text wherever it is.
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

// must ends the program where a plant is not as the study takes it to be: the plants are ours.
func must[T any](v T, err error) T {
	if err != nil {
		panic("study: " + err.Error())
	}
	return v
}
