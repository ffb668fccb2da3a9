package cost

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/rt/control"
)

// consumersBound is the largest ratio of the 99th percentile of the wake-up latency with five clients
// that read every tick to that without clients, where the loop has a CPU of its own.
const consumersBound = 1.25

// Rounds of the measurement.
const (
	consumerRounds = 20 // half of them with clients, alternating
	roundTime      = 3 * time.Second
)

// presentTick returns the tick of a run.
func presentTick(t *testing.T, pid string) int64 {
	t.Helper()
	out, errors, code := lab.Run(t, "ctl", pid, "status", "-json")
	var a control.Answer
	if err := json.Unmarshal([]byte(out), &a); code != 0 || err != nil {
		t.Fatalf("status: exit %d, %s, %v", code, errors, err)
	}
	return a.Tick
}

// wakeUps returns the wake-up latency of each tick of a record, ns; missed ticks have none.
func wakeUps(t *testing.T, file string) map[int64]int64 {
	t.Helper()
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list := map[int64]int64{}
	for {
		e, err := r.Next()
		if err != nil {
			return list
		}
		if e.Kind == record.TickEntry && e.Tick.Flags&record.Missed == 0 {
			list[e.Tick.Index] = e.Tick.Phases[0] + e.Tick.Phases[1]
		}
	}
}

// Five clients read every tick beside the loop. The record has the latency of each tick, whoever reads.
// Rounds with and without clients alternate, so that the load of the host counts on both sides.
func TestFiveConsumersBesideTheLoopHardlyDelayIt(t *testing.T) {
	lab.RequireLong(t, "measures for a minute")
	file := filepath.Join(t.TempDir(), "run.rec")
	b := lab.StartDemoWith(t, lab.UntilStopped, nil, "run", "-record", file)
	b.AwaitTicking()
	pid := strconv.Itoa(b.Cmd.Process.Pid)
	var rounds [consumerRounds][2]int64 // first and last tick
	for i := range rounds {
		var clients []*lab.Process
		for range 5 * (i % 2) {
			clients = append(clients, lab.Start(t, lab.Command(t), "ctl", pid, "watch", "w1", "w4", "clutch1.pressure", "Speeds.w1",
				"health.wakeup_latency", "-every", "tick", "-json"))
		}
		for _, c := range clients {
			c.AwaitOutput(`"last"`) // their start does not count
		}
		rounds[i][0] = presentTick(t, pid)
		time.Sleep(roundTime)
		rounds[i][1] = presentTick(t, pid)
		for _, c := range clients {
			c.Cmd.Process.Kill()
			<-c.Done
		}
	}
	alone := false
	for _, r := range lab.Runs(t) {
		alone = alone || strconv.Itoa(r.Supervisor) == pid && !r.Shared
	}
	report := b.Stop()

	latency := wakeUps(t, file)
	p99 := func(round [2]int64) float64 {
		var list []int64
		for k := round[0]; k < round[1]; k++ {
			if ns, served := latency[k]; served {
				list = append(list, ns)
			}
		}
		if len(list) < 100 {
			t.Fatalf("%d ticks in a round", len(list))
		}
		slices.Sort(list)
		return float64(list[len(list)*99/100])
	}
	var ratios []float64
	for i := 0; i < len(rounds); i += 2 {
		ratios = append(ratios, p99(rounds[i+1])/p99(rounds[i]))
	}
	slices.Sort(ratios)
	median := (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
	t.Logf("wake-up p99 with five clients over that without, by round %.2f; median %.2f; best effort %t, CPU of its own %t",
		ratios, median, report.BestEffort, alone)
	if report.Allocs != 0 || report.GCCycles != 0 {
		t.Errorf("the target: %d allocations, %d collections", report.Allocs, report.GCCycles)
	}
	if alone && !report.BestEffort && !(median <= consumersBound) {
		t.Errorf("the median ratio is %.2f, want %.2f at most", median, consumersBound)
	}
}
