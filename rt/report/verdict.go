package report

import (
	"errors"
	"fmt"
	"io"
)

// Finding is what became of an expectation.
type Finding struct {
	Demand
	Time float64 `json:"time_s"` // simulated time that was judged, s: of the window, to the answer, of the run
}

// ScenarioResult is what became of a scenario in a run.
type ScenarioResult struct {
	Scenario string    `json:"scenario"`
	File     string    `json:"file"`
	Pass     bool      `json:"pass"` // every expectation held
	Findings []Finding `json:"expectations"`
}

// Text writes the result for people, a line for each expectation.
func (t *ScenarioResult) Text(w io.Writer) {
	held := 0
	for _, f := range t.Findings {
		if f.Held {
			held++
		}
	}

	fmt.Fprintf(w, "\n  scenario %s: %d of %d expectations held\n\n", t.Scenario, held, len(t.Findings))
	for _, f := range t.Findings {
		fmt.Fprintf(w, "  %-7s%s\n", word(f.Held, "held", "broken"), &f)
	}
}

// String is the finding in one line, without how it ended.
func (f *Finding) String() string {
	name := f.What + ": "
	if f.What == f.Want { // it has no name of its own
		name = ""
	}
	return fmt.Sprintf("%swanted %s; seen %s", name, f.Want, f.Seen)
}

// Line is the finding as a record has it.
func (f *Finding) Line() string { return word(f.Held, "held", "broken") + ": " + f.String() }

// word is the word of a verdict.
func word(pass bool, good, bad string) string {
	if pass {
		return good
	}
	return bad
}

// Failed names the expectations that did not hold; nil: all did.
func (t *ScenarioResult) Failed() error {
	var list []error
	for i := range t.Findings {
		if f := &t.Findings[i]; !f.Held {
			list = append(list, fmt.Errorf("scenario %s: %s", t.Scenario, f))
		}
	}

	return errors.Join(list...)
}

// Verdict is what a soak says at its end.
type Verdict struct {
	Pass    bool     `json:"pass"` // every demand held
	Load    string   `json:"load"` // what else the host had to do
	Demands []Demand `json:"demands"`

	*Legs // of a soak that is made of legs
}

// Demand is one line of a verdict.
type Demand struct {
	What string `json:"what"`
	Want string `json:"demanded"`
	Seen string `json:"seen"`
	Held bool   `json:"held"`
}

// Demand adds a line; want and seen are what it says, held is whether they agree.
func (d *Verdict) Demand(held bool, what, want, seen string, args ...any) {
	d.Demands = append(d.Demands, Demand{what, want, fmt.Sprintf(seen, args...), held})
}

// Text writes the verdict for people.
func (d *Verdict) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  soak %s; load: %s\n\n", word(d.Pass, "PASSED", "FAILED"), d.Load)
	for _, l := range d.Demands {
		fmt.Fprintf(w, "  %-7s%-20sdemanded %s\n%-29sseen     %s\n", word(l.Held, "ok", "FAILED"), l.What, l.Want, "", l.Seen)
	}
}

// Failed names the demands that did not hold; nil: all did.
func (d *Verdict) Failed() error {
	var list []error
	for _, l := range d.Demands {
		if !l.Held {
			list = append(list, fmt.Errorf("soak: %s: demanded %s; seen %s", l.What, l.Want, l.Seen))
		}
	}

	return errors.Join(list...)
}

// Binary is a version of this program and what it has run.
type Binary struct {
	Version string `json:"version"` // and the first digits of its SHA-256
	Legs    int    `json:"legs"`
	Ticks   uint64 `json:"ticks"`
}

// Legs is what a soak is made of.
type Legs struct {
	Done      int        `json:"legs"`        // that ended by themselves
	Broken    int        `json:"legs_broken"` // of them
	Cut       int        `json:"legs_cut"`    // that were not: nothing of them is counted
	CutTime   float64    `json:"cut_s"`       // simulated time of these, about
	Starts    int        `json:"starts"`      // of the soak
	Missing   float64    `json:"missing_s"`   // time between them, s
	Unwritten int        `json:"unwritten"`   // how often the state file could not be written
	Binaries  []*Binary  `json:"binaries"`    // that ran them
	Kinds     []*LegKind `json:"kinds"`       // of legs
}

// LegKind is what became of the legs of a kind.
type LegKind struct {
	Kind   string `json:"kind"` // "plain", "faults" or "scenario NAME"
	Legs   int    `json:"legs"`
	Broken int    `json:"broken"`
	Cut    int    `json:"cut"`
	Ticks  uint64 `json:"ticks"`
	Missed uint64 `json:"missed"`
	Faults int    `json:"faults"` // on purpose
	First  string `json:"first,omitempty"`
}

// Text writes what the legs were.
func (l *Legs) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  %d legs, %d broken, %d cut (about %.1f s, not counted), from %d starts with %.1f s between them\n", l.Done, l.Broken, l.Cut, l.CutTime, l.Starts, l.Missing)
	for _, k := range l.Kinds {
		fmt.Fprintf(w, "  %-7s%s: %d legs, %d ticks, missed %d, %d faults on purpose\n",
			word(k.Broken == 0, "ok", "FAILED"), k.Kind, k.Legs, k.Ticks, k.Missed, k.Faults)
		if k.First != "" {
			fmt.Fprintf(w, "         %s\n", k.First)
		}
	}

	for _, b := range l.Binaries {
		fmt.Fprintf(w, "  by %s: %d legs, %d ticks\n", b.Version, b.Legs, b.Ticks)
	}
	if l.Unwritten > 0 {
		fmt.Fprintf(w, "  the state file could not be written %d times\n", l.Unwritten)
	}
}
