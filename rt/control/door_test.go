package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/io/strictjson"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
)

// exchange writes bytes to the door and returns the code and the text of its answer.
func (c *controlled) exchange(text string) (code int, body string) {
	c.t.Helper()
	conn := c.raw()
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, text) }() // fails when the other end closes
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return r.StatusCode, err.Error()
	}
	return r.StatusCode, string(answer)
}

// post returns a request with a body.
func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func TestMisbehavingRequestsAreRefused(t *testing.T) {
	c := newControlled(t)
	for request, want := range map[string]string{
		"\n": "400 ", "\x00\x01\x02\r\n\r\n": "400 ", "status\r\n\r\n": "400 ", "GET / HTTP/9.9\r\n\r\n": "505 ",
		"GET /statsu HTTP/1.1\r\nHost: x\r\n\r\n":                                              `404 {"error":"there is no request \"/statsu\" (did you mean /status?); /openapi.json describes all"}`,
		"GET /set HTTP/1.1\r\nHost: x\r\n\r\n":                                                 `405 {"error":"/set takes POST only"}`,
		post("/set", "{"):                                                                      `400 {"error":"the request is no JSON of this form: unexpected EOF"}`,
		post("/set", `{"value": {}}`):                                                          `400 {"error":"the request is no JSON of this form: json: unknown field \"value\""}`,
		post("/set", `{"values": {"a": []}}`):                                                  `400 {"error":"set: \"a\" is neither a number nor a text"}`,
		"POST /mark HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{":                         `408 {"error":"the request is incomplete after 5s"}`,
		post("/set", `{"values": {}}]`):                                                        `400 {"error":"the request is no JSON of this form: text follows the object"}`,
		post("/stop", `null`):                                                                  `400 {"error":"the request is no JSON of this form: an object in braces is wanted"}`,
		post("/clear", ``):                                                                     `400 {"error":"the request is no JSON of this form: an object in braces is wanted"}`,
		post("/mark", "{\"text\": \"a\xffb\"}"):                                                `400 {"error":"the request is no JSON of this form: the text is not UTF-8"}`,
		post("/mark", `{"text": 5}`):                                                           `400 {"error":"the request is no JSON of this form: text: number is not a text"}`,
		post("/set", `{"values": {"a": 1e400}}`):                                               `400 {"error":"the request is no JSON of this form: values: number 1e400 is not a finite number"}`,
		post("/set", `{"values": []}`):                                                         `400 {"error":"the request is no JSON of this form: values: array is not an object"}`,
		post("/set", `{"values": {"a": 1, "b": [{"a": 2}], "a": 1}}`):                          `400 {"error":"the request is no JSON of this form: the key \"a\" is there twice"}`,
		post("/set", `{"values": {"a": 1}, "Values": {"a": 2}}`):                               `400 {"error":"the request is no JSON of this form: the key \"Values\" is there twice"}`,
		post("/clear", `{"names": "all"}`):                                                     `400 {"error":"the request is no JSON of this form: names: string is not a list"}`,
		post("/record", `{"file": "/tmp/a.rec"}`):                                              `400 {"error":"record: want {\"on\": true, \"file\": FILE} or {\"on\": false}"}`,
		post("/record", `{"on": false, "file": "/tmp/a.rec"}`):                                 `400 {"error":"record: want {\"on\": true, \"file\": FILE} or {\"on\": false}"}`,
		post("/record", `{"on": null}`):                                                        `400 {"error":"record: want {\"on\": true, \"file\": FILE} or {\"on\": false}"}`,
		post("/stop", `{"now": "yes"}`):                                                        `400 {"error":"the request is no JSON of this form: now: string is not true or false"}`,
		post("/set", `{"values": {}} x`):                                                       `400 {"error":"the request is no JSON of this form: text follows the object"}`,
		post("/set", `{"values": {"clutch7.pressure": 400}}`):                                  `400 {"error":"set: clutch7.pressure: 400 bar is outside the range of the input, `,
		post("/set", strings.Repeat(" ", maxBody+1)):                                           `413 {"error":"the request is longer than 65536 bytes"}`,
		"GET /stream?signal=w1&every=0s HTTP/1.1\r\nHost: x\r\n\r\n":                           `400 {"error":"every: \"0s\" is neither tick nor a time`,
		"GET /values HTTP/1.1\r\nHost: x\r\n\r\n":                                              `400 {"error":"0 signals are named; name 1 to 1024"}`,
		"GET /values?" + strings.Repeat("signal=w1&", 1025) + " HTTP/1.1\r\nHost: x\r\n\r\n":   `400 {"error":"1025 signals are named; name 1 to 1024"}`,
		"GET /status HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxBody) + "\r\n\r\n": "431 ",
	} {
		code, body := c.exchange(request)
		if got := fmt.Sprintf("%d %s", code, body); !strings.HasPrefix(got, want) {
			t.Errorf("%.60q: %s\nwant %s", request, got, want)
		}
	}
	c.must("status")
}

