package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml/ast"
	"lockstep/hil_test/ecu"
	"lockstep/io/can"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/sched"
)

// Bench is a bench file: which plant runs at which period, on which buses, with
// which signal at which port. Load fills it; nothing is resolved yet.
type Bench struct {
	File     string // the file's name as given; errors start with it
	Name     string
	About    string // one sentence for the listing
	Plant    Word   // an embedded plant, or a file beside this one
	PeriodNs int64  // grid, ns; 100 µs to 10 s
	Scheme   string // "papers" (one event per tick, the rest in the lag buffer) or "complete"
	Timer    string // sched.Timerfd or sched.Nanosleep
	SpinNs   int64  // how long before a grid point the loop wakes up and spins, ns; 0: it does not
	CPU      int    // of the loop; -1: chosen at the start
	Priority int    // SCHED_FIFO, 1 to 99
	Deadline bool   // SCHED_DEADLINE instead
	Overrun  rt.Overrun
	BudgetNs int64 // by when a tick's frames are out, ns after it was due; 0: half the period, and not checked before the start
	WatchNs  int64 // for how long no tick may come before the target is ended, ns
	Safe     SafeState
	End      Ends
	Unit     Word          // virtual control unit to try the bench with; "" none
	Settings []ecu.Setting // of that one
	Engine   Word          // output shown as engine speed; "" none
	Wheel    Word          // output shown as wheel speed; Engine/Wheel is the overall ratio
	Buses    []Bus

	// Files holds what was read of the files it names: who attaches to a run, and who
	// replays one, has them as they were when it began.
	Files map[string]kept

	text  []byte           // the file itself
	dir   string           // where plant and databases are looked for first; "" for an embedded bench
	draft *plantfile.Draft // the plant, parsed before; nil: it is read
}

// kept is a file as it was when it was read.
type kept struct {
	Shown string // how errors call it
	Data  []byte
}

// Load reads a bench: the file of that name if there is one, the embedded bench
// otherwise. Errors are "FILE:LINE:COL: bench: ...".
func Load(name string) (*Bench, error) {
	file, data, err := ReadAny(name)
	if err != nil {
		return nil, err
	}
	if kind(file, data) == "scenario" {
		return nil, fmt.Errorf("bench: %s is a scenario: name the bench, and this with -scenario %s", name, name)
	}
	if kind(file, data) == "sweep" {
		return nil, fmt.Errorf("bench: %s is a sweep: lockstep sweep %s", name, name)
	}
	dir := ""
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		dir = filepath.Dir(name)
	}
	return parse(file, dir, data)
}

// ReadAny reads the file called name if there is one, else the embedded file of
// that name; file is how errors should call it.
func ReadAny(name string) (file string, data []byte, err error) {
	data, err = readFile(name)
	if err == nil {
		return name, data, nil
	}
	folder := errors.Is(err, syscall.EISDIR)
	if !errors.Is(err, fs.ErrNotExist) && !folder {
		return "", nil, fmt.Errorf("bench: %w", err)
	}
	if file, data, err = readEmbedded(name); err != nil {
		if folder {
			return "", nil, fmt.Errorf("bench: %s is a directory", name)
		}
		return "", nil, fmt.Errorf("bench: no file %s, and nothing embedded of that name%s; `lockstep plants` lists what is",
			name, units.Meant(name, embedded()))
	}
	return file, data, nil
}

// What is read at most, bytes: of a plant, bench or database, and of a file of
// inputs, which has ten million rows then.
const (
	maxText = 16 << 20
	maxCSV  = 1 << 30
)

// readFile reads a text file without its byte order mark.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(&limited{r: f, left: maxText})
	if err != nil {
		var path *fs.PathError
		if !errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return nil, err
	}
	return bytes.TrimPrefix(data, []byte(mark)), nil
}

// mark is the byte order mark that some editors put before UTF-8.
const mark = "\uFEFF"

// limited reads up to left bytes; more is an error.
type limited struct {
	r    io.Reader
	left int64
}

var errTooLarge = errors.New("too large: no file of this kind has so many bytes")

func (b *limited) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// readEmbedded reads an embedded file; file is its full name.
func readEmbedded(name string) (file string, data []byte, err error) {
	data, err = plants.Read(name)
	if filepath.Ext(name) == "" {
		name += ".yaml"
	}
	return name, data, err
}

// embedded lists the names of the embedded files.
func embedded() []string {
	var names []string
	for _, e := range plants.List() {
		names = append(names, e.Name)
	}
	return names
}

