package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/inputfile"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
)

// summed adds n segments of five minutes to a new state; segment i has a wake-up latency of i ns.
// It returns the last observation and the state.
func summed(t *testing.T, n int, do func(i int, s *observation, v *report.Report)) (*observation, *soakState) {
	t.Helper()
	base, report := soaked(t)
	s := &observation{}
	st := &soakState{Bench: "b", Made: "m"}
	for i := range n {
		v, usage := *report, *report.Usage
		*s, v.Usage = *base, &usage
		s.r.Status = new(rt.StatusBlock)
		s.r.Status.StartNs.Store(1)
		s.r.Status.Late.Record(int64(i))
		if do != nil {
			do(i, s, &v)
		}
		v.Soak = s.verdict(&v)
		s.segment = &segment{number: i + 1, kind: plainSegment}
		st.Totals.add(s, &v)
	}
	return s, st
}

// reread writes a state to a file format and parses it again.
func reread(t *testing.T, st *soakState) *soakState {
	t.Helper()
	data, err := st.marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseState(data)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestTotalsContinueAcrossTheStateFile(t *testing.T) {
	_, st := summed(t, 3, nil)
	st = reread(t, st)
	v := st.Totals.report("powershift")
	d := st.Totals.verdict(15*time.Minute, "none")
	if !d.Pass || v.Ticks != 180_000 || v.Missed != 27 || v.TxFrames != 3*(120_000-18) || v.TxLost != 54 || v.RxFrames != 177_000 || v.SimTime != 0 ||
		st.Totals.Late.Late.N() != 3 || v.Late.Max != 2 || v.Unit != "powershift: 88500 cycles sent, 9 missed, 0 frames dropped, 270000 frames received, 0 malformed, 0 lost by their counters" {
		t.Errorf("pass %t, broken %v, %+v", d.Pass, broken(d), v)
	}
	const held = "held in 3 of 3 legs; in the last one "
	want := map[string]string{
		"ticks": "180000 in 900.003 s", "missed ticks": held + "9, 0.015 %, at most 5 at once", "end": held + "done",
		"ledger": held + "4 of 4 late ticks, 9 of 9 points", "target memory": held + "50000 kB",
		"frames out": held + "119982 sent, 0 dropped, 0 refused, 18 of missed ticks",
	}
	for _, e := range d.Criteria {
		if w := want[e.What]; w != "" && w != e.Seen {
			t.Errorf("%s: seen %q, want %q", e.What, e.Seen, w)
		}
	}
}

func TestVerdictNamesTheFirstBrokenSegment(t *testing.T) {
	_, st := summed(t, 5, func(i int, s *observation, v *report.Report) {
		if i == 2 {
			v.Usage.MinorFaults = 7
		}
		if i >= 2 {
			v.Usage.Allocs++
		}
	})
	d := reread(t, st).Totals.verdict(25*time.Minute, "none")
	if got := broken(d); !slices.Equal(got, []string{"allocations", "page faults"}) {
		t.Errorf("broken %v", got)
	}
	want := []string{
		"soak: allocations: expected 0, and 0 GC cycles; saw held in 2 of 5 legs; in the last one 1, 0; first broken in leg 3, plain: expected 0, and 0 GC cycles; saw 1, 0",
		"soak: page faults: expected 0; saw held in 4 of 5 legs; in the last one 0 minor, 0 major; first broken in leg 3, plain: expected 0; saw 7 minor, 0 major",
	}
	if err := d.Failed(); err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("%v", err)
	}
	if k := st.Totals.Kinds[0]; st.Totals.Broken != 3 || k.Broken != 3 || k.Segments != 5 || !strings.HasPrefix(k.First, "leg 3: soak: allocations: ") {
		t.Errorf("%d broken, %+v", st.Totals.Broken, k)
	}
}

func TestSoakWithTooFewSegmentsFailsByItsTicks(t *testing.T) {
	_, st := summed(t, 2, nil)
	if got := broken(st.Totals.verdict(15*time.Minute, "none")); !slices.Equal(got, []string{"ticks"}) {
		t.Errorf("broken %v", got)
	}
	if d := (&totals{}).verdict(time.Hour, "none"); d.Pass || !slices.Equal(broken(d), []string{"ticks"}) {
		t.Errorf("without a leg: pass %t, broken %v", d.Pass, broken(d))
	}
}

func TestStateFileDoesNotGrowWithTheSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	size := func(n int) int {
		_, st := summed(t, n, func(i int, s *observation, v *report.Report) {
			for range 2000 {
				s.r.Status.Late.Record(int64(random.ExpFloat64() * 1e5))
				s.r.Status.Work.Record(int64(random.ExpFloat64() * 1e5))
			}
			v.BestEffortWhy = []string{fmt.Sprintf("reason %d", i)}
			for j := range 50 {
				v.Ledger = append(v.Ledger, report.LateTick{Tick: int64(j), LateNs: random.Int64N(1e9)})
			}
			s.sampleErr = fmt.Errorf("process %d has ended", i)
		})
		data, err := st.marshal()
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	few, many := size(40), size(120)
	if many > few+few/4 || many > 64<<10 {
		t.Errorf("%d bytes after 40 legs, %d after 120", few, many)
	}
}

func TestDamagedForeignOrNewerStateFileIsRefused(t *testing.T) {
	_, st := summed(t, 1, nil)
	good, err := st.marshal()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state")
	for _, c := range []struct {
		data []byte
		want string
	}{
		{good[:len(good)/2], "file is damaged, or not the state of a soak"},
		{nil, "file is damaged, or not the state of a soak"},
		{[]byte("{}"), "file is damaged, or not the state of a soak"},
		{[]byte(`{"plant": "powershift", "ticks": 3}`), "file is damaged, or not the state of a soak"},
		{[]byte("time[s],v[m/s]\n0,1\n"), "file is damaged, or not the state of a soak"},
		{bytes.Replace(good, []byte(`"asked":60000`), []byte(`"asked":90000`), 1), "file is damaged: wrong SHA-256"},
		{bytes.Replace(good, []byte(`{"lockstep_soak":1`), []byte(`{"lockstep_soak":2`), 1), "file has version 2, from a newer lockstep; this one reads version 1"},
	} {
		if bytes.Equal(c.data, good) {
			t.Fatalf("nothing was changed for %q", c.want)
		}
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		s := &store{path: path}
		if _, err := s.read(); err == nil || err.Error() != "soak: state "+path+": "+c.want+"; -fresh starts anew" {
			t.Errorf("%.40q: %v", c.data, err)
		}
	}
}

