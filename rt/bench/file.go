package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/ecu"
	"lockstep/rt/network"
	"lockstep/sched"
)

// Bench is the content of a bench file: plant, period, buses, and the signals of its ports.
// Load fills it without resolving names; Prepare resolves them.
type Bench struct {
	File      string // the file's name as given; errors start with it
	Name      string
	About     string          // one sentence for the listing
	Plant     yamlfile.Scalar // name of an embedded plant, or of a file in the folder of the bench file
	PeriodNs  int64           // period of the grid, ns; 100 µs to 10 s
	Scheme    string          // "papers" (one event per tick, the rest in the lag buffer) or "complete"
	AtArrival bool            // inputs act from the arrival of their frame, not from the start of its step
	Timer     string          // sched.Timerfd or sched.Nanosleep
	SpinNs    int64           // time before a grid point at which the loop wakes up and spins, ns; 0: no spinning
	CPU       int             // CPU of the loop; -1: chosen at the start
	Priority  int             // priority of SCHED_FIFO, 1 to 99
	Deadline  bool            // SCHED_DEADLINE instead of SCHED_FIFO
	Overrun   rt.Overrun
	// BudgetNs is the longest time from the due instant of a tick until its frames are sent, ns;
	// 0: half the period, and the run does not check the worst tick before the start.
	BudgetNs int64
	WatchNs  int64 // longest time without a tick before the watchdog ends the target, ns; 0: see Watchdog
	Safe     SafeState
	End      Ends
	Unit     yamlfile.Scalar     // virtual control unit of the bench, or the program that is it; "": none
	Settings []ecu.Setting       // parameters of the virtual control unit
	Program  *Program            // program that is the control unit; nil: Unit names a virtual control unit
	Engine   yamlfile.Scalar     // output shown as engine speed; "" none
	Wheel    yamlfile.Scalar     // output shown as wheel speed; Engine/Wheel is the overall ratio
	Shown    []Shown             // further outputs in the status line
	Page     string              // TCP port of the live page, or "off"; "": the command decides
	Metrics  string              // TCP address of the figures for Prometheus; "": none
	Network  *Network            // ignition; nil: every frame is sent all the time
	Power    *network.SupplySpec // supply of the unit under test; nil: it is not switched
	Buses    []Bus
	Set      []plantfile.Assignment // values of the plant's parameters that replace those of its file
	Start    []plantfile.Assignment // start presets of the plant, of the bench file and the scenario
	StartSet []plantfile.Assignment // start presets of the command line, which replace those of Start

	// Files holds the content of the files that the bench names, as read at the start of the run:
	// attach and replay use the same content.
	Files map[string]FileContent

	// Progress is called while the plant is prepared, with the number of lock sets done, of total; nil: not called.
	Progress func(done, total int)

	text  []byte           // content of the bench file
	dir   string           // folder searched first for plant and databases; "" for an embedded bench
	draft *plantfile.Draft // plant set by SetPlant; nil: read from its file
}

// Shown is an output in the status line.
type Shown struct {
	Output yamlfile.Scalar
	Unit   string // "": that which the plant file declares
}

// readShown reads "[w1, v: km/h]".
func readShown(r *yamlfile.Reader, f yamlfile.Field) (list []Shown) {
	const what = "show: outputs"
	for _, f := range r.Items(f, what) {
		if !yamlfile.IsMapping(f.Node) {
			list = append(list, Shown{Output: r.Scalar(f, what)})
			continue
		}
		for _, g := range r.FieldsOf(f, what) {
			list = append(list, Shown{g.KeyScalar(), r.Text(g, what+": "+g.Key)})
		}
	}
	return list
}

// ReadStart reads "start: {v: 80 km/h, gear: 5}". The plant file checks the names and the values.
func ReadStart(r *yamlfile.Reader, f yamlfile.Field) (list []plantfile.Assignment) {
	for _, g := range r.FieldsOf(f, "start") {
		value := r.Scalar(g, "start: "+g.Key)
		list = append(list, plantfile.Assignment{Name: g.Key, Value: value.Text,
			Place: fmt.Sprintf("%s:%d:%d", r.File, value.Line, value.Col)})
	}
	return list
}