// Read returns the plant or database called name: a file beside the bench file,
// else an embedded one; shown is how errors should call it.
func (b *Bench) Read(name Word) (shown string, data []byte, err error) {
	if f, ok := b.Files[name.Text]; ok {
		return f.Shown, f.Data, nil
	}
	defer func() {
		if b.Files == nil {
			b.Files = map[string]kept{}
		}
		if err == nil {
			b.Files[name.Text] = kept{shown, data}
		}
	}()
	if b.dir != "" {
		shown = name.Text
		if !filepath.IsAbs(shown) {
			shown = filepath.Join(b.dir, shown)
		}
		if data, err = readFile(shown); err == nil {
			return shown, data, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR) {
			return "", nil, b.errorf(name, "%w", err)
		}
	}
	if shown, data, err = readEmbedded(name.Text); err != nil {
		return "", nil, b.errorf(name, "no file %q beside the bench file, and nothing embedded of that name%s",
			name.Text, units.Meant(name.Text, embedded()))
	}
	return shown, data, nil
}

// errorf is an error at a word of the file.
func (b *Bench) errorf(at Word, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: bench: %w", b.File, at.Line, at.Col, fmt.Errorf(format, args...))
}

func parse(file, dir string, data []byte) (*Bench, error) {
	r := &reader{origin: origin{file: file}}
	n := r.root(data)
	if n == nil {
		return nil, r.err
	}
	b, err := r.bench(n)
	if err == nil {
		b.text, b.dir = data, dir
	}
	return b, err
}

// bench reads the tree of a bench file.
func (r *reader) bench(n ast.Node) (*Bench, error) {
	b := &Bench{File: r.file, Scheme: "papers", Timer: sched.Timerfd, CPU: -1, Priority: 80}
	var end, spin, budget ast.Node
	r.object(n, "bench file", []key{
		{"bench", func(n ast.Node) { b.Name = r.title(n, "bench") }},
		{"about", r.text(&b.About, "about")},
		{"plant", r.name(&b.Plant, "plant")},
		{"period", r.nanoseconds(&b.PeriodNs, "period", 100_000, 10e9)},
		{"scheme", func(n ast.Node) { b.Scheme = r.choice(n, "scheme", "papers", "complete") }},
		{"timer", func(n ast.Node) { b.Timer = r.choice(n, "timer", sched.Timerfd, sched.Nanosleep) }},
		{"spin", func(n ast.Node) { spin = n; r.nanoseconds(&b.SpinNs, "spin", 0, 1e6)(n) }},
		{"cpu", func(n ast.Node) { r.cpu(n, &b.CPU) }},
		{"priority", r.integer(&b.Priority, "priority", 1, 99)},
		{"scheduler", func(n ast.Node) { b.Deadline = r.choice(n, "scheduler", "fifo", "deadline") == "deadline" }},
		{"overrun", func(n ast.Node) { r.overrun(n, &b.Overrun) }},
		{"tick_budget", func(n ast.Node) { budget = n; r.nanoseconds(&b.BudgetNs, "tick_budget", 1e3, 10e9)(n) }},
		{"watchdog", r.nanoseconds(&b.WatchNs, "watchdog", 10e6, 3600e9)},
		{"safe", func(n ast.Node) { r.safeState(n, &b.Safe) }},
		{"end", func(n ast.Node) { end = n }},
		{"unit", func(n ast.Node) { b.Unit, b.Settings = r.unit(n) }},
		{"show", func(n ast.Node) {
			r.object(n, "show", []key{{"engine", r.name(&b.Engine, "show: engine")}, {"wheel", r.name(&b.Wheel, "show: wheel")}})
		}},
		{"buses", func(n ast.Node) {
			for _, e := range r.pairs(n, "buses") {
				b.Buses = append(b.Buses, r.bus(e))
			}
		}},
	})
	r.ends(end, b)
	r.missing(b)
	r.times(b, spin, budget)
	if r.err != nil {
		return nil, r.err
	}
	return b, nil
}

// missing reports what a bench file cannot do without.
func (r *reader) missing(b *Bench) {
	need := func(ok bool, what string) {
		if r.err == nil && !ok {
			r.err = fmt.Errorf("%s:1:1: bench: %s is missing", r.file, what)
		}
	}
	need(b.Name != "", "the name (bench: NAME)")
	need(b.Plant.Text != "", "the plant (plant: NAME)")
	need(b.PeriodNs > 0, "the period (period: 5 ms)")
	need(len(b.Buses) > 0, "a bus (buses: {drive: {interface: vcan0, ...}})")
}

func (r *reader) choice(n ast.Node, what string, known ...string) string {
	w := r.word(n, what)
	for _, k := range known {
		if w.Text == k {
			return k
		}
	}
	r.fail(n, "%s: %q is unknown%s; known are %s", what, w.Text, units.Meant(w.Text, known), strings.Join(known, ", "))
	return ""
}

