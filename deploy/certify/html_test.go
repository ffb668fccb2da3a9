package certify

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep/rt/report"
)

func pageOf(t *testing.T, c *Certificate) string {
	t.Helper()
	text, err := c.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wellFormed fails unless the page is XML, with every element closed.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	if !utf8.ValidString(page) {
		t.Error("the page is not UTF-8")
	}
	for d := xml.NewDecoder(strings.NewReader(page)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePageIsWellFormedAndNeedsNoOtherFile(t *testing.T) {
	cut := sample(t, 1, 1)
	cut.Run.Usage, cut.Run.Response, cut.Response, cut.Late, cut.Tick, cut.Reference, cut.Worst, cut.Run.Soak = nil, nil, nil, nil, nil, nil, nil, nil
	for name, c := range map[string]*Certificate{"whole": sample(t, 1, 1), "cut": cut} {
		page := pageOf(t, c)
		wellFormed(t, page)
		for _, bad := range []string{"http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe", "javascript", "onload"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "&lt;nil") {
			t.Errorf("%s: the page contains NaN, nil or an escaped value", name)
		}
	}
}

// numbers returns the exact values, data-ns, of an element's rows and checks the numbers shown.
func numbers(t *testing.T, page, id string) (ns []int64) {
	t.Helper()
	_, rest, found := strings.Cut(page, `id="`+id+`"`)
	if !found {
		t.Fatalf("the page has no %s", id)
	}
	table, _, _ := strings.Cut(rest, "</table>")
	for _, m := range regexp.MustCompile(`data-ns="(-?\d+)">([^<]*)<`).FindAllStringSubmatch(table, -1) {
		v, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || us(v) != m[2] {
			t.Errorf("%s: %s ns are shown as %s us", id, m[1], m[2])
		}
		ns = append(ns, v)
	}
	return ns
}

func TestThePageShowsTheNumbersOfTheJSONWithTheWorstCaseFirst(t *testing.T) {
	c := stored(t, sample(t, 1, 1))
	page := pageOf(t, c)
	want := []int64{}
	for _, s := range []report.Spread{c.Run.Late, c.Run.Tick, *c.Run.Response} {
		want = append(want, s.Max, s.P999, s.P99, s.P50)
	}
	if got := numbers(t, page, "times"); !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
	for i, d := range []*Distribution{c.Late, c.Tick, c.Response} {
		if d.MaxNs != want[4*i] || d.Samples != c.Run.Ticks {
			t.Errorf("histogram %d: worst %d ns of %d, the run's %d of %d", i, d.MaxNs, d.Samples, want[4*i], c.Run.Ticks)
		}
	}
	f := c.Reference.Cyclictest
	if got := numbers(t, page, "beside"); !slices.Equal(got[4:8], []int64{f.Max, f.P999, f.P99, f.P50}) {
		t.Errorf("cyclictest %v", got)
	}
	if got := numbers(t, page, "sets"); !slices.Equal(got, []int64{c.Worst.WorstNs}) {
		t.Errorf("lock sets %v", got)
	}
	if !strings.Contains(page, `data-n="1440002">1440002<`) || !strings.Contains(page, ">"+c.SHA256+"<") {
		t.Error("the frames sent, or the hash, are not as in the JSON")
	}
	worst, p50 := strings.Index(page, ">worst<"), strings.Index(page, ">p50<")
	if !(worst > 0 && worst < p50) {
		t.Error("the worst case is not the first column")
	}
}

func TestThePageListsLateTicksByLatencyWithTheirCauses(t *testing.T) {
	c := sample(t, 1, 1)
	for i := range 300 {
		c.Run.Ledger = append(c.Run.Ledger, report.LateTick{Tick: int64(i + 1), LateNs: int64(1000 * (i%7*100 + i)), Phase: "wake-up", Involuntary: 2, Minor: 1,
			Taken: map[string]int64{"thread kworker": 250_000, "irq local_timer": 1_500_000},
			IRQs:  map[string]uint64{"LOC interrupts": 7, "36 virtio": 9, "a": 1, "b": 1, "c": 1}})
	}
	c.Run.LateTicks = 301
	page := pageOf(t, c)
	got := numbers(t, page, "ledger")
	if len(got) != shownLate || !slices.IsSortedFunc(got, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("%d late ticks, the first %v", len(got), got[:3])
	}
	for _, want := range []string{"301 entries", "100 are shown, the JSON has 300", "preempted 2 times", "1 page faults", "irq local_timer took 1.500 ms; thread kworker took 0.250 ms; ", "36 virtio 9, LOC interrupts 7, a 1, b 1<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	wellFormed(t, page)
}

func TestThePageListsTheObjectionsToAHostAtItsTop(t *testing.T) {
	entries, err := os.ReadDir("../../sched/hostinfo/testdata/hosts")
	if err != nil || len(entries) < 5 {
		t.Fatal(err, len(entries))
	}
	for _, e := range entries {
		host, d := hostOf(t, e.Name())
		c := sample(t, 1, 1)
		c.Doctor, c.Box = &d, host.Machine()
		c.Buses = nil
		list := objections(host, d)
		if (len(list) == 0) != (e.Name() == "tuned") || !d.Fit && len(list) == 0 {
			t.Errorf("%s: fit %t, objections %q", e.Name(), d.Fit, list)
		}
		c.setReasons(list)
		page := pageOf(t, c)
		if c.Representative != (e.Name() == "tuned") || strings.Contains(page, `id="not-representative"`) == c.Representative {
			t.Errorf("%s: representative %t, reasons %q", e.Name(), c.Representative, c.Reasons)
		}
		top, _, _ := strings.Cut(page, "<h2>Worst cases</h2>")
		for _, reason := range list {
			var text bytes.Buffer
			_ = xml.EscapeText(&text, []byte(reason))
			if !strings.Contains(top, strings.ReplaceAll(text.String(), "=", "=")) && !strings.Contains(top, reason) {
				t.Errorf("%s: the page does not say at its top %q", e.Name(), reason)
			}
		}
	}
}

func TestEachObjectionMakesACertificateNotRepresentative(t *testing.T) {
	for want, change := range map[string]func(c *Certificate){
		"no frame was received": func(c *Certificate) { c.Run.RxFrames = 0 },
		"no load":               func(c *Certificate) { c.Request.Load = false },
		"too short: 9m59s":      func(c *Certificate) { c.Run.SimTime = 599 },
		"too few ticks: 9999":   func(c *Certificate) { c.Run.Ticks = 9999 },
		"best effort: locked":   func(c *Certificate) { c.Run.BestEffortWhy = []string{"locked memory"} },
		"cut short: stopped by": func(c *Certificate) { c.CutShort = "stopped by interrupt" },
		"is a pair of sockets":  func(c *Certificate) { c.Buses[0].Interface = "pair" },
		"replays a log":         func(c *Certificate) { c.Buses[0].Interface = "file:drive.log" },
		"virtual interface":     func(c *Certificate) { c.Box.CAN[0].Driver = "" },
		"no cyclictest":         func(c *Certificate) { c.Reference = nil },
		"of cyclictest: 999;":   func(c *Certificate) { c.Reference.Cyclictest.Samples = 999 },
	} {
		c := sample(t, 1, 1)
		if !c.Representative {
			t.Fatalf("the sample is not representative: %q", c.Reasons)
		}
		change(c)
		if c.setReasons(nil); c.Representative || len(c.Reasons) != 1 || !strings.Contains(c.Reasons[0], want) {
			t.Errorf("%s: representative %t, %q", want, c.Representative, c.Reasons)
		}
	}
}

func TestThePageShowsNoZeroForAnUnmeasuredValue(t *testing.T) {
	c := sample(t, 1, 1)
	c.Run.Usage, c.Run.Response, c.Response, c.Late, c.Tick, c.Reference, c.Worst = nil, nil, nil, nil, nil, nil, nil
	c.Run.Late, c.Run.Tick = report.Spread{}, report.Spread{}
	page := pageOf(t, c)
	if got := numbers(t, page, "times"); len(got) != 0 {
		t.Errorf("times %v ns, of a run without a tick", got)
	}
	if n := strings.Count(page, "not measured"); n < 3+4+2 {
		t.Errorf("the page says \"not measured\" %d times, want at least 9", n)
	}
	counts, _, _ := strings.Cut(page[strings.Index(page, `id="counts"`):], "</table>")
	if _, rest, found := strings.Cut(counts, "allocations"); !found || strings.Contains(rest, "data-n=") {
		t.Errorf("the page shows unmeasured allocations: %s", rest)
	}
}

func TestThePageNamesTheSchedulerOfTheLoop(t *testing.T) {
	c := sample(t, 1, 1)
	if page := string(pageOf(t, c)); !strings.Contains(page, "SCHED_FIFO 80, sleeps") || strings.Contains(page, "SCHED_DEADLINE") {
		t.Error("the page does not name SCHED_FIFO 80")
	}
	c.Deadline = true
	if page := string(pageOf(t, c)); !strings.Contains(page, "SCHED_DEADLINE, sleeps") || !strings.Contains(page, "which has precedence") {
		t.Error("the page does not name SCHED_DEADLINE")
	}
}

func TestThePageListsMessagesAndBuses(t *testing.T) {
	c := sample(t, 1, 1)
	c.Run.Messages = []report.Received{{Message: "TSC1", Frames: 7, Cycle: &report.Cycle{Min: 9_000_000, Mean: 10_000_000, Max: 12_345_000, Jitter: 100_000}, AgeMax: 15_000_000, Timeouts: 3}, {Message: "EBC1"}}
	c.Run.Silent = []report.Silence{{Message: "EBC1", For: 3600}, {Message: "TSC1", Last: 1, For: 2.5}}
	c.Run.Buses = []report.BusState{{Bus: "drive", Interface: "can0", State: "error-passive", ErrorFrames: 17}}
	page := pageOf(t, c)
	if got := numbers(t, page, "messages"); !slices.Equal(got, []int64{12_345_000}) {
		t.Errorf("longest cycles %v", got)
	}
	for _, want := range []string{">15000.0<", `<td class="n bad">3<`, "<b>EBC1</b> was never received", "<b>TSC1</b> was not received for the last 2.5s", "drive on can0</td><td class=\"w\">error-passive</td><td class=\"n\">17<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	wellFormed(t, page)
}

func TestThePageEscapesHostileNames(t *testing.T) {
	const hostile = `<script>alert("1")</script>&'` + "\x00\x01\xff"
	c := sample(t, 1, 1)
	c.Run.Bench, c.Run.Plant, c.Run.Ended, c.Run.Clean, c.Box.Name, c.Box.Cmdline, c.Again = hostile, hostile, hostile, false, hostile, hostile, hostile
	c.Buses[0].Name, c.Versions.Files[0].Name, c.Worst.Elements[0], c.Worst.Sets[0].Locked[0] = hostile, hostile, hostile, hostile
	c.Reasons, c.Representative = []string{hostile}, false
	c.Run.Ledger = []report.LateTick{{Phase: hostile, IRQs: map[string]uint64{hostile: 1}}}
	page := pageOf(t, c)
	if strings.Contains(page, "<script") || strings.Contains(page, `alert("`) {
		t.Error("a name became a script")
	}
	if strings.Count(page, "&lt;script&gt;") < 12 {
		t.Errorf("%d names are shown", strings.Count(page, "&lt;script&gt;"))
	}
	wellFormed(t, page)
}
