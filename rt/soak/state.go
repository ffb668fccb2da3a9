package soak

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/inputfile"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// soakState is the state of a soak, as its state file holds it.
type soakState struct {
	Bench   string           `json:"bench"`    // name of the bench
	Made    string           `json:"made_of"`  // SHA-256 of the bench file and of the files that it names
	Events  string           `json:"events"`   // SHA-256 of the scenarios
	Options string           `json:"options"`  // see series.options
	Starts  int              `json:"starts"`   // starts of the soak
	Missing int64            `json:"missing"`  // time between the starts, ns
	Cut     int              `json:"cut"`      // interrupted segments
	CutNs   int64            `json:"cut_ns"`   // simulated time of interrupted segments, ns, about
	Running *running         `json:"going"`    // the running segment; nil: none
	Load    string           `json:"load"`     // description of the load
	Binary  []*report.Binary `json:"binaries"` // versions that ran segments
	Totals  totals           `json:"tally"`
	instant                  // time of the last write
}

// running is the running segment.
type running struct {
	Number int    `json:"leg"`
	Kind   string `json:"kind"`
	Ticks  int64  `json:"ticks"`        // ticks so far, about
	Target int    `json:"target"`       // process id
	Began  uint32 `json:"target_began"` // start of the process, see rt.Identity
}

// stateVersion is the version of the state file that this program reads and writes.
const stateVersion = 1

// stateFile is the content of a state file.
type stateFile struct {
	Version int             `json:"lockstep_soak"`
	Sum     string          `json:"sha256"` // SHA-256 of State
	State   json.RawMessage `json:"state"`
}

// store writes the state file, which is replaced as a whole.
type store struct {
	path     string        // state file; "": none
	lock     *os.File      // lock file
	busy     chan struct{} // full during a write
	failures int           // failed writes
	lastErr  error         // error of the last failed write
}

