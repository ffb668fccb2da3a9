package soak

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// soakState is all that a soak has seen so far: what its state file holds.
type soakState struct {
	Bench   string           `json:"bench"`    // its name
	Made    string           `json:"made_of"`  // SHA-256 of the bench file and of all that it names
	Events  string           `json:"events"`   // of the scenarios
	Options string           `json:"options"`  // in words
	Starts  int              `json:"starts"`   // of the soak
	Missing int64            `json:"missing"`  // between the starts, ns
	Cut     int              `json:"cut"`      // legs that have not ended by themselves
	CutNs   int64            `json:"cut_ns"`   // simulated time of them, about
	Going   *going           `json:"going"`    // the leg that runs; nil: none does
	Load    string           `json:"load"`     // what it was
	Binary  []*report.Binary `json:"binaries"` // that have run it
	Tally   tally            `json:"tally"`
	instant                  // when it was last written
}

// going is a leg that runs.
type going struct {
	Number int    `json:"leg"`
	Kind   string `json:"kind"`
	Ticks  int64  `json:"ticks"` // about
	Target int    `json:"target"`
	Began  uint32 `json:"target_began"` // see rt.Identity
}

// stateVersion is that of the state file; one that is larger is of a newer program.
const stateVersion = 1

// stateFile is a state as its file holds it.
type stateFile struct {
	Version int             `json:"lockstep_soak"`
	Sum     string          `json:"sha256"` // of State
	State   json.RawMessage `json:"state"`
}

// store keeps a state in a file, which is replaced as a whole.
type store struct {
	path string        // "" it is kept nowhere
	lock *os.File      // nobody else has it
	busy chan struct{} // full while the file is written
	bad  int           // how often it could not be written
	why  error
}

// openStore takes the state file for this process alone.
func openStore(path string) (*store, error) {
	s := &store{path: path, busy: make(chan struct{}, 1)}
	if path == "" {
		return s, nil
	}
	lock, err := host.OpenExclusive(path + ".lock")
	if errors.Is(err, host.ErrFileTaken) {
		pid, _ := os.ReadFile(path + ".lock")
		return nil, host.Exitf(3, "soak: state %s: another soak has it, process %s", path, cmp.Or(string(pid), "unknown"))
	}

	if err != nil {
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	_ = lock.Truncate(0) // it only helps who is refused
	_, _ = fmt.Fprintf(lock, "%d", os.Getpid())
	s.lock = lock
	return s, nil
}

// close gives the file back.
func (s *store) close() {
	s.wait()
	s.lock.Close() // of nil an error of no interest
}

// read reads the state; nil: there is none.
func (s *store) read() (*soakState, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	v, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("soak: state %s: %w; -fresh starts anew", s.path, err)
	}
	return v, nil
}

// parseState reads what marshal has written.
func parseState(data []byte) (*soakState, error) {
	var f stateFile
	var v soakState
	if err := json.Unmarshal(data, &f); err != nil || f.Version == 0 {
		return nil, errors.New("it is damaged, or no state of a soak")
	}
	if f.Version > stateVersion {
		return nil, fmt.Errorf("it is of version %d, from a newer lockstep; this one reads %d", f.Version, stateVersion)
	}
	var plain bytes.Buffer
	if json.Compact(&plain, f.State) != nil || bench.DigestOfBytes(plain.Bytes()) != f.Sum || json.Unmarshal(f.State, &v) != nil {
		return nil, errors.New("it is damaged: its sum is not that of what it holds")
	}
	return &v, nil
}

// marshal is the state as a file.
func (v *soakState) marshal() ([]byte, error) {
	v.instant = thisInstant()
	state, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stateFile{stateVersion, bench.DigestOfBytes(state), state})
}

// write replaces the file, so that after a loss of power there is the one before or this
// one. What goes wrong is kept: the next one may succeed.
func (s *store) write(v *soakState) {
	s.busy <- struct{}{}
	s.put(v.marshal())
}

// begin starts an asynchronous write; it does nothing while one is running.
func (s *store) begin(v *soakState) {
	select {
	case s.busy <- struct{}{}:
		go s.put(v.marshal()) // what it holds now: the write alone is not waited for
	default:
	}
}

// put ends a write.
func (s *store) put(data []byte, err error) {
	if err == nil && s.path != "" {
		err = replace(s.path, data)
	}
	if err != nil {
		s.bad++
		s.why = err
	}

	<-s.busy
}

// wait waits until nothing is being written.
func (s *store) wait() {
	s.busy <- struct{}{}
	<-s.busy
}

// writing tells whether the file is being written.
func (s *store) writing() bool { return len(s.busy) > 0 }

// replace writes a file beside path, and puts it in its place.
func replace(path string, data []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path + ".new") // a full disk has room again
		return err
	}

	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not every file system can
		dir.Close()
	}

	return nil
}

