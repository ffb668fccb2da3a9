//go:build long

package labs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/rt/report"
)

// Settings of the random faults: how long they come, and the number that determines them.
const (
	faultsVar = "LOCKSTEP_FAULTS"
	seedVar   = "LOCKSTEP_FAULTS_SEED"
)

// faultRun is the length of one run of the random faults. A failure then names a short run.
const faultRun = 90 * time.Second

// The demo bench runs at 1 ms under a load, again and again, while faults come at random. The report
// or the record must name each fault, and the bus must carry no frame that the report does not
// count. Sequence and times of the faults follow from the seed; the emulator's speed does not.
func TestLabRandomFaultsAreAllNamed(t *testing.T) {
	d, err := time.ParseDuration(cmp.Or(os.Getenv(faultsVar), "1h"))
	if err != nil {
		t.Fatalf("%s: %v", faultsVar, err)
	}
	m := lab.PreemptRT
	m.Limit = 2*d + 10*time.Minute
	if !lab.Inside(t, m, "candump") {
		return
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVar), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVar, err)
	}
	lab.Start(t, "nice", "-n", "19", "sh", "-c", "while :; do head -c 9000000 /dev/zero; done >/dev/null") // the load
	totals, begin := map[string]int{}, time.Now()
	for run := uint64(0); time.Since(begin) < d && !t.Failed(); run++ {
		t.Run(fmt.Sprintf("seed %d run %d", seed, run), func(t *testing.T) {
			s := &faultedRun{T: t, random: rand.New(rand.NewPCG(seed, run)), totals: totals, dir: t.TempDir()}
			s.perform(min(faultRun, d-time.Since(begin)))
		})
	}
	t.Logf("%v of faults with seed %d: %v", time.Since(begin).Round(time.Second), seed, totals)
}

// faultedRun is one run with random faults.
type faultedRun struct {
	*testing.T
	random *rand.Rand
	totals map[string]int // faults of all runs, by name
	dir    string         // small disk with the record

	bench  *rtBench
	unit   *lab.Process
	dump   *lab.Process
	counts map[string]int  // faults of this run, by name
	halts  []time.Duration // stops of the target
	steps  []time.Duration // steps of the clock
	floods map[uint32]int  // frames of a flood that the kernel took, by the identifier of the flood
	safe   bool            // the end is one after which safe values are sent
	ending string          // end, as the report names it
}

// between returns a random duration.
func (s *faultedRun) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.random.Int64N(int64(b-a)))
}

// perform runs the bench for at least d, injects faults, ends the run and checks its results.
func (s *faultedRun) perform(d time.Duration) {
	smallDisk(s.T, s.dir, "size=48m")
	s.Cleanup(killTargets)
	s.dump = lab.StartCandump(s.T, "can1")
	before := lab.CardCounters(s.T)["can0 rx_over_errors"]
	s.counts, s.floods, s.unit = map[string]int{}, map[uint32]int{}, lab.StartUnit(s.T, "can1")
	timeouts := "    messages: {TCU_Pressure_1: {cycle: 10 ms, timeout: 200 ms}, TCU_Pressure_2: {cycle: 10 ms, timeout: 200 ms}}\n"
	edits := []lab.Edit{{"period: 5 ms", "period: 1 ms"}, {"    receive:\n", timeouts + "    receive:\n"}}
	s.bench = &rtBench{Bench: lab.StartDemoOn(s.T, "can0", lab.UntilStopped, edits, "-record", s.record())}
	lab.AwaitFor(s.T, "the bench ticks", 5*time.Minute, func() bool { return s.ended() || strings.Contains(s.bench.Out.String(), "missed") })
	if !s.ended() {
		s.bench.AwaitTicks(1) // frames from before the first tick are not of the run
	}
	faults := []struct {
		name   string
		inject func()
	}{
		{"unit killed", s.killUnit}, {"bus down", s.busDown}, {"target stopped", s.stopTarget},
		{"disk full", s.fillDisk}, {"clock stepped", s.stepClock}, {"flood", s.flood},
	}
	for begin := time.Now(); time.Since(begin) < d && !s.ended(); time.Sleep(s.between(time.Second, 3*time.Second)) {
		f := faults[s.random.IntN(len(faults))]
		s.Logf("%6.1f s: %s", time.Since(begin).Seconds(), f.name)
		s.counts[f.name]++
		s.totals[f.name]++
		f.inject()
	}
	if !s.ended() {
		s.end()
	}
	r := s.report()
	s.checkReport(r)
	s.checkWire(r)
	s.checkRecord(lab.CardCounters(s.T)["can0 rx_over_errors"] - before)
}

func (s *faultedRun) record() string { return filepath.Join(s.dir, "run.rec") }

