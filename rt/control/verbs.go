package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"lockstep/model/units"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
	"lockstep/rt/network"
)

// verb is the first word of a request of `lockstep ctl`.
type verb struct {
	name      string
	arguments string // arguments in the usage; "" none
	about     string // of a command of the run; "": the request changes nothing
	call      func(words []string, o *Options) (call, error)
	answer    func() printable // new answer; nil: a stream
}

// call is an HTTP request.
type call struct {
	method, path string
	body         any // nil: none
}

// printable is an answer that prints itself as text.
type printable interface{ print(to io.Writer) }

// Options are the settings of a request of `lockstep ctl`.
type Options struct {
	JSON   bool      // print the answer as lines of JSON
	Every  string    // interval of watch: "tick" or a time; "": 100ms
	Delete bool      // of snapshot: delete it
	Out    io.Writer // output of the answer
}

// verbs are all requests, in the order of the usage. The run interprets their arguments.
var verbs = []verb{
	{"status", "", "", plain("/status"), func() printable { return &statusAnswer{} }},
	{"list", "", "", plain("/description"), func() printable { return &Description{} }},
	{"get", "SIGNAL...", "", named("/values"), func() printable { return &Values{} }},
	{"watch", "SIGNAL...", "", named("/stream"), nil},
	{"faults", "", "", plain("/faults"), func() printable { return &faultsAnswer{} }},
	{"fault", "KEY=VALUE...", "start a fault", arguments, newChange},
	{"clear", "NAME...|all", "end faults", names("/clear"), newChange},
	{"set", "PORT=VALUE...", "set inputs that no bus drives, and signals of the restbus", set, newChange},
	{"release", "PORT...|all", "end the effect of set", names("/release"), newChange},
	{"param", "NAME=VALUE...", "change parameters of the plant", param, newChange},
	{"snapshot", "[-delete] NAME", "store the state of the plant, or delete a stored one", snapshot, newChange},
	{"reset", "[NAME]", "return the plant to its start, or to a snapshot", reset, newChange},
	{"ignition", "STATE", "enter a state of the ignition: off, standby, ignition, crank, run; on is run", switchTo("/ignition"), newChange},
	{"power", "on|off|VOLTAGE", "switch the supply of the unit under test", switchTo("/power"), newChange},
	{"record", "on FILE|off", "start or end a record", recordSwitch, newChange},
	{"mark", "TEXT", "put a text into the record at a tick", mark, newChange},
	{"uds", "COMMAND...", "diagnose the control unit", uds, func() printable { return &diagnosisAnswer{} }},
	{"advance", "TIME", "advance a run in virtual time", advance, func() printable { return &advanceAnswer{} }},
	{"stop", "", "end the run", stop, func() printable { return &stopAnswer{} }},
}

// Usage lists the requests for the usage of `lockstep ctl`.
func Usage() string {
	var list []string
	for _, v := range verbs {
		list = append(list, strings.TrimSpace(v.name+" "+v.arguments))
	}
	return strings.Join(list, " | ")
}

// prepare returns the verb of a request and its HTTP request.
func prepare(words []string, o *Options) (*verb, call, error) {
	if slices.ContainsFunc(words, func(w string) bool { return !utf8.ValidString(w) }) {
		return nil, call{}, errors.New("the request is not UTF-8") // JSON would replace what is not
	}
	name, arguments := "", []string{}
	if len(words) > 0 {
		name, arguments = words[0], words[1:]
	}
	var known []string
	for i := range verbs {
		if known = append(known, verbs[i].name); verbs[i].name != name {
			continue
		}
		if o.Every != "" && name != "watch" {
			return nil, call{}, fmt.Errorf("%s takes no -every; watch does", name)
		}
		if o.Delete && name != "snapshot" {
			return nil, call{}, fmt.Errorf("%s takes no -delete; snapshot does", name)
		}
		c, err := verbs[i].call(arguments, o)
		if err != nil {
			err = fmt.Errorf("%s %w", name, err)
		}
		return &verbs[i], c, err
	}
	return nil, call{}, fmt.Errorf("unknown request %.60q%s; known are %s", name, units.Meant(name, known), strings.Join(known, ", "))
}

var errFurtherWords = errors.New("takes no further words")

// plain returns the call of a request without arguments.
func plain(path string) func([]string, *Options) (call, error) {
	return func(words []string, _ *Options) (call, error) {
		if len(words) > 0 {
			return call{}, errFurtherWords
		}
		return call{"GET", path, nil}, nil
	}
}

// named returns the call of a request whose arguments are signals.
func named(path string) func([]string, *Options) (call, error) {
	return func(words []string, o *Options) (call, error) {
		if len(words) == 0 {
			return call{}, errors.New("needs the name of a signal; list names all")
		}
		query := url.Values{"signal": words}
		if path == "/stream" {
			if o.Every == "" {
				o.Every = "100ms"
			}
			query.Set("every", o.Every)
		}
		return call{"GET", path + "?" + query.Encode(), nil}, nil
	}
}

func names(path string) func([]string, *Options) (call, error) {
	return func(words []string, _ *Options) (call, error) { return call{"POST", path, NamesRequest{words}}, nil }
}

