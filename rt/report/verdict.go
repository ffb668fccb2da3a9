package report

import (
	"errors"
	"fmt"
	"io"
)

// Finding is the result of one expectation of a scenario.
type Finding struct {
	Criterion
	Time float64 `json:"time_s"` // simulated time, s: length of the window, time to the answer, or length of the run
}

// ScenarioResult is the result of a scenario in a run.
type ScenarioResult struct {
	Scenario string    `json:"scenario"`
	File     string    `json:"file"`
	Pass     bool      `json:"pass"` // every expectation held
	Findings []Finding `json:"expectations"`
}

// Text writes the result for people, one line per expectation.
func (t *ScenarioResult) Text(w io.Writer) {
	held := 0
	for _, f := range t.Findings {
		if f.Held {
			held++
		}
	}

	fmt.Fprintf(w, "\n  scenario %s: %d of %d expectations held\n\n", t.Scenario, held, len(t.Findings))
	for _, f := range t.Findings {
		fmt.Fprintf(w, "  %-7s%s\n", passWord(f.Held, "held", "broken"), &f)
	}
}

// String formats the finding in one line, without its result.
func (f *Finding) String() string {
	name := f.What + ": "
	if f.What == f.Want { // the expectation has no name
		name = ""
	}
	return fmt.Sprintf("%sexpected %s; saw %s", name, f.Want, f.Seen)
}

// Line formats the finding with its result, as records hold it.
func (f *Finding) Line() string { return passWord(f.Held, "held", "broken") + ": " + f.String() }

// passWord returns good if pass is true, otherwise bad.
func passWord(pass bool, good, bad string) string {
	if pass {
		return good
	}
	return bad
}

// Failed returns one error per expectation that did not hold, joined; nil: all held.
func (t *ScenarioResult) Failed() error {
	var list []error
	for i := range t.Findings {
		if f := &t.Findings[i]; !f.Held {
			list = append(list, fmt.Errorf("scenario %s: %s", t.Scenario, f))
		}
	}

	return errors.Join(list...)
}

// Verdict is the result of a soak.
type Verdict struct {
	Pass     bool        `json:"pass"` // every criterion held
	Load     string      `json:"load"` // kinds of load, and their CPUs
	Criteria []Criterion `json:"demands"`

	*Segments // nil: the soak was one run
}

// Criterion is one criterion of a verdict, with its result.
type Criterion struct {
	What string `json:"what"`     // name
	Want string `json:"demanded"` // required value
	Seen string `json:"seen"`     // measured value
	Held bool   `json:"held"`
}

// AddCriterion adds a criterion; seen is a format for args.
func (d *Verdict) AddCriterion(held bool, what, want, seen string, args ...any) {
	d.Criteria = append(d.Criteria, Criterion{what, want, fmt.Sprintf(seen, args...), held})
}

// Text writes the verdict for people.
func (d *Verdict) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  soak %s; load: %s\n\n", passWord(d.Pass, "PASSED", "FAILED"), d.Load)
	for _, l := range d.Criteria {
		fmt.Fprintf(w, "  %-7s%-20sexpected %s\n%-29ssaw      %s\n", passWord(l.Held, "ok", "FAILED"), l.What, l.Want, "", l.Seen)
	}
}

// Failed returns one error per criterion that did not hold, joined; nil: all held.
func (d *Verdict) Failed() error {
	var list []error
	for _, l := range d.Criteria {
		if !l.Held {
			list = append(list, fmt.Errorf("soak: %s: expected %s; saw %s", l.What, l.Want, l.Seen))
		}
	}

	return errors.Join(list...)
}

// Binary is a version of this program that ran segments of a soak.
type Binary struct {
	Version  string `json:"version"` // with the first digits of its SHA-256
	Segments int    `json:"legs"`    // segments that ended by themselves
	Ticks    uint64 `json:"ticks"`   // ticks of these segments
}

// Segments counts the segments of a soak, over all its starts.
type Segments struct {
	Done      int            `json:"legs"`        // segments that ended by themselves
	Broken    int            `json:"legs_broken"` // of Done, segments in which a criterion did not hold
	Cut       int            `json:"legs_cut"`    // interrupted segments; no other count includes them
	CutTime   float64        `json:"cut_s"`       // simulated time of the interrupted segments, s, about
	Starts    int            `json:"starts"`      // starts of the soak
	Missing   float64        `json:"missing_s"`   // time between the starts, s
	Unwritten int            `json:"unwritten"`   // failed writes of the state file
	Binaries  []*Binary      `json:"binaries"`    // versions that ran the soak
	Kinds     []*SegmentKind `json:"kinds"`       // counts by kind of segment
}

// SegmentKind counts the segments of one kind.
type SegmentKind struct {
	Kind     string `json:"kind"`            // "plain", "faults" or "scenario NAME"
	Segments int    `json:"legs"`            // segments that ended by themselves
	Broken   int    `json:"broken"`          // of Segments, those in which a criterion did not hold
	Cut      int    `json:"cut"`             // interrupted segments
	Ticks    uint64 `json:"ticks"`           // grid points stepped
	Missed   uint64 `json:"missed"`          // grid points missed
	Faults   int    `json:"faults"`          // faults made on purpose
	First    string `json:"first,omitempty"` // first broken segment, and why
}

// Text writes the counts for people.
func (l *Segments) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  %d legs, %d broken, %d cut (about %.1f s, not counted), from %d starts with %.1f s between them\n", l.Done, l.Broken, l.Cut, l.CutTime, l.Starts, l.Missing)
	for _, k := range l.Kinds {
		fmt.Fprintf(w, "  %-7s%s: %d legs, %d ticks, missed %d, %d faults on purpose\n",
			passWord(k.Broken == 0, "ok", "FAILED"), k.Kind, k.Segments, k.Ticks, k.Missed, k.Faults)
		if k.First != "" {
			fmt.Fprintf(w, "         %s\n", k.First)
		}
	}

	for _, b := range l.Binaries {
		fmt.Fprintf(w, "  by %s: %d legs, %d ticks\n", b.Version, b.Segments, b.Ticks)
	}
	if l.Unwritten > 0 {
		fmt.Fprintf(w, "  the state file could not be written %d times\n", l.Unwritten)
	}
}