// FileContent is the content of a file at the time of reading.
type FileContent struct {
	Shown  string // name of the file in errors
	Data   []byte
	Folder string // absolute folder of the programs that a diagnosis file names; "": the working directory
	Named  string // name in the plant file, of a file that the plant file names; "": the bench names it
}

// Load reads a bench: the file of that name if there is one, the embedded bench
// otherwise. Errors are "FILE:LINE:COL: bench: ...".
func Load(name string) (*Bench, error) {
	file, data, _, err := ReadKind("bench", name, "bench")
	if err != nil {
		return nil, err
	}
	dir := ""
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		dir = filepath.Dir(name)
	}
	return Parse(file, dir, data)
}

// NotFoundError is the error for a name that is neither a file nor an embedded file.
type NotFoundError struct {
	Name string // name as written
	Near string // name of a file that exists, such as Name with an extension; "": none
}

func (e *NotFoundError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("no file %s (did you mean %s?)", e.Name, e.Near)
	}
	return fmt.Sprintf("no file %s, and no embedded file of that name%s; `lockstep plants` lists the embedded files",
		e.Name, units.Meant(e.Name, plants.Names()))
}

// ReadAny reads the file called name if it exists, else the embedded file of that name; file
// is its name for errors. An error proposes a file of one of the kinds want.
func ReadAny(name string, want ...string) (file string, data []byte, err error) {
	if file, data, err = readNamed(name, name, want...); err != nil {
		err = fmt.Errorf("bench: %w", err)
	}
	return file, data, err
}

// readNamed reads the file at path if it exists, else the embedded file called name. An error proposes a
// file of one of the kinds want.
func readNamed(path, name string, want ...string) (file string, data []byte, err error) {
	data, err = readFile(path)
	folder := errors.Is(err, syscall.EISDIR)
	if !folder && !errors.Is(err, fs.ErrNotExist) {
		return path, data, err
	}
	if data, err = plants.Read(name); err == nil {
		if filepath.Ext(name) == "" {
			name += ".yaml"
		}
		return name, data, nil
	}

	near := withExtension(path, want...)
	if folder && near == "" {
		return "", nil, fmt.Errorf("%s %w", name, syscall.EISDIR)
	}
	if near != "" {
		near = name + filepath.Ext(near)
	}
	return "", nil, &NotFoundError{name, near}
}

// readFile reads a text file without its byte order mark.
func readFile(name string) ([]byte, error) {
	data, err := inputfile.Read(name, inputfile.Text)
	return bytes.TrimPrefix(data, []byte(ByteOrderMark)), err
}

// ByteOrderMark is the byte order mark that some editors put before UTF-8.
const ByteOrderMark = "\uFEFF"

// Read returns the plant or database called name: a file in the folder of the bench file, else an
// embedded one. kind is the kind that the file must have, and shown its name for errors.
func (b *Bench) Read(name yamlfile.Scalar, kind string) (shown string, data []byte, err error) {
	if f, ok := b.Files[name.Text]; ok {
		return f.Shown, f.Data, nil
	}
	path := name.Text
	switch {
	case b.dir == "":
		path = "" // an embedded bench has no folder
	case !filepath.IsAbs(path):
		path = filepath.Join(b.dir, path)
	}

	shown, data, err = readNamed(path, name.Text, kind)
	if err == nil || errors.Is(err, inputfile.ErrTooLarge) {
		if _, wrong := CheckKind("", shown, data, kind); wrong != nil {
			err = wrong
		}
	}
	if err != nil {
		return "", nil, b.Errorf(name, "%w", err)
	}
	if b.Files == nil {
		b.Files = map[string]FileContent{}
	}
	b.Files[name.Text] = FileContent{Shown: shown, Data: data}

	return shown, data, nil
}