// ended reports whether the run has ended by itself.
func (s *faultedRun) ended() bool {
	select {
	case <-s.bench.Done:
		return true
	default:
		return false
	}
}

func (s *faultedRun) killUnit() {
	s.unit.Signal(syscall.SIGKILL)
	time.Sleep(s.between(time.Second, 2*time.Second))
	s.unit = lab.StartUnit(s.T, "can1")
}

func (s *faultedRun) busDown() {
	link(s.T, "down")
	time.Sleep(s.between(500*time.Millisecond, 2*time.Second))
	link(s.T, "up", "type", "can", "bitrate", "500000")
}

func (s *faultedRun) stopTarget() {
	target, d := s.bench.Target(), s.between(20*time.Millisecond, 400*time.Millisecond)
	begin := time.Now()
	if err := syscall.Kill(target, syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	stopped := time.Now()
	time.Sleep(d - time.Since(begin))
	s.halts = append(s.halts, time.Since(stopped))
	if err := syscall.Kill(target, syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
}

// fillDisk fills the disk of the record for longer than the recorder can hold its entries.
func (s *faultedRun) fillDisk() {
	ballast := filepath.Join(s.dir, "ballast")
	f, err := os.Create(ballast)
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.Fatal(err)
	}
	f.Close()
	time.Sleep(8 * time.Second)
	if err := os.Remove(ballast); err != nil {
		s.Fatal(err)
	}
}

func (s *faultedRun) stepClock() {
	step := s.between(10*time.Second, time.Hour)
	if s.random.IntN(2) == 0 {
		step = -step
	}
	before := time.Now()
	now := syscall.NsecToTimeval(before.Add(step).UnixNano())
	if err := syscall.Settimeofday(&now); err != nil {
		s.Fatal(err)
	}
	s.steps = append(s.steps, step)
}

// flood sends frames that the bench does not receive, with an identifier of their own.
func (s *faultedRun) flood() {
	id := uint32(0x700 + len(s.floods))
	s.floods[id] = int(lab.AwaitSender(s.T, lab.SendRandom(s.T, "can1", "2000", "2", fmt.Sprintf("%x", id))))
}

// end ends the run in one of three ways.
func (s *faultedRun) end() {
	switch s.random.IntN(3) {
	case 0:
		s.ending = "stopped by interrupt"
		s.bench.Signal(syscall.SIGINT)
	case 1:
		s.ending, s.safe = "stopped by terminated", true
		s.bench.Signal(syscall.SIGTERM)
	case 2:
		s.ending, s.safe = "the target process died", true
		if err := syscall.Kill(s.bench.Target(), syscall.SIGKILL); err != nil {
			s.Fatal(err)
		}
	}
}

// report waits for the end of the run and returns its report.
func (s *faultedRun) report() (r report.Report) {
	code, message := s.bench.Wait(), strings.TrimSpace(s.bench.Err.String())
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(s.T, s.bench.File)), &r); err != nil {
		s.Fatal(err)
	}
	s.Logf("exit %d, %s: %s; %d ticks, %d missed, %d frames sent, %d dropped, %d safe ones; record: %s",
		code, message, r.Ended, r.Ticks, r.Missed, r.TxFrames, r.TxDropped, r.SafeFrames, cmp.Or(r.RecordError, "complete"))
	foreign := slices.ContainsFunc(strings.Split(message, "\n"), func(line string) bool { return line != "" && !strings.HasPrefix(line, "lockstep: run: ") })
	if bad := !r.Clean || r.RecordError != ""; code != map[bool]int{false: 0, true: 1}[bad] || bad != (message != "") || foreign {
		s.Errorf("exit %d, clean %t, record %q; standard error %q", code, r.Clean, r.RecordError, message)
	}
	return r
}

// checkReport checks that the report names the faults that it can know.
func (s *faultedRun) checkReport(r report.Report) {
	if i := slices.IndexFunc(r.Messages, func(m report.Received) bool { return m.Message == "TCU_Pressure_1" }); i < 0 || int(r.Messages[i].Timeouts) < s.counts["unit killed"] {
		s.Errorf("the unit was killed %d times; the messages received are %+v", s.counts["unit killed"], r.Messages)
	}
	down := 0
	for _, c := range r.Buses[0].Changes {
		if c.State == "down" {
			down++
		}
	}
	if down != s.counts["bus down"] {
		s.Errorf("the bus went down %d times, want %d: %+v", down, s.counts["bus down"], r.Buses[0].Changes)
	}
	if full := strings.Contains(r.RecordError, "no space left on device"); full != (s.counts["disk full"] > 0) {
		s.Errorf("the disk was full %d times; the record has the error %q", s.counts["disk full"], r.RecordError)
	}
	if !strings.Contains(r.Ended, s.ending) && r.Safe == "" {
		s.Errorf("the end is %q, want %q", r.Ended, s.ending)
	}
}

