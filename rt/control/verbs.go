package control

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"lockstep/model/units"
	"lockstep/rt/host"
	"lockstep/rt/scenario"
)

// verb is the first word of a request.
type verb struct {
	name      string
	arguments string // arguments in the usage; "" none
	do        func(c *Server, line string, a *Answer) error
	print     func(to io.Writer, a *Answer, when string) // prints the answer
}

// verbs are all requests, in the order of the usage. scenario.Commands interprets their arguments.
var verbs = []verb{
	{"status", "", (*Server).answerStatus, printStatus},
	{"faults", "", (*Server).answerFaults, printFaults},
	{"fault", "KEY=VALUE...", (*Server).applyChange, printChange},
	{"clear", "NAME...|all", (*Server).applyChange, printChange},
	{"set", "PORT=VALUE...", (*Server).applyChange, printChange},
	{"release", "PORT...|all", (*Server).applyChange, printChange},
	{"stop", "", (*Server).requestStop, printStop},
}

// Usage lists the requests for the usage of `lockstep ctl`.
func Usage() string {
	var list []string
	for _, v := range verbs {
		list = append(list, strings.TrimSpace(v.name+" "+v.arguments))
	}
	return strings.Join(list, " | ")
}

// findVerb returns the verb called name; nil: there is none.
func findVerb(name string) *verb {
	if i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name }); i >= 0 {
		return &verbs[i]
	}
	return nil
}

// answer executes a request line and returns the answer.
func (c *Server) answer(line string) *Answer {
	a := &Answer{OK: true}
	if err := c.execute(line, a); err != nil {
		return &Answer{Error: err.Error()}
	}
	a.Time = float64(a.Tick*c.Handover.Tables.PeriodNs) / 1e9
	return a
}

// execute executes a request line and completes the answer.
func (c *Server) execute(line string, a *Answer) error {
	words, err := scenario.ParseRequest(line)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		words = []string{""}
	}
	v := findVerb(words[0])
	switch {
	case v == nil:
		var known []string
		for _, v := range verbs {
			known = append(known, v.name)
		}
		return fmt.Errorf("unknown request %.60q%s; known are %s",
			words[0], units.Meant(words[0], known), strings.Join(known, ", "))
	case v.arguments == "" && len(words) > 1 && line != StopNow:
		return fmt.Errorf("%s takes no further words", v.name)
	case v.arguments == "":
		a.Bench, a.Process, a.Tick = c.Handover.Bench.Name, os.Getpid(), int64(c.Status.Ticks.Load())
	}

	return v.do(c, line, a)
}

// StopNow is the request to kill the target.
const StopNow = "stop now"

// requestStop asks the supervisor to end the run.
func (c *Server) requestStop(line string, _ *Answer) error {
	switch {
	case line == StopNow:
		c.stop <- Request(StopNow)
	case !c.stopRequested.Swap(true): // a second request would kill the target
		c.stop <- Request("ctl")
	}

	return nil
}

// Print writes the answer to a request as text.
func (a *Answer) Print(to io.Writer, request string) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	print := printChange // for a request that this version does not know
	if v := findVerb(request); v != nil {
		print = v.print
	}
	print(w, a, fmt.Sprintf("tick %d, %.3f s", a.Tick, a.Time))
	_ = w.Flush() // to memory
	_, err := io.WriteString(to, host.Printable(text.String()))
	return err
}

func printStatus(w io.Writer, a *Answer, when string) {
	fmt.Fprintf(w, "%s: %s; %s; missed %d, late %d; process %d\n",
		a.Bench, a.State, when, a.Missed, a.LateTicks, a.Process)
	for _, name := range slices.Sorted(maps.Keys(a.Outputs)) {
		fmt.Fprintf(w, "  %s\t%.6g\n", name, a.Outputs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Set)) {
		fmt.Fprintf(w, "  set %s\t%s\n", name, a.Set[name])
	}
}

func printFaults(w io.Writer, a *Answer, when string) {
	fmt.Fprintf(w, "%s: %s; faults: %d\n", a.Bench, when, len(a.Faults))
	for _, f := range a.Faults {
		fmt.Fprintf(w, "  %d\t%s\t%s\t%d\t%s\n", f.Slot, f.Name, f.State, f.Count, f.Spec)
	}
}

func printStop(w io.Writer, a *Answer, when string) {
	fmt.Fprintf(w, "%s: asked to stop at %s\n", a.Bench, when)
}

func printChange(w io.Writer, a *Answer, when string) {
	fmt.Fprintf(w, "in effect from %s on\n", when)
	for _, f := range a.Faults {
		fmt.Fprintf(w, "  slot %d\t%s\t%s\n", f.Slot, f.Name, f.Spec)
	}
}
