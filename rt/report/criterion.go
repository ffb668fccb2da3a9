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

// Trial is what became of a scenario in a run.
type Trial struct {
	Scenario string    `json:"scenario"`
	File     string    `json:"file"`
	Pass     bool      `json:"pass"` // every expectation held
	Findings []Finding `json:"expectations"`
}

// Text writes the trial for people, a line for each expectation.
func (t *Trial) Text(w io.Writer) {
	held := 0
	for _, f := range t.Findings {
		if f.Held {
			held++
		}
	}
	fmt.Fprintf(w, "\n  scenario %s: %d of %d expectations held\n\n", t.Scenario, held, len(t.Findings))
	for _, f := range t.Findings {
		fmt.Fprintf(w, "  %-7s%s\n", verdictWord(f.Held), &f)
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
func (f *Finding) Line() string { return verdictWord(f.Held) + ": " + f.String() }

func verdictWord(held bool) string { return map[bool]string{true: "held", false: "broken"}[held] }

// Failed names the expectations that did not hold; nil: all did.
func (t *Trial) Failed() error {
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
	word := "PASSED"
	if !d.Pass {
		word = "FAILED"
	}
	fmt.Fprintf(w, "\n  soak %s; load: %s\n\n", word, d.Load)
	for _, l := range d.Demands {
		word := "ok"
		if !l.Held {
			word = "FAILED"
		}
		fmt.Fprintf(w, "  %-7s%-20sdemanded %s\n%-29sseen     %s\n", word, l.What, l.Want, "", l.Seen)
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