// readOfPlant reads a file that the plant file names, and keeps its content: a change of parameters and a supervisor that
// takes the run over use the same content, whatever has become of the file.
func (b *Bench) readOfPlant(name, path string) ([]byte, error) {
	key := b.keyOfPlant(name)
	if f, ok := b.Files[key]; ok {
		return f.Data, nil
	}
	data, err := inputfile.Read(path, inputfile.Text)
	if err != nil {
		return nil, err
	}
	if b.Files == nil {
		b.Files = map[string]FileContent{}
	}
	b.Files[key] = FileContent{Shown: path, Data: data, Named: name}
	return data, nil
}

// keyOfPlant returns the key in Files of a file that the plant file names.
func (b *Bench) keyOfPlant(name string) string { return b.Plant.Text + ": " + name }

// Errorf returns an error at a scalar of the file.
func (b *Bench) Errorf(at yamlfile.Scalar, format string, args ...any) error {
	return NewReader(b.File).Errorf(at, format, args...)
}

// NewReader returns a reader of a file of a bench.
func NewReader(file string) *yamlfile.Reader {
	return &yamlfile.Reader{Origin: yamlfile.Origin{File: file, Owner: "bench"}}
}

// NewCommandReader returns a reader of the words of a command.
func NewCommandReader(name string) *yamlfile.Reader {
	return &yamlfile.Reader{Origin: yamlfile.Origin{File: name, Owner: "bench", Command: true}}
}

// Parse reads a bench file; dir is the folder searched first for its plant and databases, ""
// for an embedded bench.
func Parse(file, dir string, data []byte) (b *Bench, err error) {
	r := NewReader(file)
	err = r.Try(func() { b = readBench(r, dir, r.Document(data)) })
	if err == nil {
		b.text = data
	}
	return b, err
}

// SetPlant sets a parsed plant; the plant's file is not read then.
func (b *Bench) SetPlant(plant *plantfile.Draft) { b.draft = plant }

// FileText returns the content of the bench file.
func (b *Bench) FileText() []byte { return b.text }

// FromTree reads a bench like Parse, from a parsed YAML tree.
func FromTree(file, dir string, n yamlfile.Node) (b *Bench, err error) {
	r := NewReader(file)
	err = r.Try(func() { b = readBench(r, dir, n) })
	return b, err
}