func arguments(words []string, _ *Options) (call, error) {
	return call{"POST", "/fault", FaultRequest{words}}, nil
}

func mark(words []string, _ *Options) (call, error) {
	return call{"POST", "/mark", MarkRequest{strings.Join(words, " ")}}, nil
}

func uds(words []string, _ *Options) (call, error) {
	return call{"POST", "/uds", diagnosis.UnitRequest{Words: words}}, nil
}

func recordSwitch(words []string, _ *Options) (call, error) {
	switch on := len(words) == 2; {
	case len(words) == 1 && words[0] == "off":
		return call{"POST", "/record", RecordRequest{On: &on}}, nil
	case on && words[0] == "on":
		file, err := filepath.Abs(words[1])
		return call{"POST", "/record", RecordRequest{On: &on, File: file}}, err
	}
	return call{}, errors.New("takes on and a file, or off")
}

func snapshot(words []string, o *Options) (call, error) {
	if len(words) != 1 {
		return call{}, errors.New("needs one name")
	}
	return call{"POST", "/snapshot", SnapshotRequest{words[0], o.Delete}}, nil
}

func reset(words []string, _ *Options) (call, error) {
	if len(words) > 1 {
		return call{}, errors.New("takes the name of one snapshot, or none for the start")
	}
	return call{"POST", "/reset", ResetRequest{strings.Join(words, "")}}, nil
}

// switchTo returns the call of a request to switch something.
func switchTo(path string) func([]string, *Options) (call, error) {
	return func(words []string, _ *Options) (call, error) {
		return call{"POST", path, network.SwitchRequest{State: strings.Join(words, " ")}}, nil
	}
}

func advance(words []string, _ *Options) (call, error) {
	if len(words) == 0 {
		return call{}, errors.New("needs a time, such as 100ms")
	}
	return call{"POST", "/advance", AdvanceRequest{strings.Join(words, " ")}}, nil
}

func set(words []string, _ *Options) (call, error) {
	values, err := assignments(words, "PORT=VALUE")
	return call{"POST", "/set", SetRequest{values}}, err
}

func param(words []string, _ *Options) (call, error) {
	values, err := assignments(words, "NAME=VALUE")
	return call{"POST", "/param", ParamRequest{values}}, err
}

// assignments returns the values of words that have a form.
func assignments(words []string, form string) (map[string]any, error) {
	values := map[string]any{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%.60q is not %s", w, form)
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("%s is set twice", name)
		}
		values[name] = value
	}
	return values, nil
}

func stop(words []string, _ *Options) (call, error) {
	s := StopRequest{}
	for _, w := range words {
		switch w {
		case "now":
			s.Now = true
		case "wait":
			s.Wait = true
		default:
			return call{}, errFurtherWords
		}
	}
	return call{"POST", "/stop", s}, nil
}

// The answers with their texts.
type (
	statusAnswer  struct{ Answer }
	faultsAnswer  struct{ Answer }
	changeAnswer  struct{ Answer }
	advanceAnswer struct{ Answer }
	stopAnswer    struct{ Answer }
)

func newChange() printable { return &changeAnswer{} }

// when formats the tick of an answer.
func (a *Answer) when() string { return fmt.Sprintf("tick %d, %.3f s", a.Tick, a.Time) }

func (a *statusAnswer) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s; %s; missed %d, late %d; process %d\n",
		a.Bench, a.State, a.when(), a.Missed, a.LateTicks, a.Process)
	for _, name := range slices.Sorted(maps.Keys(a.Outputs)) {
		fmt.Fprintf(w, "  %s\t%.6g\n", name, a.Outputs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Set)) {
		fmt.Fprintf(w, "  set %s\t%s\n", name, a.Set[name])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Parameters)) {
		fmt.Fprintf(w, "  param %s\t%s\n", name, a.Parameters[name])
	}
	for _, v := range a.Snapshots {
		fmt.Fprintf(w, "  snapshot %s\ttick %d, %.3f s\n", v.Name, v.Tick, v.Time)
	}
	if a.Ignition != "" {
		fmt.Fprintf(w, "  ignition %s\n", a.Ignition)
	}
	if a.Record != "" {
		fmt.Fprintf(w, "  record %s\n", a.Record)
	}
	if a.Refused != "" {
		fmt.Fprintf(w, "  no record %s\n", a.Refused)
	}
	if a.Resets > 0 {
		fmt.Fprintf(w, "  resets: %d\n", a.Resets)
	}
	if a.Changes+a.Refusals > 0 {
		fmt.Fprintf(w, "  changes of parameters: %d, refused %d\n", a.Changes, a.Refusals)
	}
}

func (a *faultsAnswer) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s; faults: %d\n", a.Bench, a.when(), len(a.Faults))
	for _, f := range a.Faults {
		since := ""
		if f.Since != nil {
			since = fmt.Sprintf("since tick %d", *f.Since)
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%d\t%s\n", f.Slot, f.Name, f.State, since, f.Count, f.Spec)
	}
}

