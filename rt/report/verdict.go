package report

import (
	"errors"
	"fmt"
	"io"
)

// Finding is the result of an expectation.
type Finding struct {
	Criterion
	Time    float64 `json:"time_s"`            // simulated time judged, s: of the window, until the answer, or of the run
	Skipped bool    `json:"skipped,omitempty"` // not judged, because -for shortened the run; Held is false
}

// Broken reports whether the expectation was judged and did not hold.
func (f *Finding) Broken() bool { return !f.Held && !f.Skipped }

// Verdict returns "held", "broken" or "skipped".
func (f *Finding) Verdict() string {
	if f.Skipped {
		return "skipped"
	}
	return choose(f.Held, "held", "broken")
}

// ScenarioResult is the result of a scenario.
type ScenarioResult struct {
	Scenario string    `json:"scenario"`     // name of the scenario
	File     string    `json:"file"`         // path of its file
	Pass     bool      `json:"pass"`         // no expectation was broken
	Findings []Finding `json:"expectations"` // one per expectation
}

// Text writes the result as text, one entry per expectation.
func (t *ScenarioResult) Text(w io.Writer) {
	held, skipped, width := 0, 0, len("broken")
	for _, f := range t.Findings {
		if f.Held {
			held++
		}
		if f.Skipped {
			skipped, width = skipped+1, len("skipped")
		}
	}

	fmt.Fprintf(w, "\n  scenario %s: %d of %d expectations held", t.Scenario, held, len(t.Findings))
	if skipped > 0 {
		fmt.Fprintf(w, ", %d skipped: the run is shorter than the scenario", skipped)
	}
	fmt.Fprint(w, "\n\n")
	for _, f := range t.Findings {
		fmt.Fprintf(w, "  %-*s %s\n", width, f.Verdict(), &f)
	}
}

// String formats the finding in one line, without its verdict.
func (f *Finding) String() string {
	name := f.What + ": "
	if f.What == f.Want { // expectation without a name
		name = ""
	}
	return fmt.Sprintf("%sexpected %s; saw %s", name, f.Want, f.Seen)
}

// Line formats the finding for a record, beginning with its verdict.
func (f *Finding) Line() string { return f.Verdict() + ": " + f.String() }

// choose returns good if pass holds, otherwise bad.
func choose(pass bool, good, bad string) string {
	if pass {
		return good
	}
	return bad
}

// Failed returns an error that names the broken expectations; nil without one.
func (t *ScenarioResult) Failed() error {
	var list []error
	for i := range t.Findings {
		if f := &t.Findings[i]; f.Broken() {
			list = append(list, fmt.Errorf("scenario %s: %s", t.Scenario, f))
		}
	}

	return errors.Join(list...)
}

// Verdict is the result of a soak.
type Verdict struct {
	Pass     bool        `json:"pass"`    // every criterion held
	Load     string      `json:"load"`    // load on the host during the soak
	Criteria []Criterion `json:"demands"` // criteria of the soak

	*Segments // segments of the soak; nil: the soak is one run
}

// Criterion is one line of a verdict.
type Criterion struct {
	What string `json:"what"`     // subject, such as "missed ticks"
	Want string `json:"demanded"` // required value
	Seen string `json:"seen"`     // observed value
	Held bool   `json:"held"`     // observed value meets the required value
}

// AddCriterion adds a criterion; seen is a format for args.
func (d *Verdict) AddCriterion(held bool, what, want, seen string, args ...any) {
	d.Criteria = append(d.Criteria, Criterion{what, want, fmt.Sprintf(seen, args...), held})
}

// Text writes the verdict as text, two lines or more per criterion.
func (d *Verdict) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  soak %s; load: %s\n\n", choose(d.Pass, "PASSED", "FAILED"), d.Load)
	for _, l := range d.Criteria {
		fmt.Fprintf(w, "  %-7s%-20sexpected %s\n%-29ssaw      %s\n",
			choose(l.Held, "ok", "FAILED"), l.What, l.Want, "", l.Seen)
	}
}

// Failed returns an error that names the criteria that did not hold; nil if all held.
func (d *Verdict) Failed() error {
	var list []error
	for _, l := range d.Criteria {
		if !l.Held {
			list = append(list, fmt.Errorf("soak: %s: expected %s; saw %s", l.What, l.Want, l.Seen))
		}
	}

	return errors.Join(list...)
}

// Binary counts what one version of this program ran in a soak.
type Binary struct {
	Version  string `json:"version"` // version and the first digits of the SHA-256 of the program
	Segments int    `json:"legs"`    // segments run
	Ticks    uint64 `json:"ticks"`   // ticks run
}

// Segments counts the segments of a soak.
type Segments struct {
	Done      int            `json:"legs"`        // segments that ran to their end
	Broken    int            `json:"legs_broken"` // segments of these with a broken criterion
	Cut       int            `json:"legs_cut"`    // segments interrupted by a kill; no other count includes them
	CutTime   float64        `json:"cut_s"`       // approximate simulated time of the interrupted segments, s
	Starts    int            `json:"starts"`      // starts of the soak
	Missing   float64        `json:"missing_s"`   // real time without a run between the starts, s
	Unwritten int            `json:"unwritten"`   // failed writes of the state file
	Binaries  []*Binary      `json:"binaries"`    // programs that ran the segments
	Kinds     []*SegmentKind `json:"kinds"`       // counts by kind of segment
}

// SegmentKind counts the segments of one kind.
type SegmentKind struct {
	Kind     string `json:"kind"`            // "plain", "faults" or "scenario NAME"
	Segments int    `json:"legs"`            // segments that ran to their end
	Broken   int    `json:"broken"`          // segments with a broken criterion
	Cut      int    `json:"cut"`             // interrupted segments
	Ticks    uint64 `json:"ticks"`           // ticks
	Missed   uint64 `json:"missed"`          // missed ticks
	Faults   int    `json:"faults"`          // injected faults
	First    string `json:"first,omitempty"` // first broken criterion; "": none
}

// Text writes the counts as text.
func (l *Segments) Text(w io.Writer) {
	fmt.Fprintf(w, "\n  %d legs, %d broken, %d cut (about %.1f s, not counted), from %d starts with %.1f s between them\n",
		l.Done, l.Broken, l.Cut, l.CutTime, l.Starts, l.Missing)
	for _, k := range l.Kinds {
		fmt.Fprintf(w, "  %-7s%s: %d legs, %d ticks, missed %d, %d injected faults\n",
			choose(k.Broken == 0, "ok", "FAILED"), k.Kind, k.Segments, k.Ticks, k.Missed, k.Faults)
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
