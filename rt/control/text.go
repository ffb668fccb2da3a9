package control

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"lockstep/rt/host"
)

// Text writes the answer to a request for people.
func (a *Answer) Text(to io.Writer, request string) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	when := fmt.Sprintf("tick %d, %.3f s", a.Tick, a.Time)
	switch request {
	case "status":
		fmt.Fprintf(w, "%s: %s; %s; missed %d, late %d; process %d\n", a.Bench, a.State, when, a.Missed, a.LateTicks, a.Process)
		for _, name := range slices.Sorted(maps.Keys(a.Outputs)) {
			fmt.Fprintf(w, "  %s\t%.6g\n", name, a.Outputs[name])
		}
	case "faults":
		fmt.Fprintf(w, "%s: %s; faults: %d\n", a.Bench, when, len(a.Faults))
		for _, f := range a.Faults {
			fmt.Fprintf(w, "  %d\t%s\t%s\t%d\t%s\n", f.Slot, f.Name, f.State, f.Count, f.Spec)
		}
	case "stop":
		fmt.Fprintf(w, "%s: asked to stop at %s\n", a.Bench, when)
	default:
		fmt.Fprintf(w, "in effect from %s on\n", when)
		for _, f := range a.Faults {
			fmt.Fprintf(w, "  slot %d\t%s\t%s\n", f.Slot, f.Name, f.Spec)
		}
	}
	_ = w.Flush() // to memory
	_, err := io.WriteString(to, host.Printable(text.String()))
	return err
}