// used returns the goroutines and descriptors of this process.
func used() [2]int {
	files, _ := os.ReadDir("/proc/self/fd")
	return [2]int{runtime.NumGoroutine(), len(files)}
}

// freed waits until this process uses no more than before, and returns what it uses.
func freed(before [2]int) (now [2]int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now = used(); now[0] <= before[0] && now[1] <= before[1] {
			break
		}
	}
	return now
}

// A gigabyte without a line end, in the header and in the body: the door reads 64 KiB of it, and frees all.
func TestEndlessRequestsAreCutOff(t *testing.T) {
	c := newControlled(t)
	c.must("status")
	before := used()
	for _, begin := range []string{"", "POST /set HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n",
		"POST /set HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n"} {
		conn := c.raw()
		sent, piece := 0, bytes.Repeat([]byte("x"), 1<<20)
		_, err := io.WriteString(conn, begin)
		for err == nil && sent < 1<<30 {
			var n int
			n, err = conn.Write(piece)
			sent += n
		}
		if err == nil {
			t.Errorf("%.20q: the door took %d bytes", begin, sent)
		}
		conn.Close()
	}
	c.must("status")
	if now := freed(before); now[0] > before[0] || now[1] > before[1] {
		t.Errorf("goroutines and descriptors %v, before %v", now, before)
	}
}

// A client that announces a body and does not send it loses its place, also where nobody reads the body.
func TestBodyThatDoesNotComeEndsItsConnection(t *testing.T) {
	c := newControlled(t)
	conn := c.raw()
	if _, err := io.WriteString(conn, "GET /status HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("%v, want that the connection is closed", err)
	}
}