// openStore locks the state file for this process.
func openStore(path string) (*store, error) {
	s := &store{path: path, busy: make(chan struct{}, 1)}
	if path == "" {
		return s, nil
	}
	var wrong *bench.KindError // -fresh overwrites a damaged state, but no file of another kind
	damaged := []string{"", "empty", "JSON", "binary"}
	if err := bench.CheckFile("soak -state", path, "state"); errors.As(err, &wrong) && !slices.Contains(damaged, wrong.Kind) {
		return nil, err
	}
	if old, err := inputfile.Open(path, inputfile.Head); err == nil {
		old.Close()
	} else if !errors.Is(err, fs.ErrNotExist) { // a device or a pipe must not be replaced
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	lock, err := host.OpenExclusive(path+".lock", unix.O_NOFOLLOW)
	if errors.Is(err, host.ErrFileTaken) {
		pid, _ := host.ReadOwn(path + ".lock")
		return nil, host.Exitf(3, "soak: state %s: another soak has it, process %s", path, cmp.Or(host.PrintableLine(string(pid)), "unknown"))
	}

	if err != nil {
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	_ = lock.Truncate(0) // the process id is only for the message above
	_, _ = fmt.Fprintf(lock, "%d", os.Getpid())
	s.lock = lock
	return s, nil
}

// close unlocks the state file.
func (s *store) close() {
	s.wait()
	s.lock.Close() // nil: returns an error
}

// read reads the state file; nil: there is none.
func (s *store) read() (*soakState, error) {
	data, err := inputfile.Read(s.path, inputfile.State)
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

// parseState parses a state file.
func parseState(data []byte) (*soakState, error) {
	var f stateFile
	var v soakState
	if err := json.Unmarshal(data, &f); err != nil || f.Version == 0 {
		return nil, errors.New("file is damaged, or not the state of a soak")
	}
	if f.Version > stateVersion {
		return nil, fmt.Errorf("file has version %d, from a newer lockstep; this one reads version %d", f.Version, stateVersion)
	}
	var plain bytes.Buffer
	if json.Compact(&plain, f.State) != nil || bench.DigestOfBytes(plain.Bytes()) != f.Sum || json.Unmarshal(f.State, &v) != nil {
		return nil, errors.New("file is damaged: wrong SHA-256")
	}
	return &v, nil
}

// marshal formats the state file.
func (v *soakState) marshal() ([]byte, error) {
	v.instant = thisInstant()
	state, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stateFile{stateVersion, bench.DigestOfBytes(state), state})
}

// write replaces the state file, so that a loss of power leaves the old file or the new one. It
// counts an error, because the next write may succeed.
func (s *store) write(v *soakState) {
	s.busy <- struct{}{}
	s.finishWrite(v.marshal())
}

// beginWrite starts an asynchronous write; it does nothing while one is running.
func (s *store) beginWrite(v *soakState) {
	select {
	case s.busy <- struct{}{}:
		go s.finishWrite(v.marshal()) // marshal runs here, only the write in the goroutine
	default:
	}
}

// finishWrite writes the file and ends a write.
func (s *store) finishWrite(data []byte, err error) {
	if err == nil && s.path != "" {
		err = host.Replace(s.path, data)
	}
	if err != nil {
		s.failures++
		s.lastErr = err
	}

	<-s.busy
}

// wait waits for the end of a running write.
func (s *store) wait() {
	s.busy <- struct{}{}
	<-s.busy
}

// writing reports whether a write is running.
func (s *store) writing() bool { return len(s.busy) > 0 }

// checkSame checks that state v is of the same soak as now.
func (v *soakState) checkSame(now *soakState) error {
	switch {
	case v.Bench != now.Bench:
		return fmt.Errorf("file is of bench %s, not of %s", v.Bench, now.Bench)
	case v.Made != now.Made:
		return fmt.Errorf("bench %s, its plant or its databases have changed since", v.Bench)
	case v.Events != now.Events:
		return errors.New("the scenarios have changed since")
	case v.Options != now.Options:
		return fmt.Errorf("file is of other options: %s; now %s", v.Options, now.Options)
	}

	return nil
}

// thisBinary returns the version of this program with the first digits of its file's SHA-256.
func thisBinary() string {
	sum, err := host.Executable()
	if err != nil {
		sum = "unreadable"
	}
	return fmt.Sprintf("lockstep %s, %.12s", host.Version(), sum)
}

// maxBinaries is the maximum number of versions in a report; further ones share the last entry.
const maxBinaries = 16

// binary returns the entry of a version.
func (v *soakState) binary(version string) *report.Binary {
	same := func(b *report.Binary) bool { return b.Version == version }
	if len(v.Binary) == maxBinaries && !slices.ContainsFunc(v.Binary, same) {
		v.Binary[maxBinaries-1].Version, version = "other versions", "other versions"
	}
	return entry(&v.Binary, same, &report.Binary{Version: version})
}

// instant is a time that other processes can compare: by the real-time clock, which may be set, and
// by the clock since boot.
type instant struct {
	Wall   int64  `json:"last_ns"` // ns since 1970
	Boot   string `json:"boot"`    // id of the boot
	Uptime int64  `json:"boot_ns"` // time since the boot, ns
}

func thisInstant() instant {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // exists since Linux 2.6.39
	return instant{time.Now().UnixNano(), host.BootID(), t.Nano()}
}

// since returns the time from then to now, ns. Within one boot it is exact. Otherwise it is by the
// real-time clock, and at least the time since the boot.
func (now instant) since(then instant) int64 {
	if then.Boot == now.Boot && now.Boot != "" {
		return max(0, now.Uptime-then.Uptime)
	}
	if then.Boot == "" { // written by an earlier version
		return max(0, now.Wall-then.Wall)
	}
	return max(now.Uptime, now.Wall-then.Wall)
}

// totals are the sums over segments. Their size does not grow with the number of segments.
type totals struct {
	Segments int           `json:"legs"`    // segments that have ended, broken ones included
	Broken   int           `json:"broken"`  // of Segments, those in which a criterion did not hold
	Asked    int64         `json:"asked"`   // planned ticks of Segments
	WallNs   int64         `json:"wall_ns"` // real time from first grid point to end, summed, ns
	Sum      report.Report `json:"sum"`     // sums of counts, maxima of maxima
	Late     *histograms   `json:"histograms"`

	Unit     ecu.Counts            `json:"unit"` // sums over segments without disturbed frames
	Criteria []*criterionTotals    `json:"demands"`
	Kinds    []*report.SegmentKind `json:"kinds"`
}

// histograms are the sums of the histograms of a status block.
type histograms struct{ Late, Work, Response sched.Histogram }

// criterionTotals is one criterion over all segments.
type criterionTotals struct {
	report.Criterion        // result in the last segment
	Segments         int    `json:"legs"`            // segments checked
	Broken           int    `json:"broken"`          // of Segments, those in which it did not hold
	First            string `json:"first,omitempty"` // first segment in which it did not hold
}

// entry returns the first element of a list for which matches is true; it appends made if there is
// none.
func entry[T any](list *[]*T, matches func(*T) bool, made *T) *T {
	i := slices.IndexFunc(*list, matches)
	if i < 0 {
		i = len(*list)
		*list = append(*list, made)
	}

	return (*list)[i]
}

// kind returns the entry of a kind of segment.
func (t *totals) kind(name string) *report.SegmentKind {
	return entry(&t.Kinds, func(k *report.SegmentKind) bool { return k.Kind == name }, &report.SegmentKind{Kind: name})
}

// add adds a segment that has ended; v is its report with the verdict.
func (t *totals) add(o *observation, v *report.Report) {
	p := o.r.Status
	t.Segments++
	t.Asked += o.r.Handover.Loop.Ticks
	t.WallNs += o.wall()
	if t.Late == nil {
		t.Late = &histograms{}
	}
	t.Late.Late.Merge(&p.Late)
	t.Late.Work.Merge(&p.Work)
	t.Late.Response.Merge(&p.Response)
	addReport(&t.Sum, v)

	k := t.kind(o.segment.kind)
	k.Segments, k.Ticks, k.Missed = k.Segments+1, k.Ticks+v.Ticks, k.Missed+v.Missed
	if s := o.r.Scenario.Scenario; s != nil {
		k.Faults += len(s.Faults)
	}
	if u, err := ecu.ParseCounts(v.Unit); err == nil && !o.disturbed() {
		addCounts[int64](&t.Unit, &u)
	}
	if err := v.Soak.Failed(); err != nil {
		t.countBroken(o.segment, k, firstLine(err))
	}
	for _, d := range v.Soak.Criteria {
		t.addCriterion(o.segment, d)
	}
}

// countBroken counts a broken segment. The entry of its kind names the first one.
func (t *totals) countBroken(l *segment, k *report.SegmentKind, why string) {
	t.Broken++
	k.Broken++
	k.First = cmp.Or(k.First, fmt.Sprintf("leg %d: %s", l.number, why))
}

// refuse adds a segment that could not begin.
func (t *totals) refuse(l *segment, err error) {
	t.Segments++
	k := t.kind(l.kind)
	k.Segments++
	t.countBroken(l, k, "it could not begin: "+firstLine(err))
	t.addCriterion(l, report.Criterion{What: "start", Want: "the leg begins", Seen: firstLine(err)})
}

// addCriterion adds the result of a criterion in a segment.
func (t *totals) addCriterion(l *segment, d report.Criterion) {
	e := entry(&t.Criteria, func(e *criterionTotals) bool { return e.What == d.What }, &criterionTotals{})
	e.Criterion = d
	if e.Segments++; !d.Held {
		e.Broken++
		e.First = cmp.Or(e.First, fmt.Sprintf("leg %d, %s: expected %s; saw %s", l.number, l.kind, d.Want, d.Seen))
	}
}

// addCounts adds the counts of v to sum. Its counts are the fields of type N: uint64 in a report.
func addCounts[N uint64 | int64, T any](sum, v *T) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(v).Elem()
	for i := range to.NumField() {
		if n, ok := to.Field(i).Addr().Interface().(*N); ok {
			*n += from.Field(i).Interface().(N)
		}
	}
}

// addReport adds the counts of v to r and copies the fields that are the same in all runs.
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
		if !slices.Contains(r.BestEffortWhy, why) && len(r.BestEffortWhy) < maxWorstTicks {
			r.BestEffortWhy = append(r.BestEffortWhy, why)
			if i < len(v.BestEffortHelp) && !slices.Contains(r.BestEffortHelp, v.BestEffortHelp[i]) {
				r.BestEffortHelp = append(r.BestEffortHelp, v.BestEffortHelp[i])
			}
		}
	}

	r.Ledger = append(r.Ledger, v.Ledger...)
	slices.SortStableFunc(r.Ledger, func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) })
	r.Ledger = slices.Clone(r.Ledger[:min(len(r.Ledger), maxWorstTicks)])
}

