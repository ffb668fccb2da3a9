//go:build long

package labs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/deploy/certify"
	wakeup "lockstep/deploy/latency"
	"lockstep/hil_test/lab"
	"lockstep/model/plants"
	"lockstep/rt/report"
)

// certified runs `lockstep certify` and returns the certificate and its HTML page.
func certified(t *testing.T, args ...string) (c *certify.Certificate, page string) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "c")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, lab.Command(t), append([]string{"certify", "-load=false", "-o", base + ".html"}, args...)...)
	out, err := cmd.CombinedOutput()
	t.Logf("certify %q: %v\n%s", args, err, out)
	text, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if c, err = certify.Read(base+".json", text); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(base + ".html")
	if err != nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); (code == 0) != (len(c.Failed()) == 0) || code > 1 {
		t.Errorf("exit %d, failed: %q", code, c.Failed())
	}
	return c, string(html)
}

// checkReasons checks that the certificate has reasons with the given beginnings.
func checkReasons(t *testing.T, c *certify.Certificate, reasons ...string) {
	t.Helper()
	for _, want := range reasons {
		if !slices.ContainsFunc(c.Reasons, func(r string) bool { return strings.HasPrefix(r, want) }) {
			t.Errorf("no reason %q in %q", want, c.Reasons)
		}
	}
}

// SocketCAN stamps received frames: the certificate has the response time from bus to bus, and
// reports the virtual interface.
func TestLabCertificateOnVcanHasTheResponseTimes(t *testing.T) {
	if !lab.Inside(t, lab.VCAN) {
		return
	}
	c, page := certified(t, "powershift-bench", "-for", "15s", "-bus", "vcan0", "-besteffort")
	if c.Response == nil || c.Response.Samples == 0 || c.Response.Samples > c.Run.RxFrames || c.Response.MaxNs != c.Run.Response.Max {
		t.Errorf("bus to bus %+v of %d frames", c.Run.Response, c.Run.RxFrames)
	}
	checkReasons(t, c, "bus drive on vcan0 is a virtual interface", "the kernel is not PREEMPT_RT", "cpu: the host has one CPU")
	if !strings.Contains(page, "bus drive on vcan0") {
		t.Error("the page does not name the bus")
	}
}

// On PREEMPT_RT with two cards, the certificate names both cards and their driver, the run has all
// rights, and cyclictest gives a reference measurement. A full disk is reported before the run.
// After the kill of a target the counts of that target are not measured, rather than 0.
func TestLabCertificateOnTwoCardsNamesThemAndTheirDriver(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT, "cyclictest") {
		return
	}
	c, page := certified(t, "powershift-bench", "-for", "20s", "-bus", "can0", "-unitbus", "can1")
	drivers := map[string]string{}
	for _, card := range c.Box.CAN {
		drivers[card.Interface] = card.Driver
	}
	if drivers["can0"] != "kvaser_pci" || drivers["can1"] != "kvaser_pci" || drivers["vcan0"] != "" {
		t.Errorf("cards %v", c.Box.CAN)
	}
	if c.Run.BestEffort || !c.Box.Realtime || c.Response == nil || c.Box.Isolated != lab.IsolatedCPU {
		t.Errorf("best effort %t (%q), %+v", c.Run.BestEffort, c.Run.BestEffortWhy, c.Box)
	}
	if c.Reference == nil || c.Reference.Cyclictest == nil || c.Reference.Cyclictest.Samples < 100 {
		t.Errorf("reference measurement by cyclictest: %+v", c.Reference)
	}
	checkReasons(t, c, "the host is a virtual machine: QEMU", "too short: 20s")
	if !strings.Contains(page, "kvaser_pci, PCI ") {
		t.Error("the page does not name the driver")
	}
	fullDisk(t)
	killedTarget(t)
}

