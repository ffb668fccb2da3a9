package latency

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// sampleReport returns a report of all methods; each has a latency off every chart.
func sampleReport() *Report {
	state := func(base int64) *ByMethod {
		l := &ByMethod{Tickers: map[string]*Figures{}, OSNoise: &OSNoise{Periods: 123_456, Available: 99.5}, Hardware: &HardwareLatency{}}
		for i, m := range methods {
			late := []int64{123_456_789}
			for k := range int64(2000) {
				late = append(late, 1000*(base+int64(i)+k%7)+500)
			}
			r := []*record{recordOf(1_000_000, late...)}
			switch f := figures(r, r); m.name {
			case methodCyclictest:
				l.Cyclictest = f
			case methodTimerfdC:
				l.CTimerfd = f
			case methodTimerlatIRQ:
				l.TimerlatIRQ = f
			case methodTimerlatThread:
				l.TimerlatThread = f
			default:
				l.Tickers[m.name] = f
			}
		}
		return l
	}
	r := &Report{
		ByMethod: *state(20), Idle: state(10), Load: "cpu on CPU 0", Period: 1_000_000, Spin: 50_000, CPU: 1, Priority: 80, Rounds: 1, Seconds: 60,
		Reasons: []string{"the kernel is <not> PREEMPT_RT & \"more\"", "a long reason: " + strings.Repeat("it goes on ", 20)},
	}
	r.Host = Host{Kernel: "6.1 <&>", Processor: "CPU & Co", CPUs: "0-1"}
	return r
}

func TestTextFitsATerminalOf79Columns(t *testing.T) {
	var out bytes.Buffer
	sampleReport().Text(&out)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 79 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.HasSuffix(strings.TrimRight(line, "\n"), " ") {
			t.Errorf("space at the end: %q", line)
		}
	}
	for _, want := range []string{"NOT REPRESENTATIVE", "per class of 1 us", "off the chart 1 of 2001", "max 123457 us", "idle, us", "under load, us", "osnoise: 99.500 %", "hwlatdetect: no gap"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, m := range methods {
		if n := strings.Count(out.String(), "\n"+m.name+" "); n != 2 {
			t.Errorf("%s is in %d tables, want 2", m.name, n)
		}
	}
}

func TestAReportWithoutObjectionsDoesNotSayNotRepresentative(t *testing.T) {
	r := sampleReport()
	r.Representative, r.Reasons, r.Load = true, nil, noLoad
	var out bytes.Buffer
	r.Text(&out)
	for _, text := range []string{out.String(), string(r.SVG())} {
		if strings.Contains(strings.ToLower(text), "not representative") || strings.Contains(text, "under load") {
			t.Errorf("report of a representative host without load: %.2000s", text)
		}
	}
}

func TestBarsGrowWithTheLogarithm(t *testing.T) {
	last := -1
	for n := int64(0); n <= 100_000; n = n*3 + 1 {
		upper, lower := bar(n, 100_000)
		level := 8*strings.Index(" ▁▂▃▄▅▆▇█", upper) + strings.Index(" ▁▂▃▄▅▆▇█", lower)
		if level <= last && n > 1 && n < 30 { // a step of 3 is more than an eighth of 5 decades
			t.Errorf("%d of 100000 is not higher than a third of it", n)
		}
		if upper != " " && lower != "█" {
			t.Errorf("%d of 100000 floats: %q above %q", n, upper, lower)
		}
		last = level
	}
	if u, l := bar(0, 10); u != " " || l != " " {
		t.Errorf("a count of 0 is drawn as %q above %q", u, l)
	}
	if u, l := bar(1, 1_000_000); u != " " || l != "▁" {
		t.Errorf("a count of 1 is drawn as %q above %q", u, l)
	}
	if u, l := bar(1_000_000, 1_000_000); u != "█" || l != "█" {
		t.Errorf("the largest count is drawn as %q above %q", u, l)
	}
}

func TestChartsShowEveryWakeUp(t *testing.T) {
	r := recordOf(1_000_000, 0, 999, 1000, 47_999, 48_000, 9_999_999, 10_000_000)
	f := figures([]*record{r}, nil)
	for _, c := range []struct{ width, n int }{{1, 48}, {1, 500}, {2, 70}, {20, 3}} {
		count, off := f.classesOf(c.width, c.n)
		sum := off
		for _, n := range count {
			sum += n
		}
		if sum != r.Samples {
			t.Errorf("%d classes of %d us: %d of %d wake-ups", c.n, c.width, sum, r.Samples)
		}
	}
	if count, off := f.classesOf(1, 48); count[0] != 2 || count[1] != 1 || count[47] != 1 || off != 3 {
		t.Errorf("classes 0, 1, 47 us and off: %d, %d, %d, %d; want 2, 1, 1, 3", count[0], count[1], count[47], off)
	}
}

func TestSVGIsWellFormedAndShowsEveryMethod(t *testing.T) {
	texts, paths := map[string]int{}, 0
	for d := xml.NewDecoder(bytes.NewReader(sampleReport().SVG())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.CharData:
			texts[strings.TrimSpace(string(e))]++
		case xml.StartElement:
			for _, a := range e.Attr {
				if a.Name.Local == "d" && strings.Count(a.Value, "L") == 15 { // 7 classes of two points, with both ends
					paths++
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	if paths != 2*len(methods) {
		t.Errorf("%d histograms, want two of each of %d methods", paths, len(methods))
	}
	if n := texts["1, max 123457"]; n != 2*len(methods) {
		t.Errorf("%d bars off the chart with count and largest, want %d", n, 2*len(methods))
	}
	for _, m := range methods {
		if texts[m.name] != 2 {
			t.Errorf("%s is named %d times, want 2: one for each panel", m.name, texts[m.name])
		}
	}
	for _, want := range []string{"idle", "under load", "off: 50 us and later", sampleReport().Reasons[0]} {
		if texts[want] == 0 {
			t.Errorf("no text %q", want)
		}
	}
}
