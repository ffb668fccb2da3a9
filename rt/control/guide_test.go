package control

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/guide"
	"lockstep/rt/guide/guidetest"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/traffic"
)

var doorGuide = guide.Guide{Name: "control", Source: Guide}

// same compares two lists in their order.
func same(t *testing.T, what string, guide, is []string) {
	t.Helper()
	if !slices.Equal(guide, is) {
		t.Errorf("%s: the guide has %q, there are %q", what, guide, is)
	}
}

// The guide lists the requests of ctl; its examples are requests that a run takes.
func TestGuideListsTheRequests(t *testing.T) {
	same(t, "ctl", slices.DeleteFunc(guidetest.FirstColumn(t, doorGuide, "ctl", 0), func(r string) bool { return r == "stop now" || r == "stop wait" }),
		strings.Split(Usage(), " | "))
	b, err := bench.Load("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Describe(report.View{Handover: h, Status: new(rt.StatusBlock)})
	if err != nil {
		t.Fatal(err)
	}
	commands, tried := scenario.NewCommands(h), 0
	for line := range strings.Lines(string(Guide)) {
		request, ok := strings.CutPrefix(line, "lockstep ctl truck-bench ")
		if !ok {
			continue
		}
		tried++
		request, every, watches := strings.Cut(strings.TrimSpace(request), " -every ")
		words, err := scenario.SplitWords(request)
		if err != nil {
			t.Fatal(err)
		}
		o := &Options{Every: every}
		v, _, err := prepare(words, o)
		switch {
		case err != nil || watches != (v.name == "watch"):
		case slices.Contains([]string{"get", "watch"}, v.name):
			if _, err = d.find(words[1:]); err == nil && watches {
				_, err = parseEvery(o.Every, 5e6)
			}
		case v.name == "record": // the supervisor's: no command of the loop
		case v.about != "":
			_, err = commands.Translate(request)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if tried < 8 {
		t.Errorf("%d requests were tried; want 8 or more", tried)
	}
}

func TestGuideListsTheFaultStates(t *testing.T) {
	var want []string
	for s := fault.Free; s <= fault.Over; s++ {
		want = append(want, s.String())
	}
	got := guidetest.FirstColumn(t, doorGuide, "fault-state", 0)
	slices.Sort(want)
	slices.Sort(got)
	same(t, "states", got, want)
}

func TestGuideListsTheKeysOfAnAnswer(t *testing.T) {
	keys := func(of reflect.Type) (list []string) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			list = append(list, name)
		}
		slices.Sort(list)
		return list
	}
	got := guidetest.FirstColumn(t, doorGuide, "answer-as-json", 0)
	slices.Sort(got)
	same(t, "answer", got, keys(reflect.TypeFor[Answer]()))
	var listed []string
	text := guidetest.Section(t, doorGuide, "answer-as-json")
	text, _, _ = strings.Cut(text[strings.Index(text, "A fault in the list has"):], ".")
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	same(t, "fault of an answer", listed, keys(reflect.TypeFor[FaultState]()))
}

func TestGuideListsRoutesKindsFiguresAndLimits(t *testing.T) {
	var paths, figures []string
	for _, r := range routes() {
		paths = append(paths, r.method+" "+r.path)
	}
	for _, f := range health {
		figures = append(figures, f.name)
	}
	same(t, "routes", guidetest.FirstColumn(t, doorGuide, "http", 0), paths)
	same(t, "kinds", guidetest.FirstColumn(t, doorGuide, "signals", 0), []string{string(InputKind), string(OutputKind), string(BusKind), string(HealthKind), string(ParameterKind)})
	same(t, "figures", guidetest.FirstColumn(t, doorGuide, "signals", 1), figures)
	text := guidetest.Section(t, doorGuide, "limits")
	for _, want := range []string{
		fmt.Sprintf("| %d; %d further ones", maxClients, maxStops), fmt.Sprintf("| %d KiB each |", maxBody>>10),
		fmt.Sprintf("to read an answer | %.0f s |", writeTimeout.Seconds()), fmt.Sprintf("of a connection | %.0f min |", idleTimeout.Minutes()),
		fmt.Sprintf("to read something | %.0f s |", slowStream.Seconds()), fmt.Sprintf("signals of a request | %d |", maxSignals),
		fmt.Sprintf("| %d samples, fewer with many signals: %d,%03d numbers |", maxQueue, queueNumbers/1000, queueNumbers%1000),
		fmt.Sprintf("of frames | %d frames |", traffic.MaxFrames),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the limits lack %q", want)
		}
	}
}

// The lines of the guide are lines of a stream.
func TestGuideShowsLinesOfAStream(t *testing.T) {
	d := readDocument(t)
	for _, b := range doorGuide.Blocks() {
		if b.Language != "json" {
			continue
		}
		s := d.Paths["/stream"]["get"].Responses["200"].Content["application/x-ndjson"].Schema
		n := 0
		for line := range strings.Lines(b.Text) {
			n++
			if why := d.check(decoded(t, line), s); why != "" {
				t.Errorf("%s: %s", line, why)
			}
		}
		if n < 4 {
			t.Errorf("%d lines", n)
		}
		return
	}
	t.Error("the guide shows no stream")
}

func TestGuideTopicsAreUnique(t *testing.T) {
	topics := doorGuide.Topics()
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			t.Errorf("two headings are called %s", topic)
		}
	}
}
