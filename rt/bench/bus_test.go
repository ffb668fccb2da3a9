package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/dbc"
	"lockstep/io/sigmap"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/rt"
	"lockstep/sched"
)

func TestDatabaseSaysHowAFrameIsSentWhereTheFileDoesNot(t *testing.T) {
	msg := sigmap.Message{Name: "M", SendType: "OnChange", CycleNs: 100e6, DelayNs: 7e6, FastNs: 21e6, Repeats: 3}
	for _, c := range []struct {
		f    Frame
		kind string
		want sigmap.Sending
	}{
		{Frame{Repeats: -1}, "OnChange", sigmap.Sending{Send: sigmap.OnChange, GapNs: 10e6, Repeats: 3, EveryNs: 25e6}},
		{Frame{Repeats: 0, GapNs: 20e6}, "spontan", sigmap.Sending{Send: sigmap.OnChange, GapNs: 20e6, EveryNs: 25e6}},
		{Frame{Repeats: -1, CycleNs: 50e6}, "OnChange", sigmap.Sending{CycleNs: 50e6}},
		{Frame{Repeats: -1, CycleNs: 50e6}, "CyclicAndSpontaneous", sigmap.Sending{Send: sigmap.Both, CycleNs: 50e6, GapNs: 10e6, Repeats: 3, EveryNs: 25e6}},
		{Frame{Repeats: -1}, "Cyclic", sigmap.Sending{CycleNs: 100e6}},
		{Frame{Repeats: -1}, "CyclicIfActive", sigmap.Sending{CycleNs: 100e6}},
		{Frame{Repeats: -1}, "", sigmap.Sending{CycleNs: 100e6}},
		{Frame{Repeats: 1, Sent: true}, "OnChange", sigmap.Sending{CycleNs: 100e6, Repeats: 1}}, // send: cyclic; Bind refuses the rest
		{Frame{Repeats: 2, Sent: true, Send: sigmap.Both}, "Cyclic", sigmap.Sending{Send: sigmap.Both, CycleNs: 100e6, GapNs: 10e6, Repeats: 2, EveryNs: 25e6}},
	} {
		c.f.Message.Text, c.want.Message, msg.SendType = "M", "M", c.kind
		got := c.f.sending(&sigmap.Database{Messages: []sigmap.Message{msg}}, 5e6)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%q: %+v, want %+v", c.kind, got, c.want)
		}
	}
	msg.CycleNs, msg.SendType = 0, "CyclicAndOnChange"
	if got := (&Frame{Message: Word{Text: "M"}}).sending(&sigmap.Database{Messages: []sigmap.Message{msg}}, 5e6); got.Send != sigmap.OnChange {
		t.Errorf("both without a cycle is sent %v, want on change", got.Send)
	}
}

// guardedText is the demo bench with protected frames both ways and a restbus.
func guardedText(t *testing.T) string {
	t.Helper()
	text := demoText(t, "Torque: {cycle: 10 ms, counter: counter_T}",
		"Torque: {cycle: 10 ms, protect: {profile: e2e-2, data_ids: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], counter: counter_T, checksum: 56|8}}")
	text = strings.Replace(text, "database: powershift.dbc", "database: guarded.dbc\n    bitrate: 250 kbit/s", 1)
	return text + `    messages:
      TCU_Pressure_1:
        cycle: 10 ms
        timeout: 40 ms
        dlc: 8
        protect: [{profile: crc8, poly: 0x1D, init: 0xFF, xor_out: 0xFF, counter: counter_P1, checksum: "56|8"}]
        on_timeout: {substitute: {clutch1.pressure: 3 bar}}
        on_error: safe
        invalid: {pressure_C4: [0xFFF, 4000-4094]}
    restbus:
      Motor: {values: {speed: {table: [[0 s, 100], [0.1 s, 200]], period: 0.1 s}, torque: {sine: {mean: 10, amplitude: 5, frequency: 2 Hz}}, mode: running}}
      Klemmen: {send: on_change, min_gap: 10 ms, values: {key: {table: [[0, 0], [0.05, 0], [0.05, 1]]}}}
      Slow: {cycle: 20 ms}
`
}