// maxWorstTicks is how many of the worst ticks the report of a soak lists.
const maxWorstTicks = 32

// report returns the report on all segments, without a verdict; unit is the control unit's name.
func (t *totals) report(unit string) *report.Report {
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

// verdict returns the verdict on all segments of a soak of this length.
func (t *totals) verdict(length time.Duration, load string) *report.Verdict {
	d := &report.Verdict{Load: load}
	for _, e := range t.Criteria {
		sum := e.Criterion
		if sum.Held = e.Broken == 0; t.Segments > 1 {
			sum.Seen = fmt.Sprintf("held in %d of %d legs; in the last one %s", e.Segments-e.Broken, e.Segments, e.Seen)
		}
		if e.What == "ticks" {
			asked := int64(length) / t.Sum.StepNs
			sum.Held = sum.Held && t.Asked >= asked
			sum.Want = expectedTicks(asked, t.Sum.StepNs, length)
			sum.Seen = fmt.Sprintf("%d in %.3f s", t.Sum.Ticks, float64(t.WallNs)/1e9)
		}

		if e.Broken > 0 && t.Segments > 1 {
			sum.Seen += "; first broken in " + e.First
		}
		d.Criteria = append(d.Criteria, sum)
	}

	if t.Segments == 0 {
		d.AddCriterion(false, "ticks", length.String(), "no leg is done")
	}
	d.Pass = d.Failed() == nil
	return d
}

// expectedTicks formats the number of ticks expected in a length.
func expectedTicks(ticks, stepNs int64, length time.Duration) string {
	return fmt.Sprintf("%d, %v / %g ms", ticks, length, float64(stepNs)/1e6)
}
