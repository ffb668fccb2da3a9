package cycle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockstep/model/units"
)

// Cycle is a target speed over time, from 0 to the end of its last phase.
type Cycle struct {
	Name   string
	Title  string
	Source string       // regulation and table, or name of the file
	Digest []byte       // SHA-256 of the file; nil: an embedded cycle
	Unit   units.Wanted // unit of its source, for people
	Target Trace
	Phases []Phase // in the order of driving, without gaps
	Band   Band
}

// Phase is a part of a cycle.
type Phase struct {
	Name       string
	Begin, End int64 // ns; Begin < End
	Parked     bool  // the engine is off and the vehicle stands: a soak
}

// Band is the tolerance of a regulation: the speed stays within Speed of the lowest and highest target
// within Time of each instant. It accepts a deviation from the band that lasts at most Longest.
type Band struct {
	Speed   float64       // m/s; >= 0
	Time    time.Duration // >= 0
	Longest time.Duration // >= 0
	Most    int           // accepted deviations in a cycle; 0: any number
	Source  string        // regulation and paragraph
}

// Figures are what a regulation states of a phase.
type Figures struct {
	Duration time.Duration
	Distance float64 // m
	Highest  float64 // highest speed, m/s
	Mean     float64 // mean speed, with stops, m/s
}

// End returns the end of the cycle, ns.
func (c *Cycle) End() int64 { return c.Phases[len(c.Phases)-1].End }

// First returns the cycle that ends with its phase n, 1 to the number of phases.
func (c *Cycle) First(n int) *Cycle {
	first := *c
	first.Phases = c.Phases[:n:n]
	end, at := first.End(), 0
	for at < len(c.Target.At) && c.Target.At[at] < end {
		at++
	}
	first.Target.At = append(c.Target.At[:at:at], end)
	first.Target.Value = append(c.Target.Value[:at:at], c.Target.Eval(end))
	return &first
}

// Figures returns the figures of the target from begin to end, ns.
func (c *Cycle) Figures(begin, end int64) Figures {
	f := Figures{Duration: time.Duration(end - begin)}
	last, v := begin, c.Target.Eval(begin)
	f.Highest = v
	add := func(at int64, next float64) { // the mean of a straight line is that of its ends
		f.Distance += float64(float64(at-last)*1e-9) * (v + next) / 2
		f.Highest = max(f.Highest, next)
		last, v = at, next
	}
	for i, at := range c.Target.At {
		if at > begin && at < end {
			add(at, c.Target.Value[i])
		}
	}
	add(end, c.Target.Eval(end))
	f.Mean = f.Distance / f.Duration.Seconds()
	return f
}

// Names returns the names of the embedded cycles.
func Names() []string {
	names := make([]string, len(embedded))
	for i, e := range embedded {
		names[i] = e.Name
	}
	return names
}

// LoadFor returns the cycle that a file names: see Load. A CSV file is searched first beside that file.
func LoadFor(file, name string) (*Cycle, error) {
	c, err := Load(filepath.Join(filepath.Dir(file), name))
	if errors.Is(err, fs.ErrNotExist) || filepath.Ext(name) != ".csv" || filepath.IsAbs(name) {
		c, err = Load(name)
	}
	return c, err
}

// Load returns the embedded cycle of a name, or reads the CSV file of that name: see Read. An error names
// the file, and the embedded cycles if the name is neither.
func Load(name string) (*Cycle, error) {
	if i := slices.IndexFunc(embedded, func(e table) bool { return e.Name == name }); i >= 0 {
		return embedded[i].cycle()
	}
	if strings.HasSuffix(name, ".csv") {
		return open(name)
	}
	return nil, fmt.Errorf("cycle: unknown cycle %q%s: give %s or a file, FILE.csv",
		name, units.Meant(name, Names()), strings.Join(Names(), ", "))
}