func readBench(r *yamlfile.Reader, dir string, n yamlfile.Node) *Bench {
	s := r.Section(yamlfile.Root(n), "bench file", "bench", "about", "plant", "period", "scheme", "inputs_at", "timer", "spin",
		"cpu", "priority", "scheduler", "overrun", "tick_budget", "watchdog", "safe", "end", "control_unit", "unit", "start", "show", "page", "metrics", "network", "power", "buses")
	if old, ok := s["unit"]; ok {
		r.FailAt(old.KeyAt, "unit: this key is called control_unit")
	}
	need := func(ok bool, what string) {
		if !ok {
			r.FailAt(yamlfile.Pos{Line: 1, Col: 1}, "%s is missing", what)
		}
	}

	show := r.Section(s["show"], "show", "engine", "wheel", "outputs")
	b := &Bench{
		File: r.File, dir: dir,
		Name:      ReadTitle(r, r.Scalar(s["bench"], "bench"), "bench"),
		About:     r.Scalar(s["about"], "about").Text,
		Plant:     r.Scalar(s["plant"], "plant"),
		PeriodNs:  readNanoseconds(r, s["period"], "period", 100_000, 10e9),
		Scheme:    cmp.Or(r.Choice(s["scheme"], "scheme", "papers", "complete"), "papers"),
		AtArrival: r.Choice(s["inputs_at"], "inputs_at", "grid", "arrival") == "arrival",
		Timer:     cmp.Or(r.Choice(s["timer"], "timer", sched.Timerfd, sched.Nanosleep), sched.Timerfd),
		SpinNs:    readNanoseconds(r, s["spin"], "spin", 0, 1e6),
		CPU:       readCPU(r, s["cpu"]),
		Priority:  cmp.Or(r.Integer(s["priority"], "priority", 1, 99), 80),
		Deadline:  r.Choice(s["scheduler"], "scheduler", "fifo", "deadline") == "deadline",
		Overrun:   readOverrun(r, s["overrun"]),
		BudgetNs:  readNanoseconds(r, s["tick_budget"], "tick_budget", 1e3, 10e9),
		WatchNs:   readNanoseconds(r, s["watchdog"], "watchdog", 10e6, 3600e9),
		Safe:      readSafeState(r, s["safe"]),
		End:       readEnds(r, s["end"], !s["safe"].IsMissing()),
		Engine:    r.Scalar(show["engine"], "show: engine"),
		Wheel:     r.Scalar(show["wheel"], "show: wheel"),
		Shown:     readShown(r, show["outputs"]),
		Start:     ReadStart(r, s["start"]),
	}
	if page := s["page"]; !page.IsMissing() {
		var err error
		if b.Page, err = ParsePage(r.Scalar(page, "page").Text); err != nil {
			r.Fail(page, "page: %v", err)
		}
	}
	if p, ok := s["power"]; ok {
		if b.Power = readPower(r, p, dir); s["network"].IsMissing() {
			r.Fail(p, "power: it needs the ignition of the bench: add network: {start: off}")
		}
	}
	if n, ok := s["network"]; ok {
		b.Network = readNetwork(r, n)
	}
	if metrics := s["metrics"]; !metrics.IsMissing() {
		var err error
		if b.Metrics, err = parseTCP(r.Scalar(metrics, "metrics").Text); err != nil {
			r.Fail(metrics, "metrics: %v", err)
		}
	}
	if unit, ok := s["control_unit"]; ok {
		b.Unit, b.Settings, b.Program = ReadControlUnit(r, unit)
	}
	for _, bus := range r.FieldsOf(s["buses"], "buses") {
		b.Buses = append(b.Buses, *readBus(r, bus))
	}

	if b.Network != nil && b.Network.Signal.Text != "" {
		b.Network.carry(b.Buses)
	}
	need(b.Name != "", "the name (bench: NAME)")
	need(b.Plant.Text != "", "the plant (plant: NAME)")
	need(b.PeriodNs > 0, "the period (period: 5 ms)")
	need(len(b.Buses) > 0, "a bus (buses: {drive: {interface: vcan0, ...}})")
	b.completeWires(r)
	period := time.Duration(b.PeriodNs)
	if b.BudgetNs > b.PeriodNs {
		r.Fail(s["tick_budget"], "tick_budget: %v is longer than the period, %v", time.Duration(b.BudgetNs), period)
	}
	if b.SpinNs > b.PeriodNs/4 {
		r.Fail(s["spin"], "spin: %v is longer than a quarter of the period, %v", time.Duration(b.SpinNs), period)
	}
	return b
}

// ParsePage reads where the live page is: a TCP port, 0 for any free one, or "off".
func ParsePage(text string) (string, error) {
	if n, err := strconv.ParseUint(text, 10, 16); text != "off" && (err != nil || strconv.FormatUint(n, 10) != text) {
		return "", fmt.Errorf("%.40q is neither a TCP port, 0 to 65535, nor off", text)
	}
	return text, nil
}

// parseTCP reads a TCP address, PORT on 127.0.0.1 or ADDRESS:PORT; "off" is "".
func parseTCP(text string) (string, error) {
	if text == "off" {
		return "", nil
	}
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = net.JoinHostPort("127.0.0.1", text)
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return "", fmt.Errorf("%.60q is neither a TCP port, 0 to 65535, nor ADDRESS:PORT, like 10.0.0.7:9464 or [fd00::7]:9464, nor off", text)
	}
	return a.String(), nil
}

