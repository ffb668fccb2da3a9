package port_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/isotp"
	"lockstep/model/plants"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
)

// testerRig is a rig whose bus has a diagnosis file; the test is the unit.
type testerRig struct {
	*rig
	link   *isotp.Link
	answer func(request []byte) []byte // nil: silence
	alter  func(n int, f *can.Frame) bool
	sent   int
}

func startTesterRig(t *testing.T) *testerRig {
	t.Helper()
	return startTesterRigWith(t, "uds: {request: 0x7E1, response: 0x7E9, timing: {limit: 3 s}, dids: {oil_temperature: {id: 0x1001, bytes: 1, offset: -40, unit: degC}}}")
}

// startTesterRigWith is startTesterRig with a diagnosis file.
func startTesterRigWith(t *testing.T, tcu string) *testerRig {
	t.Helper()
	text, err := plants.Read("truck-bench")
	dir := t.TempDir()
	err2 := os.WriteFile(filepath.Join(dir, "tcu.yaml"), []byte(tcu), 0o600)
	link, err3 := isotp.NewLink(isotp.Config{Address: isotp.Normal(0x7E9, 0x7E1)})
	if err = errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	b, err := bench.Parse("b.yaml", dir, []byte(strings.Replace(string(text), "diagnosis: truck-diagnosis.yaml", "diagnosis: tcu.yaml", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return &testerRig{rig: startRig(t, b), link: link}
}

// run runs a command and returns its outcome and the number of ticks until then.
func (r *testerRig) run(words ...string) (diagnosis.Result, int) {
	r.t.Helper()
	j, err := r.port.Tester.Spec.ParseCommand(words, true)
	if err = errors.Join(err, r.port.Tester.Add(j)); err != nil {
		r.t.Fatal(err)
	}
	for n := 1; n < 1000; n++ {
		for _, f := range r.tick() {
			r.link.Receive(&f, r.now)
		}
		for _, e := range r.link.Take() {
			if a := []byte(nil); e.Kind == isotp.Received {
				if a = r.answer(e.Data); a != nil {
					_ = r.link.Send(a, r.now)
				}
			}
		}
		for f, ok := r.link.Next(r.now); ok; f, ok = r.link.Next(r.now) {
			r.link.Sent(r.now)
			if r.sent++; r.alter == nil || r.alter(r.sent, &f) {
				r.send(f)
			}
		}
		if list := r.port.TakeOutcomes(); len(list) > 0 {
			return list[0], n
		}
	}
	r.t.Fatalf("%v never ends", words)
	return diagnosis.Result{}, 0
}

// Whatever the unit does, each tick of the loop is served, and the command ends with one line within its limit.
func TestWrongUnitEndsInOneLineAndDelaysNoTick(t *testing.T) {
	long := append([]byte{0x62, 0x10, 1}, bytes.Repeat([]byte{7}, 60)...)
	is := func(b ...byte) func([]byte) []byte { return func([]byte) []byte { return b } }
	for name, c := range map[string]struct {
		answer func([]byte) []byte
		alter  func(int, *can.Frame) bool
		want   string
	}{
		"right":          {is(0x62, 0x10, 1, 130), nil, "request 22 10 01, answer 62 10 01 82: oil_temperature 90 degC"},
		"silence":        {is(), nil, "no answer: the unit does not answer 0x22 ReadDataByIdentifier within 250 ms"},
		"length":         {is(0x62, 0x10, 1), nil, "3 bytes are too short"},
		"pending":        {is(0x7F, 0x22, 0x78), nil, "after 1 times response pending: the unit does not answer within 3 s"},
		"garbage":        {is(long...), func(n int, f *can.Frame) bool { f.Data[0] ^= byte(n) << 4; return true }, "no answer: "},
		"silence inside": {is(long...), func(n int, _ *can.Frame) bool { return n < 4 }, "no consecutive frame in time (N_TIMEOUT_Cr)"},
		"wrong sequence": {is(long...), func(n int, f *can.Frame) bool { f.Data[0] += byte(n / 4 % 2); return true }, "wrong sequence number (N_WRONG_SN)"},
	} {
		r := startTesterRig(t)
		r.answer, r.alter = c.answer, c.alter
		ticks := r.status.Ticks.Load()
		o, n := r.run("read", "oil_temperature")
		if text := o.String(); !strings.Contains(text, c.want) || strings.Contains(text, "\n") || (o.Err == nil) != (name == "right") {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
		if served := int(r.status.Ticks.Load() - ticks); served != n || n > 310 || int64(o.Tick) != int64(r.status.Ticks.Load()) {
			t.Errorf("%s: %d of %d ticks served, outcome at tick %d", name, served, n, o.Tick)
		}
	}
}

// Whatever a unit on SAE J1939 answers, each tick of the loop is served, and the command ends with one line.
func TestWrongUnitOnJ1939EndsInOneLineAndDelaysNoTick(t *testing.T) {
	const connection, packet, all, ack = 0x1CECF903, 0x1CEBF903, 0x1CEBFF03, 0x18E8FF03
	frame := func(id uint32, data ...byte) can.Frame {
		f := can.Frame{ID: id | can.EFF, Len: uint8(len(data))}
		copy(f.Data[:], data)
		return f
	}
	announce := frame(connection, 16, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0)
	toAll := frame(0x1CECFF03, 32, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0)
	first, second := []byte{1, 4, 0xFF, 0x7F, 2, 9, 1, 0x7F}, []byte{2, 2, 9, 2, 0xFF, 0xFF, 0xFF, 0xFF}
	for name, c := range map[string]struct {
		number string
		frames []can.Frame
		want   string
	}{
		"right":              {"2", []can.Frame{frame(0x18FECB03, 0, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF)}, "no trouble codes"},
		"right, two packets": {"2", []can.Frame{announce, frame(packet, first...), frame(packet, second...)}, "SPN 639 FMI 9, 1 times; SPN 639 FMI 9, 2 times"},
		"right, to all":      {"2", []can.Frame{toAll, frame(all, first...), frame(all, second...)}, "SPN 639 FMI 9, 1 times; SPN 639 FMI 9, 2 times"},
		"silence":            {"2", nil, "no answer: the unit does not answer within 1250 ms"},
		"length":             {"2", []can.Frame{frame(0x18FECB03, 0, 0xFF, 0, 0)}, "trouble codes of 4 bytes; at least 6"},
		"silence inside":     {"2", []can.Frame{announce, frame(packet, first...)}, "the answer was not complete: a packet did not come, or came out of its order"},
		"wrong sequence":     {"2", []can.Frame{toAll, frame(all, second...), frame(all, first...)}, "the answer was not complete: a packet did not come, or came out of its order"},
		"aborted":            {"2", []can.Frame{announce, frame(connection, 255, 3, 0xFF, 0xFF, 0xFF, 0xCB, 0xFE, 0)}, "the unit aborts its answer: reason 3"},
		"wrong announcement": {"2", []can.Frame{frame(connection, 16, 10, 0, 9, 0xFF, 0xCB, 0xFE, 0)}, "the unit announces 10 bytes in 9 packets"},
		"refused":            {"11", []can.Frame{frame(ack, 1, 0xFF, 0xFF, 0xFF, 0xF9, 0xD3, 0xFE, 0)}, "the unit refuses it: negative acknowledgement"},
		"short refusal":      {"11", []can.Frame{frame(ack, 1)}, "the unit sends an acknowledgement of 1 bytes, want 8"},
		"two answers": {"11", []can.Frame{frame(ack, 0, 0xFF, 0xFF, 0xFF, 0xF9, 0xD3, 0xFE, 0), frame(ack, 1, 0xFF, 0xFF, 0xFF, 0xF9, 0xD3, 0xFE, 0)},
			"the unit sent an acknowledgement of PGN 0xFED3, for which no request was open\nuds dm 11; request D3 FE 00, answer 00 FF FF FF F9 D3 FE 00: cleared"},
	} {
		r := startTesterRigWith(t, "j1939: {address: 0x03}")
		j, err := r.port.Tester.Spec.ParseCommand([]string{"dm", c.number}, true)
		if err = errors.Join(err, r.port.Tester.Add(j)); err != nil {
			t.Fatal(err)
		}
		ticks, n, text := r.status.Ticks.Load(), 0, ""
		for asked, end := false, 1000; n < end; n++ {
			if list := r.tick(); !asked && count(list, 0x18EA03F9) > 0 {
				asked = true
				for _, f := range c.frames {
					r.send(f)
				}
			}
			for _, o := range r.port.TakeOutcomes() {
				text += "\n" + o.String()
				end = min(end, n+10) // and an answer too many
			}
		}
		if !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1+strings.Count(c.want, "\n") {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
		if served := int(r.status.Ticks.Load() - ticks); served != n {
			t.Errorf("%s: %d of %d ticks served", name, served, n)
		}
	}
}

// A long request does not fill the queue that the frames of the tick share, though the unit asks for all at once.
func TestLongRequestLeavesRoomForTheFramesOfTheTick(t *testing.T) {
	r := startTesterRig(t)
	request := append([]byte{0x36, 1}, bytes.Repeat([]byte{7}, 1000)...)
	j, err := r.port.Tester.Spec.ParseCommand([]string{"raw", hex.EncodeToString(request)}, true)
	if err = errors.Join(err, r.port.Tester.Add(j)); err != nil {
		t.Fatal(err)
	}
	most, received := 0, []byte(nil)
	for n := 0; n < 200 && received == nil; n++ {
		own := 0
		for _, f := range r.tick() {
			if r.link.Receive(&f, r.now) {
				own++
			}
		}
		most = max(most, own)
		for _, e := range r.link.Take() {
			if e.Kind == isotp.Received {
				received = e.Data
			}
		}
		for f, ok := r.link.Next(r.now); ok; f, ok = r.link.Next(r.now) {
			r.link.Sent(r.now)
			r.send(f)
		}
	}
	if most < 2 || most > 8 || !bytes.Equal(received, request) {
		t.Errorf("at most %d frames in a tick, want 2 to 8; received %d bytes of %d", most, len(received), len(request))
	}
}

// The same unit twice gives the same frames at the same ticks.
func TestDiagnosisInVirtualTimeRepeats(t *testing.T) {
	var runs [2][]diagnosis.Result
	for i := range runs {
		r := startTesterRig(t)
		r.answer = func(q []byte) []byte {
			if q[0] == 0x19 {
				return append([]byte{0x59, 2, 0xFF}, bytes.Repeat([]byte{7, 0x30, 0, 8}, 50)...)
			}
			return []byte{0x7F, q[0], 0x31}
		}
		for _, words := range [][]string{{"dtc"}, {"clear"}, {"dtc", "confirmed"}} {
			o, _ := r.run(words...)
			runs[i] = append(runs[i], o)
		}
	}
	for i := range runs[0] {
		if a, b := runs[0][i], runs[1][i]; a.String() != b.String() || a.Tick != b.Tick || a.End != b.End {
			t.Errorf("%v\n%v", a, b)
		}
	}
	if len(runs[0][0].Lines) != 50 || runs[0][1].Err == nil {
		t.Errorf("%d codes, %v", len(runs[0][0].Lines), runs[0][1].Err)
	}
}
