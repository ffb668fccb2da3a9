package bench

import (
	"bytes"
	"cmp"
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

	"lockstep/io/can"
	"lockstep/io/yamlfile"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/ecu"
	"lockstep/sched"
)

// Bench is a bench file: which plant runs at which period, on which buses, with
// which signal at which port. Load fills it; nothing is resolved yet.
type Bench struct {
	File     string // the file's name as given; errors start with it
	Name     string
	About    string          // one sentence for the listing
	Plant    yamlfile.Scalar // an embedded plant, or a file beside this one
	PeriodNs int64           // grid, ns; 100 µs to 10 s
	Scheme   string          // "papers" (one event per tick, the rest in the lag buffer) or "complete"
	Timer    string          // sched.Timerfd or sched.Nanosleep
	SpinNs   int64           // how long before a grid point the loop wakes up and spins, ns; 0: it does not
	CPU      int             // of the loop; -1: chosen at the start
	Priority int             // SCHED_FIFO, 1 to 99
	Deadline bool            // SCHED_DEADLINE instead
	Overrun  rt.Overrun
	BudgetNs int64 // by when a tick's frames are out, ns after it was due; 0: half the period, and not checked before the start
	WatchNs  int64 // for how long no tick may come before the target is ended, ns
	Safe     SafeState
	End      Ends
	Unit     yamlfile.Scalar // virtual control unit to try the bench with; "" none
	Settings []ecu.Setting   // of that one
	Engine   yamlfile.Scalar // output shown as engine speed; "" none
	Wheel    yamlfile.Scalar // output shown as wheel speed; Engine/Wheel is the overall ratio
	Buses    []Bus

	// Files holds what was read of the files it names: who attaches to a run, and who
	// replays one, has them as they were when it began.
	Files map[string]FileContent

	text  []byte           // the file itself
	dir   string           // where plant and databases are looked for first; "" for an embedded bench
	draft *plantfile.Draft // the plant, parsed before; nil: it is read
}

// FileContent is a file as it was when it was read.
type FileContent struct {
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
	if FileKind(file, data) == "scenario" {
		return nil, &KindError{name, "scenario", fmt.Errorf("bench: %s is a scenario: name the bench, and this with -scenario %s", name, name)}
	}
	if FileKind(file, data) == "sweep" {
		return nil, &KindError{name, "sweep", fmt.Errorf("bench: %s is a sweep: lockstep sweep %s", name, name)}
	}
	dir := ""
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		dir = filepath.Dir(name)
	}
	return Parse(file, dir, data)
}

// NotFoundError says that there is no file of a name, and nothing embedded.
type NotFoundError struct {
	Name string // as it was written
	text string
}

func (e *NotFoundError) Error() string { return e.text }

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
			return "", nil, fmt.Errorf("bench: %s %w", name, syscall.EISDIR)
		}
		return "", nil, &NotFoundError{name, fmt.Sprintf("bench: no file %s, and nothing embedded of that name%s; `lockstep plants` lists what is",
			name, units.Meant(name, EmbeddedNames()))}
	}
	return file, data, nil
}

// What is read at most, bytes: of a plant, bench or database, and of a file of
// inputs, which has ten million rows then.
const (
	maxText   = 16 << 20
	MaxInputs = 1 << 30
)

// readFile reads a text file without its byte order mark.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(LimitReader(f, maxText))
	if err != nil {
		var path *fs.PathError
		if !errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return nil, err
	}
	return bytes.TrimPrefix(data, []byte(ByteOrderMark)), nil
}

// ByteOrderMark is the byte order mark that some editors put before UTF-8.
const ByteOrderMark = "\uFEFF"

// LimitReader returns a reader of at most left bytes of r; after them it fails with ErrTooLarge.
func LimitReader(r io.Reader, left int64) io.Reader { return &limited{r: r, left: left} }

// limited reads up to left bytes; more is an error.
type limited struct {
	r    io.Reader
	left int64
}

// ErrTooLarge says that a file has more bytes than any of its kind.
var ErrTooLarge = errors.New("too large: no file of this kind has so many bytes")

func (b *limited) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
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

// EmbeddedNames lists the names of the embedded files.
func EmbeddedNames() []string {
	var names []string
	for _, e := range plants.List() {
		names = append(names, e.Name)
	}
	return names
}