// Worst stalls of a target that works, which the watchdog must not take for a hang.
const (
	// stallRealtime is twice the stall that the kernel itself imposes on a real-time thread: its
	// throttling stops real-time threads for 50 ms in a second (sched_rt_runtime_us, sched(7)).
	stallRealtime = 100 * time.Millisecond

	// stallBestEffort is for a busy desktop or virtual machine: without a real-time kernel no stall
	// has a bound.
	stallBestEffort = 2 * time.Second
)

// Watchdog returns the longest time without a tick before the watchdog ends the target. Its default
// is the time of the missed ticks that the policy tolerates in a row, and the worst stall of the
// host, which depends on whether the run has all real-time rights.
func (b *Bench) Watchdog(realtime bool) time.Duration {
	if b.WatchNs != 0 {
		return time.Duration(b.WatchNs)
	}
	tolerated := time.Duration(int64(b.Overrun.Max+1) * b.PeriodNs)
	if realtime {
		return tolerated + stallRealtime
	}
	return tolerated + stallBestEffort
}

// ReadTitle checks the length of a name that begins lines of the status and of reports.
func ReadTitle(r *yamlfile.Reader, w yamlfile.Scalar, what string) string {
	const room = 64 // letters
	if n := len([]rune(w.Text)); n > room {
		r.FailAt(w.At(), "%s: the name has %d letters; at most %d fit", what, n, room)
	}
	return w.Text
}

// interfaceForm describes the names that isInterfaceName accepts.
const interfaceForm = "1 to 15 letters, digits, \".\", \"_\" and \"-\", like vcan0; or pair, or file:LOG, or file:LOG@CHANNEL"

// isInterfaceName reports whether name can be the interface of a bus: a name that is safe in
// a shell command, or an inherited descriptor, "fd:3".
func isInterfaceName(name string) bool {
	if log, ok := strings.CutPrefix(name, LogPrefix); ok {
		return log != "" && yamlfile.IsPrintable(log)
	}
	name, _ = strings.CutPrefix(name, "fd:")
	return can.LegalName(name)
}

// readCPU reads the number of a CPU; -1 for auto or a missing key.
func readCPU(r *yamlfile.Reader, f yamlfile.Field) int {
	if f.IsMissing() || r.Scalar(f, "cpu").Text == "auto" {
		return -1
	}
	return r.Integer(f, "cpu (auto, or its number)", 0, 1023)
}

// readOverrun reads "stop", "safe", "skip N" or "catchup N".
func readOverrun(r *yamlfile.Reader, f yamlfile.Field) (o rt.Overrun) {
	text := r.Scalar(f, "overrun").Text
	plain := map[string]rt.Policy{"stop": rt.Stop, "safe": rt.Safe}
	counted := map[string]rt.Policy{"skip": rt.Skip, "catchup": rt.CatchUp}
	policy, ok := plain[text]
	if word, count, _ := strings.Cut(text, " "); !ok {
		o.Max, _ = strconv.Atoi(count)
		policy, ok = counted[word]
		ok = ok && o.Max >= 1 && o.Max <= 1000
	}

	if !ok {
		r.Fail(f, "overrun: %q is not one of: stop, safe, skip N, catchup N (N: grid points at once, 1 to 1000)", text)
	}
	o.Policy = policy

	return o
}

// PlantPeriod is the default period of a plant without a bench.
const PlantPeriod = 5 * time.Millisecond

// FromPlant returns a bench without buses for a plant with a scenario; file is the name that
// ReadAny returned.
func FromPlant(name, file string, step time.Duration, scheme string) *Bench {
	b := &Bench{
		File: file, Name: name, Plant: yamlfile.Scalar{Text: name, Line: 1, Col: 1}, Scheme: scheme,
		Timer: sched.Timerfd, CPU: -1, Priority: 80,
		PeriodNs: int64(cmp.Or(step, PlantPeriod)),
	}
	if _, err := os.Stat(name); err == nil {
		b.dir, b.Plant.Text = filepath.Dir(name), filepath.Base(name)
	}
	return b
}
