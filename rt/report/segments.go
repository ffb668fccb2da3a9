package report

import (
	"fmt"
	"io"
)

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
		fmt.Fprintf(w, "  %-7s%s: %d legs, %d ticks, missed %d, %d faults on purpose\n", legWord(k.Broken == 0), k.Kind, k.Legs, k.Ticks, k.Missed, k.Faults)
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

func legWord(held bool) string { return map[bool]string{true: "ok", false: "FAILED"}[held] }