// Read returns the plant or database called name: a file beside the bench file,
// else an embedded one; shown is how errors should call it.
func (b *Bench) Read(name yamlfile.Scalar) (shown string, data []byte, err error) {
	if f, ok := b.Files[name.Text]; ok {
		return f.Shown, f.Data, nil
	}
	defer func() {
		if b.Files == nil {
			b.Files = map[string]FileContent{}
		}
		if err == nil {
			b.Files[name.Text] = FileContent{shown, data}
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
			return "", nil, b.Errorf(name, "%w", err)
		}
	}
	if shown, data, err = readEmbedded(name.Text); err != nil {
		return "", nil, b.Errorf(name, "%w", &NotFoundError{name.Text, fmt.Sprintf("no file %q beside the bench file, and nothing embedded of that name%s",
			name.Text, units.Meant(name.Text, EmbeddedNames()))})
	}
	return shown, data, nil
}

// Errorf is an error at a word of the file.
func (b *Bench) Errorf(at yamlfile.Scalar, format string, args ...any) error {
	return FileOrigin(b.File).Errorf(at, format, args...)
}

// FileOrigin is the source of what stands in a file of a bench.
func FileOrigin(file string) yamlfile.Origin { return yamlfile.Origin{File: file, Owner: "bench"} }

// CommandOrigin is the source of what stands in the words of a command.
func CommandOrigin(name string) yamlfile.Origin {
	return yamlfile.Origin{File: name, Owner: "bench", Command: true}
}

// NewReader returns a reader that suggests the nearest known name.
func NewReader(from yamlfile.Origin) *yamlfile.Reader {
	return &yamlfile.Reader{Origin: from, Suggest: units.Meant}
}

// Parse reads a bench file; dir is where its plant and databases are looked for first, ""
// of an embedded bench.
func Parse(file, dir string, data []byte) (*Bench, error) {
	r := NewReader(FileOrigin(file))
	n := r.Document(data)
	if n == nil {
		return nil, r.Err
	}
	b, err := readBench(r, n)
	if err == nil {
		b.text, b.dir = data, dir
	}
	return b, err
}

// FromTree is parse for a file that is a tree already.
func FromTree(file, dir string, n ast.Node) (*Bench, error) {
	b, err := readBench(NewReader(FileOrigin(file)), n)
	if err == nil {
		b.dir = dir
	}
	return b, err
}

// SetPlant makes the bench use a plant that is parsed already; its file is not read.
func (b *Bench) SetPlant(plant *plantfile.Draft) { b.draft = plant }

// FileText is the bench file itself.
func (b *Bench) FileText() []byte { return b.text }

// readBench reads the tree of a bench file.
func readBench(r *yamlfile.Reader, n ast.Node) (*Bench, error) {
	b := &Bench{File: r.File, Scheme: "papers", Timer: sched.Timerfd, CPU: -1, Priority: 80}
	var end, spin, budget ast.Node
	r.Mapping(n, "bench file", []yamlfile.Key{
		{Name: "bench", Read: func(n ast.Node) { b.Name = ReadTitle(r, n, "bench") }},
		{Name: "about", Read: r.StoreText(&b.About, "about")},
		{Name: "plant", Read: r.StoreScalar(&b.Plant, "plant")},
		{Name: "period", Read: readNanoseconds(r, &b.PeriodNs, "period", 100_000, 10e9)},
		{Name: "scheme", Read: func(n ast.Node) { b.Scheme = r.Choice(n, "scheme", "papers", "complete") }},
		{Name: "timer", Read: func(n ast.Node) { b.Timer = r.Choice(n, "timer", sched.Timerfd, sched.Nanosleep) }},
		{Name: "spin", Read: func(n ast.Node) { spin = n; readNanoseconds(r, &b.SpinNs, "spin", 0, 1e6)(n) }},
		{Name: "cpu", Read: func(n ast.Node) { readCPU(r, n, &b.CPU) }},
		{Name: "priority", Read: r.StoreInteger(&b.Priority, "priority", 1, 99)},
		{Name: "scheduler", Read: func(n ast.Node) { b.Deadline = r.Choice(n, "scheduler", "fifo", "deadline") == "deadline" }},
		{Name: "overrun", Read: func(n ast.Node) { readOverrun(r, n, &b.Overrun) }},
		{Name: "tick_budget", Read: func(n ast.Node) { budget = n; readNanoseconds(r, &b.BudgetNs, "tick_budget", 1e3, 10e9)(n) }},
		{Name: "watchdog", Read: readNanoseconds(r, &b.WatchNs, "watchdog", 10e6, 3600e9)},
		{Name: "safe", Read: func(n ast.Node) { readSafeState(r, n, &b.Safe) }},
		{Name: "end", Read: func(n ast.Node) { end = n }},
		{Name: "unit", Read: func(n ast.Node) { b.Unit, b.Settings = ReadControlUnit(r, n) }},
		{Name: "show", Read: func(n ast.Node) {
			r.Mapping(n, "show", []yamlfile.Key{{Name: "engine", Read: r.StoreScalar(&b.Engine, "show: engine")}, {Name: "wheel", Read: r.StoreScalar(&b.Wheel, "show: wheel")}})
		}},
		{Name: "buses", Read: func(n ast.Node) {
			for _, e := range r.Entries(n, "buses") {
				b.Buses = append(b.Buses, readBus(r, e))
			}
		}},
	})
	readEnds(r, end, b)
	checkComplete(r, b)
	checkTimes(r, b, spin, budget)
	if r.Err != nil {
		return nil, r.Err
	}
	return b, nil
}