// title is a name that lines of status and reports begin with.
func (r *reader) title(n ast.Node, what string) string {
	const room = 64 // letters
	w := r.word(n, what)
	if len([]rune(w.Text)) > room {
		r.fail(n, "%s: the name has %d letters; at most %d fit", what, len([]rune(w.Text)), room)
	}
	return w.Text
}

// unit reads "abs", or "{name: abs, slip: 0.14}" with values for its parameters.
func (r *reader) unit(n ast.Node) (w Word, set []ecu.Setting) {
	list, at := []*ast.MappingValueNode(nil), n
	if _, ok := n.(ast.MapNode); ok {
		list = r.pairs(n, "unit")
		i := slices.IndexFunc(list, func(e *ast.MappingValueNode) bool { return e.Key.GetToken().Value == "name" })
		if i < 0 {
			r.fail(n, "unit: name is missing: {name: %s, PARAMETER: VALUE}", ecu.Names()[0])
			return w, nil
		}
		at = list[i].Value
		list = slices.Delete(slices.Clone(list), i, i+1)
	}
	w = r.word(at, "unit")
	if !slices.Contains(ecu.Names(), w.Text) {
		r.fail(at, "unit: no control unit %q%s; there are %s", w.Text, units.Meant(w.Text, ecu.Names()), strings.Join(ecu.Names(), ", "))
	}
	for _, e := range list {
		s, err := ecu.ParseSetting(e.Key.GetToken().Value + "=" + r.word(e.Value, "unit").Text)
		if set = append(set, s); err == nil {
			err = ecu.Check(w.Text, set)
		}
		if err != nil {
			r.fail(e.Key, "unit: %s", strings.TrimPrefix(err.Error(), "ecu: "))
		}
	}
	return w, set
}

// unitArgs start the virtual control unit of the bench on a bus.
func (b *Bench) unitArgs(bus string) []string {
	args := []string{"ecu", b.Unit.Text, "-bus", bus}
	for _, s := range b.Settings {
		args = append(args, "-set", s.String())
	}
	return args
}

func (r *reader) wire(n ast.Node, what string) Word {
	w := r.word(n, what+": interface")
	if r.err == nil && !wire(w.Text) {
		r.fail(n, "%s: %q cannot be the name of a CAN interface: %s", what, w.Text, wires)
	}
	return w
}

// wires says what wire accepts.
const wires = "1 to 15 letters, digits, \".\", \"_\" and \"-\", like vcan0; or pair, or file:LOG, or file:LOG@CHANNEL"

// wire tells whether name can be the interface of a bus: one that is safe to show
// in a command, or an inherited descriptor, "fd:3".
func wire(name string) bool {
	if log, ok := strings.CutPrefix(name, fromFile); ok {
		return log != "" && printable(log)
	}
	name, _ = strings.CutPrefix(name, "fd:")
	return can.LegalName(name)
}

func (r *reader) cpu(n ast.Node, dst *int) {
	if w := r.word(n, "cpu"); w.Text == "auto" {
		*dst = -1
		return
	}
	r.integer(dst, "cpu (auto, or its number)", 0, 1023)(n)
}

// times checks the times of a bench against its period, and sets those it does not
// name.
func (r *reader) times(b *Bench, spin, budget ast.Node) {
	period := time.Duration(b.PeriodNs)
	if r.err == nil && b.BudgetNs > b.PeriodNs {
		r.fail(budget, "tick_budget: %v is longer than the period, %v", time.Duration(b.BudgetNs), period)
	}
	if r.err == nil && b.SpinNs > b.PeriodNs/4 {
		r.fail(spin, "spin: %v is longer than a quarter of the period, %v", time.Duration(b.SpinNs), period)
	}
	if b.WatchNs == 0 { // the policy may bear so many points at once
		b.WatchNs = int64(2*time.Second) + int64(b.Overrun.Max+1)*b.PeriodNs
	}
}

// overrun reads "stop", "safe", "skip N" or "catchup N".
func (r *reader) overrun(n ast.Node, o *rt.Overrun) {
	w := r.word(n, "overrun")
	policy, count, _ := strings.Cut(w.Text, " ")
	limit, err := strconv.Atoi(count)
	counted := err == nil && limit >= 1 && limit <= 1000
	switch {
	case w.Text == "stop":
		*o = rt.Overrun{Policy: rt.Stop}
	case w.Text == "safe":
		*o = rt.Overrun{Policy: rt.Safe}
	case policy == "skip" && counted:
		*o = rt.Overrun{Policy: rt.Skip, Max: limit}
	case policy == "catchup" && counted:
		*o = rt.Overrun{Policy: rt.CatchUp, Max: limit}
	default:
		r.fail(n, "overrun: %q is none of: stop, safe, skip N, catchup N (N: grid points at once, 1 to 1000)", w.Text)
	}
}