// guardedDatabase is that of the demo bench with a restbus.
func guardedDatabase(t *testing.T) string {
	t.Helper()
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(data), "CM_ \"The", `BO_ 1024 Motor: 8 Motor
 SG_ speed : 0|16@1+ (1,0) [0|8000] "rpm" TCU
 SG_ torque : 16|16@1- (0.1,0) [0|0] "N.m" TCU
 SG_ mode : 32|4@1+ (1,0) [0|15] "" TCU

BO_ 1025 Klemmen: 1 Motor
 SG_ key : 0|1@1+ (1,0) [0|1] "" TCU
 SG_ level : 1|7@1+ (1,-40) [0|0] "" TCU

BO_ 1026 Slow: 2 Motor

CM_ "The`, 1) + "VAL_ 1024 mode 0 \"off\" 3 \"running\" ;\nBA_ \"GenMsgCycleTime\" BO_ 1024 10;\n"
}

func guardedBench(t *testing.T, text string) (*Bench, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "guarded.dbc"), []byte(guardedDatabase(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	return parse("b.yaml", dir, []byte(text))
}

// guardedRun is that bench in virtual time, with the other end of its bus.
func guardedRun(t *testing.T, text string) (*run, *rt.Loop, *can.Bus) {
	t.Helper()
	b, err := guardedBench(t, text)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{bench: b, page: new(rt.Page), unitDie: -1, options: Options{Out: os.Stdout}}
	if r.h, err = Prepare(b); err != nil {
		t.Fatal(err)
	}
	var ends [2]*can.Bus
	theirs, ours, err := can.Pair()
	for i, f := range []*os.File{theirs, ours} {
		if err == nil {
			ends[i], err = can.Inherit(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	loop, err := rt.New(r.h.Loop, kernel.New(r.h.Tables), ends[1:], r.h.Maps, sched.NewVirtual(5*time.Millisecond), r.page)
	if err != nil {
		t.Fatal(err)
	}
	r.page.State.Store(uint64(rt.Running))
	return r, loop, ends[0]
}

// unitMap is the other side of the guarded bench: it sends the pressures.
func unitMap(t *testing.T, r *run) *sigmap.Map {
	t.Helper()
	bus := r.bench.Buses[0]
	_, data, err := r.bench.Read(bus.Database)
	if err != nil {
		t.Fatal(err)
	}
	db, err := dbc.Parse("guarded.dbc", data)
	if err != nil {
		t.Fatal(err)
	}
	m, err := sigmap.Bind(db, sigmap.Spec{PeriodNs: 5e6, Sendings: []sigmap.Sending{
		{Message: "TCU_Pressure_1", CycleNs: 10e6, Protect: specs(bus.Messages[0].Protect), Values: []sigmap.Constant{{Signal: "pressure_C1", Text: "20"}}},
		{Message: "TCU_Pressure_2", CycleNs: 10e6, Values: []sigmap.Constant{{Signal: "pressure_C5", Text: "10"}}},
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProtectedBenchKeepsEveryPhaseAndCycle(t *testing.T) {
	r, loop, unit := guardedRun(t, guardedText(t))
	say := unitMap(t, r)
	check, err := sigmap.NewProtection(r.bench.Buses[0].Frames[1].Protect[0].Spec, &sigmap.Message{Name: "Torque", Len: 8, Signals: []sigmap.Signal{
		{Name: "counter_T", Start: 51, Len: 4, BigEndian: true, Factor: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint32][]int64{}
	frames := make([]can.Frame, 64)
	for k := int64(1); k <= 400; k++ {
		for i := range say.Tx {
			var f can.Frame
			if say.Due(i, k, nil, false) && (!say.Encode(&f, i, k, nil, false) || !unit.Send(&f)) {
				t.Fatal("the unit cannot send")
			}
		}
		loop.Tick(1)
		for _, f := range frames[:unit.Recv(frames)] {
			at[f.ID] = append(at[f.ID], k)
			switch f.ID {
			case 513:
				if s := check.Check(&f.Data, 8, 513); s.Frame != sigmap.FrameOK && len(at[f.ID]) > 1 {
					t.Fatalf("tick %d: Torque is %v", k, s.Frame)
				}
			case 1024:
				want := 100 + 100*(k*5%100)/100
				if got := int64(f.Data[0]) | int64(f.Data[1])<<8; got != want || f.Data[4] != 3 {
					t.Fatalf("tick %d: speed %d, mode %d, want %d, 3", k, got, f.Data[4], want)
				}
			case 1025:
				if want := k >= 10; f.Data[0] == 1 != want {
					t.Fatalf("tick %d: key %d", k, f.Data[0])
				}
			}
		}
	}
	for _, c := range []struct {
		id           uint32
		cycle, phase int64
	}{{512, 1, 0}, {513, 2, 0}, {514, 2, 1}, {1024, 2, 0}, {1026, 4, 1}} {
		tx := r.h.Maps[0].Tx
		for i := range tx {
			if tx[i].ID == c.id && (tx[i].CycleTicks != c.cycle || tx[i].PhaseTicks != c.phase) {
				t.Errorf("%s has cycle %d, phase %d; want %d, %d", tx[i].Name, tx[i].CycleTicks, tx[i].PhaseTicks, c.cycle, c.phase)
			}
		}
		want := []int64(nil)
		for k := int64(1); k <= 400; k++ {
			if k%c.cycle == c.phase {
				want = append(want, k)
			}
		}
		if fmt.Sprint(at[c.id]) != fmt.Sprint(want) {
			t.Errorf("%d came at %v, want %v", c.id, at[c.id], want)
		}
	}
	if fmt.Sprint(at[1025]) != "[1 10]" {
		t.Errorf("the frame sent on change came at %v, want at 1 and 10", at[1025])
	}
	w := &r.page.Rx[0]
	if w.Frames.Load() != 200 || w.OK.Load() != 200 || w.CycleMin.Load() != 10e6 || w.CycleMax.Load() != 10e6 || w.Timeouts.Load() != 0 || w.AgeMax.Load() != 5e6 {
		t.Errorf("%d frames, %d good, cycle %d to %d ns, %d timeouts, age %d ns", w.Frames.Load(), w.OK.Load(), w.CycleMin.Load(), w.CycleMax.Load(), w.Timeouts.Load(), w.AgeMax.Load())
	}
	if s := w.Load(); s != (rt.RxStatus{Frame: sigmap.FrameOK, Window: sigmap.WindowValid, Protected: true}) {
		t.Errorf("%+v", s)
	}
}

func TestRecordOfAProtectedBenchRunsAgainBitForBit(t *testing.T) {
	r, loop, unit := guardedRun(t, strings.Replace(guardedText(t), "on_error: safe", "on_error: {substitute: {clutch2.pressure: 1 bar}}", 1))
	say := unitMap(t, r)
	r.options.Record = filepath.Join(t.TempDir(), "record")
	if err := r.startRecord(); err != nil {
		t.Fatal(err)
	}
	frames := make([]can.Frame, 64)
	r.page.StartNs.Store(1)
	if !r.record.begin() {
		t.Fatal(r.record.err)
	}
	for k := int64(1); k <= 900; k++ {
		for i := range say.Tx {
			var f can.Frame
			if !say.Due(i, k, nil, false) || i == 0 && k/100%2 == 1 { // away for half a second each second
				continue
			}
			say.Encode(&f, i, k, nil, false)
			if k%30 == 0 {
				f.Data[0] ^= 1
			}
			if k%50 == 0 {
				f.Data[7] ^= 0x40
			}
			unit.Send(&f)
		}
		n := int64(1)
		if k%70 == 0 {
			n = 30 // lost points
		}
		loop.Tick(n)
		unit.Recv(frames)
		r.record.drain()
	}
	w := &r.page.Rx[0]
	if w.Timeouts.Load() < 4 || w.Errors.Load() == 0 || r.page.SafeReason.Load() != 0 {
		t.Errorf("%d timeouts, %d errors, %v: this proves little", w.Timeouts.Load(), w.Errors.Load(), rt.Reason(r.page.SafeReason.Load()))
	}
	r.record.wakeUp(&rt.Entry{})
	if err := r.record.w.Close(); err != nil {
		t.Fatal(err)
	}
	same, err := Replay{Record: r.options.Record}.Run()
	if err != nil || !strings.HasPrefix(same, "identical: ") {
		t.Errorf("%q, %v", same, err)
	}
}

func TestFailingProtectionTakesTheBusToTheSafeState(t *testing.T) {
	r, loop, unit := guardedRun(t, guardedText(t))
	say := unitMap(t, r)
	for k := int64(1); k <= 100 && r.page.SafeReason.Load() == 0; k++ {
		var f can.Frame
		say.Encode(&f, 0, 0, nil, false)
		if k > 20 {
			f.Data[0] ^= 1
		}
		unit.Send(&f)
		loop.Tick(1)
	}
	if why := rt.Reason(r.page.SafeReason.Load()); why != rt.MessageWrong || r.page.SafeTick.Load() != 23 {
		t.Errorf("%v at tick %d, want the third wrong frame at 23", why, r.page.SafeTick.Load())
	}
	if got := loop.U[0]; got != 20e5 {
		t.Errorf("clutch1.pressure is %g Pa, want 20 bar", got)
	}
}

func TestReportAndStatusSayHowReceivedMessagesStand(t *testing.T) {
	r, loop, unit := guardedRun(t, guardedText(t))
	say := unitMap(t, r)
	s := newStatus(r)
	defer s.end()
	step := func(change func(f *can.Frame)) {
		for i := range say.Tx {
			var f can.Frame
			say.Encode(&f, i, 0, nil, false)
			if i == 0 {
				change(&f)
			}
			unit.Send(&f)
		}
		loop.Tick(1)
		loop.Tick(1)
	}
	for range 30 {
		step(func(*can.Frame) {})
	}
	if got := s.trouble(); got != "" {
		t.Errorf("without trouble: %q", got)
	}
	for range 2 {
		step(func(f *can.Frame) { f.Data[0] ^= 1 })
	}
	if got := s.trouble(); got != "TCU_Pressure_1: wrong checksum 2" {
		t.Errorf("two wrong frames: %q", got)
	}
	for range 9 {
		loop.Tick(1)
	}
	for range 8 {
		step(func(f *can.Frame) { *f = can.Frame{ID: 0x123} })
	}
	v := received(r.page, r.h)
	want := Received{
		Bus: "drive", Message: "TCU_Pressure_1", ID: 0x110, Protected: true, Frames: 32, OK: 30, Errors: 2, NoNew: v[0].NoNew,
		State: "NONEWDATA", Window: "INVALID", Timeouts: 1, Late: true, AgeMax: v[0].AgeMax, Cycle: v[0].Cycle,
	}
	if fmt.Sprint(v[0]) != fmt.Sprint(want) || v[0].AgeMax != 30*5e6 || v[0].NoNew < 9 {
		t.Errorf("got  %+v\nwant %+v", v[0], want)
	}
	if c := *v[0].Cycle; c != (Cycle{10e6, 10e6, 10e6, 0}) {
		t.Errorf("cycle %+v", c)
	}
	if c := *v[1].Cycle; c.Min != 10e6 || c.Max != 55e6 || c.Jitter == 0 {
		t.Errorf("cycle of the other %+v", c)
	}
	line := "TCU_Pressure_1: 32 frames every 10.000 ms (10.000 to 10.000), jitter 0.000 ms, age at most 150.000 ms, INVALID; wrong checksum 2, timeouts 1"
	if got := v[0].String(); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
	if got := s.trouble(); got != "TCU_Pressure_1: wrong checksum 2" {
		t.Errorf("late: %q", got)
	}
	for range 100 {
		loop.Tick(1)
	}
	if got := s.trouble(); got != "no valid frame from TCU_Pressure_1 for 0.7 s" {
		t.Errorf("silent: %q", got)
	}
	if v := r.silent(); len(v) != 2 || !v[0].Substituted || v[1].Substituted {
		t.Errorf("silent: %+v", v)
	}
}

func TestTargetIsHandedTheProtectionAndTheCourses(t *testing.T) {
	r, _, _ := guardedRun(t, guardedText(t))
	f, err := r.h.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := loadHandover(f)
	if err != nil {
		t.Fatal(err)
	}
	say := unitMap(t, r)
	here, there := r.h.Maps[0], h.Maps[0]
	y := make([]float64, len(r.h.Tables.Outputs))
	u, v := make([]float64, len(r.h.Tables.Inputs)), make([]float64, len(r.h.Tables.Inputs))
	for k := int64(1); k <= 200; k++ {
		var in, a, b can.Frame
		if k%3 != 0 && k < 100 {
			say.Encode(&in, 0, 0, nil, false)
			here.Decode(u, &in)
			there.Decode(v, &in)
		}
		if d, e := here.Tick(u, k), there.Tick(v, k); d != e || fmt.Sprint(u) != fmt.Sprint(v) {
			t.Fatalf("tick %d: %v and %d here, %v and %d there", k, u, d, v, e)
		}
		for i := range here.Tx {
			due := here.Due(i, k, y, false)
			if due != there.Due(i, k, y, false) {
				t.Fatalf("tick %d: %s is due on one side", k, here.Tx[i].Name)
			}
			if !here.Encode(&a, i, k, y, false) || !there.Encode(&b, i, k, y, false) || a != b {
				t.Fatalf("tick %d: % x here, % x there", k, a.Data[:8], b.Data[:8])
			}
		}
	}
	if u[0] != 3e5 || here.Rx[0].Counts != there.Rx[0].Counts || here.Rx[0].Counts.Timeouts != 1 {
		t.Errorf("clutch1.pressure %g Pa; counted %+v here, %+v there", u[0], here.Rx[0].Counts, there.Rx[0].Counts)
	}
}