func (a *advanceAnswer) print(w io.Writer) {
	if a.Ended != "" {
		fmt.Fprintln(w, a.EndLine())
		return
	}
	fmt.Fprintf(w, "advanced to %s\n", a.when())
}

func (a *stopAnswer) print(w io.Writer) {
	if a.Ended != "" {
		fmt.Fprintln(w, a.EndLine())
		return
	}
	fmt.Fprintf(w, "%s: asked to stop at %s\n", a.Bench, a.when())
}

func (a *changeAnswer) print(w io.Writer) {
	if a.Superseded {
		fmt.Fprint(w, "superseded by a later change, ")
	}
	if a.Carried {
		fmt.Fprint(w, "state carried over to the present parameters, ")
	}
	fmt.Fprintf(w, "in effect from %s on\n", a.when())
	for _, f := range a.Faults {
		fmt.Fprintf(w, "  slot %d\t%s\t%s\n", f.Slot, f.Name, f.Spec)
	}
}

func (d *Description) print(w io.Writer) {
	fmt.Fprintf(w, "%s: plant %s every %g ms; %d signals\n", d.Bench, d.Plant, d.Period*1e3, len(d.Signals))
	for _, s := range d.Signals {
		limits, does := "-", "read"
		if s.Min != nil || s.Max != nil {
			limits = orInfinite(s.Min, "-inf") + " to " + orInfinite(s.Max, "inf")
		}
		if s.Settable {
			does = "read, set"
		}
		if s.Tunable {
			does = "read, param"
		}
		about := s.About
		if s.Value != nil {
			about = formatValue(s.Value, s.Unit)
		}
		if s.Port != "" {
			about = strings.TrimSuffix("port "+s.Port+"; "+about, "; ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Kind, s.Direction, s.Unit, limits, does, host.PrintableLine(about))
	}
}

// orInfinite formats the end of a range.
func orInfinite(v *float64, without string) string {
	if v == nil {
		return without
	}
	return fmt.Sprintf("%.6g", *v)
}

func (a *Values) print(w io.Writer) {
	fmt.Fprintf(w, "tick %d, %.3f s\n", a.Tick, a.Time)
	for _, v := range a.Values {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", v.Name, formatValue(v.Value, v.Unit), v.Text)
	}
}

// formatValue formats a value with its unit; "-": not known.
func formatValue(v *float64, unit string) string {
	if v == nil {
		return "-"
	}
	return units.Format(*v, unit)
}

// printText writes an answer as text. It may be another user's: nothing in it acts on a terminal.
func printText(to io.Writer, a printable) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	a.print(w)
	_ = w.Flush() // to memory
	_, err := io.WriteString(to, host.Printable(text.String()))
	return err
}

// streamLine is any line of a stream: its fields are those of StreamStart, Sample and StreamEnd.
type streamLine struct {
	StreamStart
	Sample
	Ended string  `json:"ended"`
	Clean bool    `json:"clean"`
	Tick  int64   `json:"tick"`
	Time  float64 `json:"time_s"`
}

// printStream prints the lines of a stream until its end. Lines of at most maxAnswer bytes are read.
func (s *socket) printStream(from io.Reader, o *Options) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxAnswer)
	var widths []int // of the columns
	for lines.Scan() {
		var l streamLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return s.noAnswerError(err)
		}
		text := host.PrintableLine(lines.Text()) + "\n"
		if !o.JSON {
			if l.Signals != nil {
				widths = columnWidths(l.Signals)
			}
			text = host.Printable(l.text(widths))
		}
		if _, err := io.WriteString(o.Out, text); err != nil {
			return err
		}
		if l.Ended != "" {
			return nil
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return s.noAnswerError(err)
	}
	return host.Exitf(1, "%s ended the stream before the end of the run: lockstep ps lists the runs", s)
}

// columnWidths returns the widths of the columns of a stream.
func columnWidths(list []StreamSignal) (widths []int) {
	for _, s := range list {
		widths = append(widths, max(12, len(s.title())))
	}
	return widths
}

// title returns the title of a column.
func (s *StreamSignal) title() string { return s.Name + "[" + s.Unit + "]" }

// text formats a line of a stream for people.
func (l *streamLine) text(widths []int) string {
	var b strings.Builder
	switch {
	case l.Signals != nil:
		fmt.Fprintf(&b, "%10s", "time[s]")
		for i := range l.Signals {
			fmt.Fprintf(&b, "  %*s", widths[i], l.Signals[i].title())
		}
	case l.Ended != "":
		fmt.Fprintf(&b, "the run has ended at %.3f s: %s", l.Time, l.Ended)
	default:
		if l.Lost > 0 {
			fmt.Fprintf(&b, "%d ticks are missing here\n", l.Lost)
		}
		fmt.Fprintf(&b, "%10.3f", l.Time)
		for i := range l.Last[:min(len(l.Last), len(widths))] {
			fmt.Fprintf(&b, "  %*.6g", widths[i], l.Last[i])
			if i < len(l.Min) && i < len(l.Max) && l.Min[i] != l.Max[i] {
				fmt.Fprintf(&b, " (%.6g to %.6g)", l.Min[i], l.Max[i])
			}
		}
	}
	return b.String() + "\n"
}