// The demo's gearbox runs on a grid of 100 us on a CPU of its own, its wake-ups beside those of
// cyclictest at the same period. An emulator has no meaningful latencies: the test prints the figures,
// and checks that no grid point is unaccounted for, and that each late tick in the report has a cause.
func TestLabHundredMicrosecondsAreMeasuredBesideCyclictest(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT, "cyclictest") {
		return
	}
	latencyBesideCyclictest(t, "100us")
	text, err := plants.Read("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	edit := strings.NewReplacer("period: 5 ms", "period: 100 us", "overrun: skip 200", "overrun: skip 1000", "# watchdog: 3 s ", "watchdog: 20 s ")
	file := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, []byte(edit.Replace(string(text))), 0o666); err != nil {
		t.Fatal(err)
	}
	c, _ := certified(t, file, "-for", "20s", "-bus", "can0", "-unitbus", "can1")
	r := c.Run
	if r.StepNs != 100_000 || r.BestEffort || c.Box.Isolated != lab.IsolatedCPU {
		t.Errorf("period %d ns, best effort %t (%q), isolated CPUs %s", r.StepNs, r.BestEffort, r.BestEffortWhy, c.Box.Isolated)
	}
	if ref := c.Reference; ref == nil || ref.Cyclictest == nil { // an emulated CPU may have no time left for it
		checkReasons(t, c, "cyclictest: ")
	}
	if r.Ticks+r.Missed < 150_000 {
		t.Errorf("%d ticks and %d missed of 100 us in 20 s", r.Ticks, r.Missed)
	}
	lost := uint64(0)
	for _, e := range r.Ledger {
		lost += uint64(e.Lost)
		if e.Phase == "" || len(e.IRQs) == 0 || e.Spent == (report.Phases{}) {
			t.Errorf("a late tick without a cause: %+v", e)
		}
	}
	if all := r.LedgerLost == 0 && len(r.Ledger) < 1000; lost > r.Missed || all && lost != r.Missed {
		t.Errorf("the ledger has %d missed ticks in %d entries, the report %d; %d entries lost", lost, len(r.Ledger), r.Missed, r.LedgerLost)
	}
	t.Logf("%d ticks, %d missed, %d late; wake-up %+v, tick %+v", r.Ticks, r.Missed, r.LateTicks, r.Late, r.Tick)
}

// latencyBesideCyclictest measures the tickers of the loop and cyclictest at a period.
func latencyBesideCyclictest(t *testing.T, period string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "latency.json")
	p := lab.Start(t, lab.Command(t), "latency", "-period", period, "-for", "5s", "-load=false", "-report", file)
	if code := p.WaitFor(3 * lab.Timeout); code != 0 {
		t.Fatalf("exit %d: %s", code, &p.Err)
	}
	var r struct {
		CPU        int
		Tickers    map[string]wakeup.Figures
		Cyclictest *wakeup.Figures
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, file)), &r); err != nil {
		t.Fatal(err)
	}
	ours := r.Tickers["timerfd"]
	if r.Cyclictest == nil || r.Cyclictest.Samples < 1000 || ours.Samples < 1000 || ours.RatioP99 == nil || !(*ours.RatioP99 > 0) {
		t.Errorf("on CPU %d cyclictest %+v, timerfd %+v; want 1000 wake-ups of each", r.CPU, r.Cyclictest, ours)
	}
	t.Logf("%s", &p.Out)
}

func fullDisk(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	smallDisk(t, dir, "size=1m")
	begun := time.Now()
	out, err := exec.Command(lab.Command(t), "certify", "-for", "1h", "-o", filepath.Join(dir, "c.html")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no space left on device") || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("on a full disk: %v after %v\n%s", err, time.Since(begun), out)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("files left behind: %v", list)
	}
}

func killedTarget(t *testing.T) {
	t.Helper()
	go func() {
		time.Sleep(time.Second)
		for range 600 {
			if out, err := exec.Command("pgrep", "-x", "lockstep-target").Output(); err == nil && len(out) > 0 {
				time.Sleep(5 * time.Second)
				_ = exec.Command("pkill", "-KILL", "-x", "lockstep-target").Run() // the lab has one target
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	c, page := certified(t, "-for", "30s")
	if c.Run.Usage != nil || c.CutShort == "" || !strings.Contains(c.Run.Ended, "the target process died") {
		t.Errorf("ended %q, cut %q, usage %+v", c.Run.Ended, c.CutShort, c.Run.Usage)
	}
	if strings.Count(page, `<td class="n none">not measured</td>`) != 4 {
		t.Error("the page has counts of a killed process, want \"not measured\" four times")
	}
}