// checkWire checks that the bus carries no more frames than the report counts, and safe values only
// after an end, or in a safe state, that the report names.
func (s *faultedRun) checkWire(r report.Report) {
	s.unit.Signal(syscall.SIGINT)
	s.unit.Wait()
	byID, _ := lab.EndCandump(s.T, s.dump)
	seen := 0
	for _, id := range []string{"200", "201", "202"} {
		seen += len(byID[id].Data)
	}
	if most := int(r.TxFrames) + r.SafeFrames; seen > most {
		s.Errorf("%d frames on the bus; the report counts %d", seen, most)
	}
	list := lab.SafeSpeeds(byID["200"])
	first := slices.Index(list, true)
	if named := s.safe || r.Safe != "" || r.SafeFrames > 0; (first >= 0) != named {
		s.Errorf("safe values on the bus from frame %d of %d on; the end is %q, the safe state %q", first, len(list), r.Ended, r.Safe)
	}
	if first >= 0 && slices.Contains(list[first:], false) {
		s.Error("after the safe values the bus carries values of the plant again")
	}
}

// checkRecord checks that the record names the faults, each of its kind in the order in which they
// came.
func (s *faultedRun) checkRecord(overruns int) {
	r, err := record.Open(s.record())
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	var gaps int
	var late []time.Duration
	var steps []float64
	floods, lost := map[uint32]int{}, overruns
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.Fatal(err)
		}
		switch v := &e.Event; {
		case e.Kind == record.FrameEntry && e.Frame.Other:
			floods[e.Frame.ID]++
		case e.Kind != record.EventEntry:
		case v.Kind == record.Lost && strings.Contains(v.Text, "no space left on device"):
			gaps++
			var ticks, frames int
			if _, err := fmt.Sscanf(v.Text, "%d ticks, %d frames", &ticks, &frames); err != nil {
				s.Fatalf("%q: %v", v.Text, err)
			}
			lost += frames
		case v.Kind == record.MonitorLost:
			lost += int(v.Count)
		case v.Kind == record.Overrun:
			late = append(late, time.Duration(v.Count)*time.Millisecond)
		case v.Kind == record.Note && strings.HasPrefix(v.Text, "CLOCK_REALTIME stepped by "):
			var step float64
			if _, err := fmt.Sscanf(v.Text, "CLOCK_REALTIME stepped by %f s", &step); err != nil {
				s.Fatalf("%q: %v", v.Text, err)
			}
			steps = append(steps, step)
		}
	}
	if torn := r.Torn(); torn != "" {
		s.Errorf("the record is torn: %s", torn)
	}
	if gaps < s.counts["disk full"] {
		s.Errorf("%d gaps for lack of space, the disk was full %d times", gaps, s.counts["disk full"])
	}
	for _, d := range s.halts { // the grid points of each stop are lost in one entry
		i := slices.IndexFunc(late, func(l time.Duration) bool { return l > d-5*time.Millisecond })
		if i < 0 {
			s.Errorf("no entry of the ledger for a stop of %v, in order; all stops are %v", d, s.halts)
			break
		}
		late = late[i+1:]
	}
	s.checkSteps(steps)
	all := 0
	for id, taken := range s.floods {
		all += taken - floods[id]
		if taken != floods[id] {
			s.Logf("flood %#x: %d of %d frames are in the record", id, floods[id], taken)
		}
		if floods[id] == 0 {
			s.Errorf("no frame of flood %#x in the record, %d were sent", id, taken)
		}
	}
	s.Logf("%d frames of floods are not in the record; %d are counted as lost, %d of them by the card", all, lost, overruns)
	if all > lost {
		s.Errorf("%d frames of floods are neither in the record nor counted as lost, %d", all, lost)
	}
}

// checkSteps compares the steps of the clock in the record, s, with those made. The recorder checks
// the clock five times a second if the emulator lets it run; steps between two checks are one.
func (s *faultedRun) checkSteps(noted []float64) {
	var sum time.Duration
	var sums []time.Duration // differences from the first clock after each step
	for _, step := range s.steps {
		sum += step
		sums = append(sums, sum)
	}
	rest, at := sums, time.Duration(0)
	for _, step := range noted {
		at += time.Duration(step * 1e9)
		i := slices.IndexFunc(rest, func(want time.Duration) bool { return (at - want).Abs() < 5*time.Second })
		if i < 0 {
			s.Errorf("steps of the clock in the record %v s, want %v", noted, s.steps)
			return
		}
		rest = rest[i+1:]
	}
	if (at - sum).Abs() > 5*time.Second {
		s.Errorf("steps of the clock in the record %v s, want %v", noted, s.steps)
	}
}