// checkComplete reports what a bench file cannot do without.
func checkComplete(r *yamlfile.Reader, b *Bench) {
	need := func(ok bool, what string) {
		if r.Err == nil && !ok {
			r.Err = r.Errorf(yamlfile.Scalar{Line: 1, Col: 1}, "%s is missing", what)
		}
	}
	need(b.Name != "", "the name (bench: NAME)")
	need(b.Plant.Text != "", "the plant (plant: NAME)")
	need(b.PeriodNs > 0, "the period (period: 5 ms)")
	need(len(b.Buses) > 0, "a bus (buses: {drive: {interface: vcan0, ...}})")
}

// ReadTitle reads a name with which lines of status and reports begin.
func ReadTitle(r *yamlfile.Reader, n ast.Node, what string) string {
	const room = 64 // letters
	w := r.Scalar(n, what)
	if len([]rune(w.Text)) > room {
		r.Fail(n, "%s: the name has %d letters; at most %d fit", what, len([]rune(w.Text)), room)
	}
	return w.Text
}

// ReadControlUnit reads "abs", or "{name: abs, slip: 0.14}" with values for its parameters.
func ReadControlUnit(r *yamlfile.Reader, n ast.Node) (w yamlfile.Scalar, set []ecu.Setting) {
	list, at := []*ast.MappingValueNode(nil), n
	if _, ok := n.(ast.MapNode); ok {
		list = r.Entries(n, "unit")
		i := slices.IndexFunc(list, func(e *ast.MappingValueNode) bool { return e.Key.GetToken().Value == "name" })
		if i < 0 {
			r.Fail(n, "unit: name is missing: {name: %s, PARAMETER: VALUE}", ecu.Names()[0])
			return w, nil
		}
		at = list[i].Value
		list = slices.Delete(slices.Clone(list), i, i+1)
	}
	w = r.Scalar(at, "unit")
	if !slices.Contains(ecu.Names(), w.Text) {
		r.Fail(at, "unit: no control unit %q%s; there are %s", w.Text, units.Meant(w.Text, ecu.Names()), strings.Join(ecu.Names(), ", "))
	}
	for _, e := range list {
		s, err := ecu.ParseSetting(e.Key.GetToken().Value + "=" + r.Scalar(e.Value, "unit").Text)
		if set = append(set, s); err == nil {
			err = ecu.Check(w.Text, set)
		}
		if err != nil {
			r.Fail(e.Key, "unit: %s", strings.TrimPrefix(err.Error(), "ecu: "))
		}
	}
	return w, set
}

// ControlUnitArgs start the virtual control unit of the bench on a bus.
func (b *Bench) ControlUnitArgs(bus string) []string {
	args := []string{"ecu", b.Unit.Text, "-bus", bus}
	for _, s := range b.Settings {
		args = append(args, "-set", s.String())
	}
	return args
}