// fits says in what a state is of another soak; nil: in nothing.
func (v *soakState) fits(now *soakState) error {
	switch {
	case v.Bench != now.Bench:
		return fmt.Errorf("it is of bench %s, not of %s", v.Bench, now.Bench)
	case v.Made != now.Made:
		return fmt.Errorf("bench %s, its plant or its databases have changed since", v.Bench)
	case v.Events != now.Events:
		return errors.New("its scenarios have changed since")
	case v.Options != now.Options:
		return fmt.Errorf("it is of other options: %s; now %s", v.Options, now.Options)
	}

	return nil
}

// thisBinary is the version of this program, which is another one when its file is.
func thisBinary() string {
	sum, err := host.Executable()
	if err != nil {
		sum = "unreadable"
	}
	return fmt.Sprintf("lockstep %s, %.12s", host.Version(), sum)
}

// maxBinaries is how many versions are told apart; later ones count with the last.
const maxBinaries = 16

// binaryOf is the entry of a version.
func (v *soakState) binaryOf(version string) *report.Binary {
	same := func(b *report.Binary) bool { return b.Version == version }
	if len(v.Binary) == maxBinaries && !slices.ContainsFunc(v.Binary, same) {
		v.Binary[maxBinaries-1].Version, version = "other versions", "other versions"
	}
	return entry(&v.Binary, same, &report.Binary{Version: version})
}

// instant is a time that outlives this process: by the clock on the wall, which may be set,
// and by the one that begins with each boot.
type instant struct {
	Wall   int64  `json:"last_ns"` // ns since 1970
	Boot   string `json:"boot"`    // id
	Uptime int64  `json:"boot_ns"` // since it, ns
}

func thisInstant() instant {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // there since 2.6.39
	return instant{time.Now().UnixNano(), host.BootID(), t.Nano()}
}

// since is how long before now an instant was, ns: exact within a boot, and otherwise by the
// clock on the wall, at least the time since the boot.
func (now instant) since(then instant) int64 {
	if then.Boot == now.Boot && now.Boot != "" {
		return max(0, now.Uptime-then.Uptime)
	}
	if then.Boot == "" { // the file is of an earlier version
		return max(0, now.Wall-then.Wall)
	}
	return max(now.Uptime, now.Wall-then.Wall)
}

// tally adds legs up. It stays as large as it is, however many there are.
type tally struct {
	Legs   int           `json:"legs"` // done, broken ones included
	Broken int           `json:"broken"`
	Asked  int64         `json:"asked"`   // ticks of these
	WallNs int64         `json:"wall_ns"` // from their first grid points to their ends
	Sum    report.Report `json:"sum"`     // counts added, the largest of largest ones
	Late   *histograms   `json:"histograms"`

	Unit    ecu.Counts            `json:"unit"` // of the control unit, in legs in which no frame is disturbed on purpose
	Demands []*demandSum          `json:"demands"`
	Kinds   []*report.SegmentKind `json:"kinds"`
}

// histograms are those of a page.
type histograms struct{ Late, Work, Response sched.Histogram }

// demandSum is what became of one demand in all legs.
type demandSum struct {
	report.Criterion        // of the latest leg
	Legs             int    `json:"legs"`
	Broken           int    `json:"broken"`
	First            string `json:"first,omitempty"` // that was broken
}

// entry returns the element of a list that is meant, and adds made where there is none.
func entry[T any](list *[]*T, meant func(*T) bool, made *T) *T {
	i := slices.IndexFunc(*list, meant)
	if i < 0 {
		i = len(*list)
		*list = append(*list, made)
	}

	return (*list)[i]
}

// kind is the entry of a kind of legs.
func (t *tally) kind(name string) *report.SegmentKind {
	return entry(&t.Kinds, func(k *report.SegmentKind) bool { return k.Kind == name }, &report.SegmentKind{Kind: name})
}

// add takes a leg that has ended; v has its verdict.
func (t *tally) add(o *observation, v *report.Report) {
	p := o.r.Status
	t.Legs++
	t.Asked += o.r.Handover.Loop.Ticks
	t.WallNs += o.wall()
	if t.Late == nil {
		t.Late = &histograms{}
	}
	t.Late.Late.Merge(&p.Late)
	t.Late.Work.Merge(&p.Work)
	t.Late.Response.Merge(&p.Response)
	addReport(&t.Sum, v)

	k := t.kind(o.leg.kind)
	k.Segments, k.Ticks, k.Missed = k.Segments+1, k.Ticks+v.Ticks, k.Missed+v.Missed
	if s := o.r.Scenario.Scenario; s != nil {
		k.Faults += len(s.Faults)
	}
	if u, err := ecu.ParseCounts(v.Unit); err == nil && !o.disturbed() {
		addCounts[int64](&t.Unit, &u)
	}
	if err := v.Soak.Failed(); err != nil {
		t.broke(o.leg, k, firstLine(err))
	}
	for _, d := range v.Soak.Criteria {
		t.demand(o.leg, d)
	}
}