// A thousand idle connections do not keep a run from being stopped, and leave nothing behind.
func TestRunIsStoppedAmongAThousandConnections(t *testing.T) {
	c := newControlled(t)
	tick := c.must("status").Tick
	before := used()
	var idle []*net.UnixConn
	for range 1000 {
		idle = append(idle, c.raw())
	}
	for c.s.Clients() < maxClients+maxStops {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.ask("status"); err == nil || !strings.Contains(err.Error(), "32 clients are connected already: only /stop is answered until one leaves") {
		t.Errorf("status: %v", err)
	}
	for _, words := range [][]string{{"stop"}, {"stop", "now"}} {
		if a := c.must(words...); a.Bench != "open bench" || len(c.stop) != 1 {
			t.Errorf("%q: %+v, %d signals", words, a, len(c.stop))
		}
		<-c.stop
	}
	if n := c.s.Clients(); n > maxClients+maxStops {
		t.Errorf("%d clients", n)
	}
	for _, conn := range idle {
		conn.Close()
	}
	if now := freed(before); now[0] > before[0] || now[1] > before[1] {
		t.Errorf("goroutines and descriptors %v, before %v", now, before)
	}
	if a := c.must("status"); a.Tick <= tick {
		t.Errorf("tick %d after tick %d", a.Tick, tick)
	}
}

// clients that wait for the end of the run stay connected while others come.
func TestClientThatStopsIsNotDisplaced(t *testing.T) {
	c := newControlled(t)
	for range maxClients {
		c.raw()
	}
	for c.s.Clients() < maxClients {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.ask("stop", "wait")
		ended <- err
	}()
	<-c.stop
	for range 3 * maxStops {
		c.raw()
	}
	for c.s.Clients() < maxClients+maxStops {
		time.Sleep(time.Millisecond)
	}
	c.end()
	c.s.CloseListener()
	c.s.AnswerWaiting(&report.Report{Bench: "open bench", Ended: "stopped", Clean: true})
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// watched is an open stream.
type watched struct {
	*bufio.Scanner
	conn *net.UnixConn
}

// watch opens a stream.
func (c *controlled) watch(query string) *watched {
	c.t.Helper()
	conn := c.raw()
	if _, err := fmt.Fprintf(conn, "GET /stream?%s HTTP/1.1\r\nHost: x\r\n\r\n", query); err != nil {
		c.t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/x-ndjson" {
		c.t.Fatalf("%+v, %v", r, err)
	}
	w := &watched{bufio.NewScanner(r.Body), conn}
	w.Buffer(nil, maxAnswer)
	return w
}

// line reads a line of a stream.
func (w *watched) line(t *testing.T) (l streamLine) {
	t.Helper()
	if !w.Scan() {
		t.Fatalf("the stream has ended: %v", w.Err())
	}
	if err := json.Unmarshal(w.Bytes(), &l); err != nil {
		t.Fatalf("%q: %v", w.Text(), err)
	}
	return l
}

func TestStreamHasEveryTick(t *testing.T) {
	c := newControlled(t)
	w := c.watch("signal=w1&signal=clutch1.mode&signal=clutch1.pressure&signal=health.tick_time&every=tick")
	start := w.line(t)
	if len(start.Signals) != 4 || start.Signals[0] != (StreamSignal{"w1", "rpm"}) || start.Signals[2] != (StreamSignal{"clutch1.pressure", "bar"}) || start.Every != 1 || start.Period != 0.005 {
		t.Errorf("%+v", start)
	}
	last := int64(0)
	for range 300 {
		l := w.line(t)
		if last > 0 && l.Tick != last+1+l.Lost || len(l.Last) != 4 || l.Min != nil || l.Time != float64(l.Tick*5e6)/1e9 {
			t.Fatalf("%q after tick %d", w.Text(), last)
		}
		last = l.Tick
	}
}

// The least, largest and last values of an interval are those of its ticks.
func TestIntervalsHaveTheValuesOfTheirTicks(t *testing.T) {
	c := newControlled(t)
	ticks, intervals := c.watch("signal=eta&signal=clutch7.pressure&every=tick"), c.watch("signal=eta&signal=clutch7.pressure&every=42ms")
	go func() {
		for i := range 20 {
			_, _ = c.ask("set", fmt.Sprintf("clutch7.pressure=%d bar", i%7))
		}
	}()
	ticks.line(t)
	if start := intervals.line(t); start.Every != 9 {
		t.Fatalf("every %d ticks, want 9: 42 ms rounded up", start.Every)
	}
	values, changed := map[int64]strictjson.Numbers{}, 0
	for range 60 {
		l := intervals.line(t)
		for values[l.Tick] == nil {
			v := ticks.line(t)
			values[v.Tick] = v.Last
		}
		for i := range 2 {
			least, most, n := math.Inf(1), math.Inf(-1), 0
			for k := l.Tick - 8; k <= l.Tick; k++ {
				if v := values[k]; v != nil {
					n++
					least, most = min(least, v[i]), max(most, v[i])
				}
			}
			if n < 9 && len(values) > 20 || l.Tick%9 != 0 || l.Lost != 0 {
				t.Errorf("tick %d: %d ticks, lost %d", l.Tick, n, l.Lost)
			}
			if n == 9 && !(l.Min[i] == least && l.Max[i] == most && l.Last[i] == values[l.Tick][i]) {
				t.Errorf("%s: want %v to %v, last %v", intervals.Text(), least, most, values[l.Tick][i])
			}
			if least < most {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("nothing has changed in an interval")
	}
}

// A reader that never reads is told what it has lost once it reads, and is dropped if it does not; the loop and
// other streams go on.
func TestReaderThatDoesNotReadLosesSamplesAndThenItsPlace(t *testing.T) {
	c := newControlled(t)
	c.s.streamTimeout = 10 * time.Second
	var query strings.Builder
	for range 1000 {
		query.WriteString("signal=w1&")
	}
	before := used()
	deaf, other := c.watch(query.String()+"every=tick"), c.watch("signal=w1&every=tick")
	deaf.line(t)
	other.line(t)
	first := other.line(t).Tick
	for l := other.line(t); l.Tick < first+2000; l = other.line(t) {
		if l.Lost > 0 {
			t.Fatalf("another stream lost %d ticks", l.Lost)
		}
	}
	last, lost := int64(0), int64(0)
	for lost == 0 {
		l := deaf.line(t)
		if last > 0 && l.Tick != last+1+l.Lost {
			t.Fatalf("tick %d after %d, lost %d", l.Tick, last, l.Lost)
		}
		last, lost = l.Tick, l.Lost
	}

	c.s.streamTimeout = 100 * time.Millisecond
	never := c.watch(query.String() + "every=tick")
	for l := other.line(t); c.s.Clients() > 2; l = other.line(t) { // both deaf ones
		if l.Lost > 0 && l.Tick < last {
			t.Fatalf("another stream lost %d ticks", l.Lost)
		}
	}
	_ = never
	other.conn.Close()
	deaf.conn.Close()
	never.conn.Close()
	if now := freed(before); now[0] > before[0] || now[1] > before[1] {
		t.Errorf("goroutines and descriptors %v, before %v", now, before)
	}
	c.must("status")
}

func TestStreamSaysThatTheRunHasEnded(t *testing.T) {
	c := newControlled(t)
	w := c.watch("signal=w1&every=1s")
	w.line(t)
	last := w.line(t).Tick
	c.end()
	c.rec.Finish()
	c.s.CloseListener()
	c.s.AnswerWaiting(&report.Report{Bench: "open bench", Ended: "stopped by ctl", Clean: true, Ticks: c.Status.Ticks.Load()})
	for {
		l := w.line(t)
		if l.Ended == "" {
			last = l.Tick
			continue
		}
		if l.Ended != "stopped by ctl" || !l.Clean || l.Tick != int64(c.Status.Ticks.Load()) || last != l.Tick {
			t.Errorf("%+v, after tick %d", l, last)
		}
		break
	}
	if w.Scan() {
		t.Errorf("%q after the end", w.Text())
	}
	if n := c.s.waitingClients.Load(); n != 0 {
		t.Errorf("%d clients wait", n)
	}
}

func TestStreamCountsTheTicksThatTheRingLost(t *testing.T) {
	r := report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}
	d, err := Describe(r)
	if err != nil {
		t.Fatal(err)
	}
	s := newStreams(r, d)
	signals, err := d.find([]string{"w1"})
	if err != nil {
		t.Fatal(err)
	}
	every, intervals := s.add(signals, 0), s.add(signals, 10)
	y := make([]float64, len(r.Handover.Tables.Outputs))
	for _, k := range []int64{1, 2, 6, 7, 25, 30} {
		y[0] = float64(k)
		s.entry(&rt.Entry{Kind: rt.KindStep, Tick: k, Y: y})
		s.entry(&rt.Entry{Kind: rt.KindTiming, Tick: k})
	}
	unit := func(k float64) float64 { return k / (math.Pi / 30) } // rad/s to rpm
	for _, want := range []Sample{{Tick: 1}, {Tick: 2}, {Tick: 6, Lost: 3}, {Tick: 7}, {Tick: 25, Lost: 17}, {Tick: 30, Lost: 4}} {
		got, ok := s.next(every, false)
		if !ok || got.Tick != want.Tick || got.Lost != want.Lost || got.Last[0] != unit(float64(want.Tick)) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, want := range []struct {
		tick, lost  int64
		least, most float64
	}{{7, 3, 1, 7}, {30, 21, 25, 30}} { // the ends of two intervals are lost
		got, ok := s.next(intervals, false)
		if !ok || got.Tick != want.tick || got.Lost != want.lost || got.Min[0] != unit(want.least) || got.Max[0] != unit(want.most) || got.Last[0] != got.Max[0] {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, more := s.next(intervals, false); more {
		t.Error("a further sample")
	}
}

// A signal on a bus is what the bus carries: not what a fault keeps from it, and not what reaches the plant
// again.
func TestBusSignalsAreThoseOnTheBus(t *testing.T) {
	r := report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}
	d, err := Describe(r)
	if err != nil {
		t.Fatal(err)
	}
	s := newStreams(r, d)
	signals, err := d.find([]string{"Speeds.w1"})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Handover.Maps[0].Tx, func(m sigmap.Tx) bool { return m.Name == "Speeds" })
	frame := func(b byte) can.Frame { return can.Frame{Len: 8, Data: [64]byte{b, 0, b, 0, b, 0, b, 0}} }
	if v := signals[0].value(s); !math.IsNaN(v) {
		t.Errorf("%v before the first frame", v)
	}
	for _, c := range []struct {
		name string
		e    rt.Entry
		seen bool
	}{
		{"sent", rt.Entry{Fate: rt.Sent, Frame: frame(1)}, true},
		{"withheld", rt.Entry{Fate: rt.Sent, Withheld: true, Frame: frame(2)}, false},
		{"not taken by the bus", rt.Entry{Fate: rt.Dropped, Frame: frame(3)}, false},
		{"not made", rt.Entry{Fate: rt.Unsent}, false},
		{"too short", rt.Entry{Fate: rt.Sent, Frame: can.Frame{Len: 1, Data: [64]byte{5}}}, false},
		{"sent again", rt.Entry{Fate: rt.Sent, Copy: true, Frame: frame(4)}, true},
	} {
		before := signals[0].value(s)
		c.e.Kind, c.e.Message = rt.KindFrame, at
		s.entry(&c.e)
		if v := signals[0].value(s); (v != before && !math.IsNaN(v)) != c.seen {
			t.Errorf("%s: %v after %v", c.name, v, before)
		}
	}
}

// Values are in the declared unit, and not older than the answer before.
func TestGetReturnsTheValueThatWasSet(t *testing.T) {
	c := newControlled(t)
	for i := range 5 {
		set := c.must("set", fmt.Sprintf("clutch7.pressure=%d bar", i+1), fmt.Sprintf("Status.lag=%d ms", i+10))
		for {
			var v Values
			if err := c.askFor(&v, "", "get", "clutch7.pressure", "Status.lag", "clutch7.mode", "TCU_Pressure_1.pressure_C1"); err != nil {
				t.Fatal(err)
			}
			if v.Tick < set.Tick || v.Values[0].Unit != "bar" || math.Abs(*v.Values[0].Value-float64(i+1)) > 1e-9 {
				t.Errorf("%+v after tick %d", v, set.Tick)
			}
			if v.Values[3].Value != nil {
				t.Errorf("%+v: nobody sends pressure_C1", v)
			}
			if v.Values[2].Text == "" {
				t.Errorf("the mode has no text: %+v", v)
			}
			if lag := v.Values[1]; lag.Value != nil && lag.Unit == "s" && math.Abs(*lag.Value-float64(i+10)*1e-3) < 1e-4 {
				break // the frame has gone out
			}
			if v.Tick > set.Tick+10000 {
				t.Fatalf("%+v: Status.lag is not on the bus", v)
			}
		}
	}
	if code, body := c.exchange(post("/set", `{"values": {"clutch7.pressure": 2.5}}`)); code != 200 || c.must("status").Set["clutch7.pressure"] != "2.5 bar" {
		t.Errorf("%d %s, %v", code, body, c.must("status").Set)
	}
}

// A flag of the plant and an integer signal of a bus have a step; other inputs have none.
func TestDescriptionHasTheStepOfAFlagAndOfABusSignal(t *testing.T) {
	h := openControlled(t)
	h.Tables.Inputs[0].Flag = true
	d, err := Describe(report.View{Handover: h, Status: new(rt.StatusBlock)})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range h.Tables.Inputs {
		if step := d.byName[p.Name].Step; (step != nil) != (i == 0) || i == 0 && *step != 1 {
			t.Errorf("%s has the step %v", p.Name, step)
		}
	}
	if step := d.byName["Speeds.w1"].Step; step == nil || !(*step > 0) {
		t.Errorf("Speeds.w1 has the step %v", step)
	}
}

// A request is any bytes that a client sends: it gets one answer, and none ends the process.
func FuzzRequest(f *testing.F) {
	h := openControlled(f)
	d, err := Describe(report.View{Handover: h, Status: new(rt.StatusBlock)})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range routes() {
		for _, body := range []string{"", "{}", `{"values":{"clutch7.pressure":3}}`, `{"names":["all"]}`, `{"arguments":["frame=Speeds","drop"]}`, `{"text":"x\u001b"}`, `{"now":true}`} {
			f.Add(r.method, r.path, "signal=w1&every=0s", body)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		c := newServer(report.View{Handover: h, Status: new(rt.StatusBlock)}, d)
		c.stop, c.recorder = make(chan<- os.Signal, 1), &recorder.Recorder{}
		c.Status.Reason.Store(uint64(rt.Stopped)) // no loop takes a change
		close(c.reportReady)                      // a client does not wait
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		for line := range strings.Lines(w.Body.String()) {
			if path != "/openapi.json" && !json.Valid([]byte(line)) {
				t.Errorf("%s %q %q: %q", method, path, body, line)
			}
		}
		refusal := Refusal{}
		if err := json.Unmarshal(w.Body.Bytes(), &refusal); w.Code != 200 && (err != nil || refusal.Error == "") || w.Code == 500 {
			t.Errorf("%s %q %q: %d, %s", method, path, body, w.Code, w.Body)
		}
	})
}

// An answer may come from another user: what it prints cannot act on a terminal, and a row is a line.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{"", "null", "{}", `{"run":{"bench":"a\u001bb\nc","buses":["x\ty"],"since":"2026-01-01T00:00:00Z"}}`,
		`{"faults":[{"name":"a"}],"outputs":{"w[rpm]":1e300}}`, `{"error":"\u009b\n"}`, `{"ended":"\r\n","bench":"\n"}`,
		`{"signals":[{"name":"\u001b","unit":"\n"}]}`, `{"last":[1,null],"min":[0],"max":[2,3],"lost":3}`, `{"values":[{"name":"a\u001b"}]}`} {
		for i := range verbs {
			f.Add([]byte(text), i)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		s := &socket{name: "theirs", uid: -1}
		var text strings.Builder
		v := &verbs[uint(n)%uint(len(verbs))]
		acts := func(text string) bool {
			return strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' })
		}
		if v.answer == nil {
			if err := s.printStream(bytes.NewReader(data), &Options{Out: &text}); acts(text.String()) || err != nil && strings.Contains(host.Printable(err.Error()), "\n") {
				t.Errorf("%q, %v", &text, err)
			}
			return
		}
		a := v.answer()
		if err := s.parseAnswer(200, bytes.NewReader(data), a); err != nil {
			if strings.Contains(host.Printable(err.Error()), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if err := printText(&text, a); err != nil || acts(text.String()) {
			t.Errorf("%q, %v", &text, err)
		}
		full := &Answer{}
		if err := s.parseAnswer(200, bytes.NewReader(data), full); err != nil {
			return
		}
		if line := full.EndLine(); strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q", line)
		}
		if full.Run == nil {
			return
		}
		text.Reset()
		if err := Table(&text, []ListedRun{*full.Run}); err != nil || strings.Count(text.String(), "\n") != 2 || acts(text.String()) {
			t.Errorf("%q, %v", &text, err)
		}
	})
}

// The run closes the connections when no request is being served any more: by then the answer must have left.
func TestAnswerIsSentBeforeItsRequestIsServed(t *testing.T) {
	w := httptest.NewRecorder()
	writeAnswer(w, &Answer{Tick: 3}, nil)
	if n := w.Header().Get("Content-Length"); !w.Flushed || w.Body.Len() == 0 || n != strconv.Itoa(w.Body.Len()) {
		t.Errorf("flushed: %v, Content-Length %s of %d bytes", w.Flushed, n, w.Body.Len())
	}
}

// An input that follows a table of the plant file has the value of the table, also where a command or a fault has set
// the start value of the table before.
func TestInputThatFollowsTheTableOfThePlantFileHasItsValue(t *testing.T) {
	c := newControlled(t)
	s := c.s.streams.description.byName["clutch7.pressure"] // 0 bar until 2.5 s, 18 bar from 2.95 s on
	if s.Follows != "follows its own table" {
		t.Errorf("clutch7.pressure %q", s.Follows)
	}
	value := func() float64 {
		var a Values
		code, body := c.exchange("GET /values?signal=clutch7.pressure HTTP/1.1\r\nHost: x\r\n\r\n")
		if strings.Contains(body, "the run has not ticked yet") {
			return math.NaN()
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || code != 200 || a.Values[0].Value == nil {
			t.Fatalf("%d %s: %v", code, body, err)
		}
		return *a.Values[0].Value
	}
	await := func(want float64, why string) {
		t.Helper()
		got := value()
		for end := time.Now().Add(time.Minute); got != want && time.Now().Before(end); got = value() {
			time.Sleep(5 * time.Millisecond)
		}
		if got != want {
			t.Errorf("%s: %g bar, want %g", why, got, want)
		}
	}
	await(18, "the end of the table")
	c.must("set", "clutch7.pressure=0 bar")
	await(0, "set to the start value")
	c.must("release", "clutch7.pressure")
	await(18, "released")
	c.must("fault", "name=leak", "input=clutch7.pressure", "stuck=0")
	await(0, "stuck at the start value")
	c.must("clear", "leak")
	await(18, "cleared")
}
