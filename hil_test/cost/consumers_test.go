package cost

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	consumerRounds = 12 // half of them with clients, alternating
	roundTime      = 2 * time.Second
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

// measureConsumers runs the demo bench and returns the median, over the rounds, of the ratio of the 99th percentile
// of the wake-up latency with clients to that without. begin starts the clients, waits until they read, and returns
// what ends them. The record has the latency of each tick, whoever reads. Rounds with and without clients alternate,
// so that the load of the host counts on both sides. gated: the loop has a CPU of its own, and the ratio is a promise.
func measureConsumers(t *testing.T, begin func(b *lab.Bench) (end func())) (median float64, gated bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.rec")
	b := lab.StartDemoWith(t, lab.UntilStopped, nil, "run", "-record", file, "-page", "0")
	b.AwaitTicking()
	pid := strconv.Itoa(b.Cmd.Process.Pid)
	var rounds [consumerRounds][2]int64 // first and last tick
	for i := range rounds {
		end := func() {}
		if i%2 == 1 {
			end = begin(b)
		}
		rounds[i][0] = presentTick(t, pid)
		time.Sleep(roundTime)
		rounds[i][1] = presentTick(t, pid)
		end()
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
	median = (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
	t.Logf("wake-up p99 with five clients over that without, by round %.2f; median %.2f; best effort %t, CPU of its own %t",
		ratios, median, report.BestEffort, alone)
	if report.Allocs != 0 || report.GCCycles != 0 {
		t.Errorf("the target: %d allocations, %d collections", report.Allocs, report.GCCycles)
	}
	return median, alone && !report.BestEffort
}

// Five clients read every tick beside the loop.
func TestFiveConsumersBesideTheLoopHardlyDelayIt(t *testing.T) {
	lab.RequireLong(t, "measures for 24 s")
	median, gated := measureConsumers(t, func(b *lab.Bench) func() {
		var clients []*lab.Process
		for range 5 {
			clients = append(clients, lab.Start(t, lab.Command(t), "ctl", strconv.Itoa(b.Cmd.Process.Pid), "watch", "w1", "w4",
				"clutch1.pressure", "Speeds.w1", "health.wakeup_latency", "-every", "tick", "-json"))
		}
		for _, c := range clients {
			c.AwaitOutput(`"last"`) // their start does not count
		}
		return func() {
			for _, c := range clients {
				c.Cmd.Process.Kill()
				<-c.Done
			}
		}
	})
	if gated && !(median <= consumersBound) {
		t.Errorf("the median ratio is %.2f, want %.2f at most", median, consumersBound)
	}
}

// pageReads are the requests that an open page repeats, by the time between two of them. A page reads the stream
// beside them.
var pageReads = map[string]time.Duration{
	"status": time.Second, "faults": time.Second / 2, "messages": 400 * time.Millisecond, "scenario": 3 * time.Second,
	"ledger": time.Second, "host": time.Minute, "runs": 3 * time.Second, "description": 3 * time.Second,
	"plant": time.Hour, "buses": time.Hour, // once
}

// readPage reads what an open page reads, until the context ends. It calls ready at the first sample.
func readPage(ctx context.Context, address string, ready func()) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	request := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+u.Host+"/"+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+u.Query().Get("token"))
		a, err := http.DefaultClient.Do(r)
		if err == nil && a.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, a.Status)
		}
		return a, err
	}
	get := func(path string) ([]byte, error) {
		a, err := request(path)
		if err != nil {
			return nil, err
		}
		defer a.Body.Close()
		return io.ReadAll(a.Body)
	}
	text, err := get("door/description")
	if err != nil {
		return err
	}
	var d control.Description
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	query := url.Values{"every": {"20ms"}}
	for _, s := range d.Signals {
		if s.Kind == control.InputKind || s.Kind == control.OutputKind || s.Kind == control.HealthKind || s.Settable {
			query.Add("signal", s.Name)
		}
	}
	for path, every := range pageReads {
		go func() {
			for ctx.Err() == nil {
				_, _ = get("door/" + path)
				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
		}()
	}
	a, err := request("door/stream?" + query.Encode())
	if err != nil {
		return err
	}
	defer a.Body.Close()
	for lines := bufio.NewReader(a.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil // the client ends
		}
		if strings.Contains(line, `"last"`) {
			ready()
		}
	}
}

// Five clients read beside the loop what five open pages read. The ratio is reported, and it is a promise where the
// loop has a CPU of its own.
func TestFivePagesBesideTheLoopHardlyDelayIt(t *testing.T) {
	lab.RequireLong(t, "measures for 24 s")
	median, gated := measureConsumers(t, func(b *lab.Bench) func() {
		b.AwaitOutput("live: ")
		_, text, _ := strings.Cut(b.Out.String(), "live: ")
		address, _, _ := strings.Cut(text, "\n")
		ctx, cancel := context.WithCancel(context.Background())
		var reading, ended sync.WaitGroup
		for range 5 {
			reading.Add(1)
			ready := sync.OnceFunc(reading.Done)
			ended.Go(func() {
				defer ready()
				if err := readPage(ctx, strings.TrimSpace(address), ready); err != nil {
					t.Error(err)
				}
			})
		}
		reading.Wait() // their start does not count
		return func() {
			cancel()
			ended.Wait()
			http.DefaultClient.CloseIdleConnections()
		}
	})
	if gated && !(median <= consumersBound) {
		t.Errorf("the median ratio is %.2f, want %.2f at most", median, consumersBound)
	}
}

// The clients of TestFivePages request what the files of the page request.
func TestClientsReadWhatThePageReads(t *testing.T) {
	files, err := filepath.Glob("../../rt/live/page/*.js")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`[^.\w]get\("([a-z]+)"\)`).FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
	}
	page, clients := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(pageReads))
	if !slices.Equal(page, clients) {
		t.Errorf("the page requests %q, the clients %q", page, clients)
	}
}