// broke counts a broken leg; the first of a kind is named.
func (t *tally) broke(l *leg, k *report.SegmentKind, why string) {
	t.Broken++
	k.Broken++
	k.First = cmp.Or(k.First, fmt.Sprintf("leg %d: %s", l.number, why))
}

// notBegun adds a leg of which nothing can be judged.
func (t *tally) notBegun(l *leg, err error) {
	t.Legs++
	k := t.kind(l.kind)
	k.Segments++
	t.broke(l, k, "it did not begin: "+firstLine(err))
	t.demand(l, report.Criterion{What: "start", Want: "it begins", Seen: firstLine(err)})
}

// demand adds what became of a demand in a leg.
func (t *tally) demand(l *leg, d report.Criterion) {
	e := entry(&t.Demands, func(e *demandSum) bool { return e.What == d.What }, &demandSum{})
	e.Criterion = d
	if e.Legs++; !d.Held {
		e.Broken++
		e.First = cmp.Or(e.First, fmt.Sprintf("leg %d, %s: demanded %s; seen %s", l.number, l.kind, d.Want, d.Seen))
	}
}

// addCounts adds the counts of a struct, which are its fields of type N: uint64 in a report.
func addCounts[N uint64 | int64, T any](sum, v *T) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(v).Elem()
	for i := range to.NumField() {
		if n, ok := to.Field(i).Addr().Interface().(*N); ok {
			*n += from.Field(i).Interface().(N)
		}
	}
}

// addReport adds the counts of v; what is the same in all runs is v's.
func addReport(r *report.Report, v *report.Report) {
	addCounts[uint64](r, v)
	if r.Usage == nil {
		r.Usage = &report.Usage{}
	}
	if v.Usage != nil {
		addCounts[uint64](r.Usage, v.Usage)
	}
	r.LagMax, r.Lag, r.Still = max(r.LagMax, v.LagMax), v.Lag, r.Still+v.Still
	r.SafeFrames, r.SimTime = r.SafeFrames+v.SafeFrames, r.SimTime+v.SimTime
	r.Plant, r.Bench, r.Kernel, r.StepNs, r.BudgetNs, r.Overrun = v.Plant, v.Bench, v.Kernel, v.StepNs, v.BudgetNs, v.Overrun
	r.BestEffort = r.BestEffort || v.BestEffort
	for i, why := range v.BestEffortWhy {
		if !slices.Contains(r.BestEffortWhy, why) && len(r.BestEffortWhy) < worstRoom {
			r.BestEffortWhy = append(r.BestEffortWhy, why)
			if i < len(v.BestEffortHelp) && !slices.Contains(r.BestEffortHelp, v.BestEffortHelp[i]) {
				r.BestEffortHelp = append(r.BestEffortHelp, v.BestEffortHelp[i])
			}
		}
	}

	r.Ledger = append(r.Ledger, v.Ledger...)
	slices.SortStableFunc(r.Ledger, func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) })
	r.Ledger = slices.Clone(r.Ledger[:min(len(r.Ledger), worstRoom)])
}

// worstRoom is how many of the latest ticks the report of a soak lists.
const worstRoom = 32

// report is that of all legs, without a verdict; unit is the control unit's name.
func (t *tally) report(unit string) *report.Report {
	v := t.Sum
	if v.BestEffortWhy == nil {
		v.BestEffortWhy = []string{}
	}
	if t.Late != nil {
		v.SetSpreads(&t.Late.Late, &t.Late.Work, &t.Late.Response)
	}
	if t.Unit != (ecu.Counts{}) {
		v.Unit = unit + ": " + t.Unit.String()
	}
	return &v
}

// verdict is that on all legs; length is how long they are to be together.
func (t *tally) verdict(length time.Duration, load string) *report.Verdict {
	d := &report.Verdict{Load: load}
	for _, e := range t.Demands {
		sum := e.Criterion
		if sum.Held = e.Broken == 0; t.Legs > 1 {
			sum.Seen = fmt.Sprintf("held in %d of %d legs; in the last one %s", e.Legs-e.Broken, e.Legs, e.Seen)
		}
		if e.What == "ticks" {
			asked := int64(length) / t.Sum.StepNs
			sum.Held = sum.Held && t.Asked >= asked
			sum.Want = ticksWanted(asked, t.Sum.StepNs, length)
			sum.Seen = fmt.Sprintf("%d in %.3f s", t.Sum.Ticks, float64(t.WallNs)/1e9)
		}

		if e.Broken > 0 && t.Legs > 1 {
			sum.Seen += "; first broken in " + e.First
		}
		d.Criteria = append(d.Criteria, sum)
	}

	if t.Legs == 0 {
		d.AddCriterion(false, "ticks", length.String(), "no leg is done")
	}
	d.Pass = d.Failed() == nil
	return d
}

// ticksWanted is how many ticks are demanded of a length.
func ticksWanted(ticks, stepNs int64, length time.Duration) string {
	return fmt.Sprintf("%d, %v / %g ms", ticks, length, float64(stepNs)/1e6)
}