func TestStateOfAnotherSoakIsRefused(t *testing.T) {
	old := soakState{Bench: "a", Made: "1", Events: "2", Options: "legs of 10m0s"}
	for _, c := range []struct {
		do   func(s *soakState)
		want string
	}{
		{func(s *soakState) { s.Bench = "b" }, "file is of bench a, not of b"},
		{func(s *soakState) { s.Made = "x" }, "bench a, its plant or its databases have changed since"},
		{func(s *soakState) { s.Events = "x" }, "the scenarios have changed since"},
		{func(s *soakState) { s.Options = "legs of 1m0s" }, "file is of other options: legs of 10m0s; now legs of 1m0s"},
	} {
		now := old
		c.do(&now)
		if err := old.checkSame(&now); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := old.checkSame(&old); err != nil {
		t.Error(err)
	}
}

func TestStateFileIsLockedByOneSoak(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("soak: state %s: another soak has it, process %d", path, os.Getpid())
	if _, err := openStore(path); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	first.close()
	second, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	second.close()
}

func TestFailedWriteLeavesTheOldStateFile(t *testing.T) {
	dir := t.TempDir()
	_, st := summed(t, 1, nil)
	s := &store{path: filepath.Join(dir, "state"), busy: make(chan struct{}, 1)}
	s.write(st)
	before, err := os.ReadFile(s.path)
	if err != nil || s.failures != 0 {
		t.Fatal(err, s.lastErr)
	}
	for _, write := range []func(*soakState){s.beginWrite, s.write} {
		if err := os.MkdirAll(s.path+".part/x", 0o755); err != nil { // no file can have this name
			t.Fatal(err)
		}
		write(st)
		s.wait()
	}
	if s.failures != 2 || !errors.Is(s.lastErr, unix.EISDIR) {
		t.Errorf("%d failed: %v", s.failures, s.lastErr)
	}
	if err := os.RemoveAll(s.path + ".part"); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(s.path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("%v: the state file has changed", err)
	}
	if list, _ := filepath.Glob(dir + "/*"); len(list) != 1 {
		t.Errorf("files left: %q", list)
	}
	s.write(st)
	if back, err := s.read(); err != nil || back.Totals.Segments != 1 {
		t.Errorf("with a free name again: %v", err)
	}
}

func TestVersionsOfTheProgramAreCountedSeparately(t *testing.T) {
	st := &soakState{}
	for i := range 40 {
		st.binary(fmt.Sprint(i)).Segments++
	}
	st.binary("3").Segments++
	segments := 0
	for _, b := range st.Binary {
		segments += b.Segments
	}
	if len(st.Binary) != maxBinaries || segments != 41 || st.Binary[3].Segments != 2 || st.Binary[maxBinaries-1].Segments != 25 {
		data, _ := json.Marshal(st.Binary)
		t.Errorf("%d segments, %s; want 41 in %d versions", segments, data, maxBinaries)
	}
}

// The folder may hold records of an earlier soak with higher numbers, and one that a bus plays.
func TestLatestRecordsArePreservedByTime(t *testing.T) {
	dir := t.TempDir()
	k := &series{Soak: &Soak{Keep: 2, Options: supervisor.Options{Record: dir}}}
	now := time.Now()
	for i, number := range []int{40, 41, 42, 1} {
		file := filepath.Join(dir, fmt.Sprintf("leg-%06d.rec", number))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now, now.Add(time.Duration(i-10)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	played, err := inputfile.Open(filepath.Join(dir, "leg-000040.rec"), inputfile.Record)
	if err != nil {
		t.Fatal(err)
	}
	defer played.Close()
	k.pruneRecords(&report.Report{Record: filepath.Join(dir, "leg-000001.rec"), Soak: &report.Verdict{Pass: true}})
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if !slices.Equal(left, []string{"leg-000001.rec", "leg-000040.rec", "leg-000042.rec"}) {
		t.Errorf("records left: %q", left)
	}
}

// A plain segment that Ctrl-C ends before minJudged counts as cut.
func TestTooShortSegmentCountsAsCut(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	k := &series{Soak: &Soak{Options: supervisor.Options{Out: null}}, state: &soakState{}, period: 5e6}
	r := &supervisor.Session{}
	r.Stop = "interrupt"
	k.addSegment(&observation{soak: k.Soak, r: r, segment: &segment{number: 1, kind: plainSegment}}, &report.Report{Ticks: 199})
	if st := k.state; st.Cut != 1 || st.CutNs != 995e6 || st.Totals.Segments != 0 || st.Totals.Asked != 0 {
		t.Errorf("%+v", st)
	}
}

func TestLastSegmentLastsAtLeastMinDuration(t *testing.T) {
	r := &schedule{longest: 120_000, shortest: 2000}
	for left, want := range map[int64]int64{1: 2000, 2000: 2000, 2001: 2001, 180_000: 180_000, 180_001: 120_000} {
		if l := r.segment(1, left); l.ticks != want {
			t.Errorf("%d ticks left: a segment of %d, want %d", left, l.ticks, want)
		}
	}
}

// In a shared folder another user may have made the files beside the state.
func TestFilesBesideTheStateAreNotWrittenThroughLinks(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "s.json"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path + ".lock", path + ".part"} {
		if err := os.Symlink(victim, name); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := openStore(path); err == nil {
		s.close()
		t.Error("the lock is a link")
	}
	if err := host.Replace(path, []byte("state")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("written through a link: %v", err)
	}
	if text, err := os.ReadFile(victim); string(text) != "own" {
		t.Errorf("the file behind the links has %q, %v", text, err)
	}
}