func readInterface(r *yamlfile.Reader, n ast.Node, what string) yamlfile.Scalar {
	w := r.Scalar(n, what+": interface")
	if r.Err == nil && !wire(w.Text) {
		r.Fail(n, "%s: %q cannot be the name of a CAN interface: %s", what, w.Text, wires)
	}
	return w
}

// wires says what wire accepts.
const wires = "1 to 15 letters, digits, \".\", \"_\" and \"-\", like vcan0; or pair, or file:LOG, or file:LOG@CHANNEL"

// wire tells whether name can be the interface of a bus: one that is safe to show
// in a command, or an inherited descriptor, "fd:3".
func wire(name string) bool {
	if log, ok := strings.CutPrefix(name, LogPrefix); ok {
		return log != "" && yamlfile.IsPrintable(log)
	}
	name, _ = strings.CutPrefix(name, "fd:")
	return can.LegalName(name)
}

func readCPU(r *yamlfile.Reader, n ast.Node, dst *int) {
	if w := r.Scalar(n, "cpu"); w.Text == "auto" {
		*dst = -1
		return
	}
	r.StoreInteger(dst, "cpu (auto, or its number)", 0, 1023)(n)
}

// checkTimes checks the times of a bench against its period, and sets those it does not
// name.
func checkTimes(r *yamlfile.Reader, b *Bench, spin, budget ast.Node) {
	period := time.Duration(b.PeriodNs)
	if r.Err == nil && b.BudgetNs > b.PeriodNs {
		r.Fail(budget, "tick_budget: %v is longer than the period, %v", time.Duration(b.BudgetNs), period)
	}
	if r.Err == nil && b.SpinNs > b.PeriodNs/4 {
		r.Fail(spin, "spin: %v is longer than a quarter of the period, %v", time.Duration(b.SpinNs), period)
	}
	if b.WatchNs == 0 { // the policy may bear so many points at once
		b.WatchNs = int64(2*time.Second) + int64(b.Overrun.Max+1)*b.PeriodNs
	}
}

// readOverrun reads "stop", "safe", "skip N" or "catchup N".
func readOverrun(r *yamlfile.Reader, n ast.Node, o *rt.Overrun) {
	w := r.Scalar(n, "overrun")
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
		r.Fail(n, "overrun: %q is none of: stop, safe, skip N, catchup N (N: grid points at once, 1 to 1000)", w.Text)
	}
}

// PlantPeriod is the period of a plant that nobody names one for.
const PlantPeriod = 5 * time.Millisecond

// KindError says that a file is of another kind than the one that is wanted.
type KindError struct {
	File string // as the error calls it
	Kind string // what it is, as kind tells
	Err  error
}

func (e *KindError) Error() string { return e.Err.Error() }

func (e *KindError) Unwrap() error { return e.Err }

// FileKind tells what a file that ReadAny has read is: a "bench", a "scenario", a "sweep", a
// file of "inputs", a "database" or else a "plant".
func FileKind(file string, data []byte) string {
	switch {
	case filepath.Ext(file) == ".dbc":
		return "database"
	case filepath.Ext(file) == ".csv" || bytes.Contains(data, []byte("\ntime[s],")):
		return "inputs"
	case bytes.Contains(append([]byte{'\n'}, data...), []byte("\nbench:")):
		return "bench"
	case bytes.Contains(append([]byte{'\n'}, data...), []byte("\nscenario:")):
		return "scenario"
	case bytes.Contains(append([]byte{'\n'}, data...), []byte("\nsweep:")):
		return "sweep"
	}
	return "plant"
}

// FromPlant is the bench without buses that a plant with a scenario is; file is how
// ReadAny calls it.
func FromPlant(name, file string, step time.Duration, scheme string) *Bench {
	b := &Bench{
		File: file, Name: name, Plant: yamlfile.Scalar{Text: name, Line: 1, Col: 1}, Scheme: scheme, Timer: sched.Timerfd, CPU: -1, Priority: 80,
		PeriodNs: int64(cmp.Or(step, PlantPeriod)),
	}
	if _, err := os.Stat(name); err == nil {
		b.dir, b.Plant.Text = filepath.Dir(name), filepath.Base(name)
	}
	return b
}
