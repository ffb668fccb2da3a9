package labs

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/rt/report"
)

// busReport is the part of a bus in `lockstep run -report` that the tests read.
type busReport struct {
	Bus       string             `json:"bus"`
	State     string             `json:"state"`
	Seconds   map[string]float64 `json:"seconds"`
	TxErrors  *int               `json:"tx_errors"`
	Frames    int                `json:"error_frames"`
	Unread    int                `json:"error_frames_unread"`
	Warnings  int                `json:"warnings"`
	Passives  int                `json:"passives"`
	Offs      int                `json:"offs"`
	NoAck     int                `json:"no_acknowledgement"`
	BusErrors int                `json:"bus_errors"`
	Overflows int                `json:"controller_rx_overflows"`
	Changes   []struct {
		At    float64 `json:"at_s"`
		State string  `json:"state"`
		Text  string  `json:"text"`
	} `json:"changes"`
}

// reportOfBus returns the report of the one bus of a bench. The times of its states must add up to
// the simulated time.
func reportOfBus(b *lab.Bench) busReport {
	b.T.Helper()
	var all struct {
		Buses   []busReport `json:"buses"`
		SimTime float64     `json:"sim_time_s"`
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(b.T, b.File)), &all); err != nil || len(all.Buses) != 1 {
		b.T.Fatalf("%v: %d buses in the report, want 1", err, len(all.Buses))
	}
	sum := 0.0
	for _, s := range all.Buses[0].Seconds {
		sum += s
	}
	if !(math.Abs(sum-all.SimTime) < 1e-6) {
		b.T.Errorf("the states last %v s, the run %v s", sum, all.SimTime)
	}
	return all.Buses[0]
}

// reportOf returns the whole report of a run.
func reportOf(t *testing.T, b *lab.Bench) (r report.Report) {
	t.Helper()
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, b.File)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// states returns the sequence of states of the bus.
func (f *busReport) states() (list []string) {
	for _, c := range f.Changes {
		if len(list) == 0 || list[len(list)-1] != c.State {
			list = append(list, c.State)
		}
	}
	return list
}

// busEvents returns the texts of the bus events in a record.
func busEvents(t *testing.T, path string) (list []string) {
	t.Helper()
	for _, e := range recorded(t, path) {
		if e.Kind == record.EventEntry && e.Event.Kind == record.BusState {
			list = append(list, e.Event.Text)
		}
	}
	return list
}

// The driver is that of Linux; the test plays the card.
func TestLabStatesOfAControllerAreReported(t *testing.T) {
	if !lab.InVCAN(t, "ip", "insmod") {
		return
	}
	card := newAdapter(t)
	lab.Shell(t, "ip link set "+card.bus+" up type can bitrate 500000")
	statesAreReported(t, card, "-besteffort")
	passiveAtTheStart(t, card)
	offAtTheStart(t, card)
	downAtTheStart(t, card)
}

// statesAreReported takes the card through all its states while a bench runs on it.
func statesAreReported(t *testing.T, card *adapter, args ...string) {
	log := filepath.Join(t.TempDir(), "run.rec")
	b := ticking(t, card.bus, []lab.Edit{{"    database: ", "    recover: restart after 300 ms\n    database: "}}, append(args, "-record", log)...)
	for _, s := range []struct{ message, line string }{
		{"sw000100", "bus drive is error-warning (100/0)"}, {"sp000130", "bus drive is error-passive (130/0)"}, {"sa000010", ""},
		{"e1a", ""}, {"e3bcs", ""}, {"sb000256", "bus drive is off"},
	} {
		card.report(s.message)
		if b.AwaitStatus(2); s.line != "" {
			b.AwaitOutput(s.line)
		}
	}
	b.AwaitStatus(1) // the supervisor tries to restart the card, which slcan refuses
	lab.Shell(t, "ip link set "+card.bus+" down")
	b.AwaitOutput("bus drive is down")
	lab.Shell(t, "ip link set "+card.bus+" up")
	awaitBus(b.Bench)
	b.stop()
	f := reportOfBus(b.Bench)
	want := []string{"error-warning", "error-passive", "error-active", "bus-off", "down", "error-active"}
	if got := f.states(); !slices.Equal(got, want) {
		t.Errorf("the bus was %q, want %q", got, want)
	}
	if f.Warnings != 1 || f.Passives != 1 || f.Offs != 1 || f.NoAck != 1 || f.BusErrors < 1 || f.Unread != 0 || f.State != "error-active" {
		t.Errorf("%+v", f)
	}
	var texts []string
	for _, c := range f.Changes {
		texts = append(texts, c.Text)
	}
	lines := strings.Join(texts, "\n")
	for _, words := range [][]string{
		{"drive", card.bus, "error-passive", "130"}, {"drive", card.bus, "bus-off"},
		{"restart " + card.bus + ": operation not supported", "ip link set " + card.bus + " up"}, // slcan cannot
	} {
		if !anyLine(lines, words...) {
			t.Errorf("the report has no line with %q:\n%s", words, lines)
		}
	}
	if got := busEvents(t, log); !slices.Equal(got, texts) {
		t.Errorf("bus events in the record %q, in the report %q", got, texts)
	}
	t.Logf("%s", &b.Out)
}

// busOffIsSafe takes the card off the bus under a bench with bus_off: safe. The repaired card sends the safe
// values and nothing else.
func busOffIsSafe(t *testing.T, card *adapter) {
	earlier := len(card.speeds(0).Data)
	b := ticking(t, card.bus, []lab.Edit{{"bus_off: continue", "bus_off: safe"}})
	lab.Await(t, "20 Speeds on the card", func() bool { return len(card.speeds(earlier).Data) >= 20 })
	card.report("sb000256")
	b.AwaitOutput("SAFE since ") // the status line then shows no state of the bus
	off := len(card.speeds(0).Data)
	lab.Shell(t, "ip link set "+card.bus+" down")
	b.AwaitStatus(2)
	lab.Shell(t, "ip link set "+card.bus+" up")
	lab.Await(t, "20 Speeds on the repaired card", func() bool { return len(card.speeds(off).Data) >= 20 })
	b.Signal(syscall.SIGINT)
	if code := b.Wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s%s", code, &b.Out, &b.Err)
	}
	lab.CheckFallToSafe(t, card.speeds(earlier))
	if slices.Contains(lab.SafeSpeeds(card.speeds(off)), false) {
		t.Error("the repaired card sends values of the plant")
	}
	if f := reportOfBus(b.Bench); f.Offs != 1 || !slices.Equal(f.states(), []string{"bus-off", "down", "error-active"}) {
		t.Errorf("bus-off %d times, states %q; want bus-off once, then down and error-active", f.Offs, f.states())
	}
}

// awaitBus waits for a status line without a bus state: the bus works.
func awaitBus(b *lab.Bench) {
	b.T.Helper()
	lab.Await(b.T, "a status line without a bus state", func() bool {
		lines := strings.Split(b.Out.String(), "\n")
		return len(lines) > 1 && !strings.Contains(lines[len(lines)-2], "bus drive is")
	})
}

func passiveAtTheStart(t *testing.T, card *adapter) {
	card.report("sp000130")
	card.awaitState("ERROR-PASSIVE")
	b := lab.StartDemoOn(t, card.bus, time.Second, nil, "-besteffort")
	b.AwaitReport()
	if !anyLine(b.Out.String(), "drive", "can0", "error-passive") {
		t.Errorf("a bus that is error-passive at the start:\n%s", &b.Out)
	}
	if f := reportOfBus(b); f.State != "error-passive" || len(f.Changes) != 0 {
		t.Errorf("%+v", f)
	}
}

func offAtTheStart(t *testing.T, card *adapter) {
	card.report("sb000256")
	card.awaitState("BUS-OFF")
	b := lab.StartDemoOn(t, card.bus, time.Second, nil, "-besteffort")
	code := b.Wait()
	if message := b.Err.String(); code != 3 || strings.Count(message, "\n") != 1 || !all(message, "drive", "can0", "bus-off", "ip link set can0 up type can bitrate 500000 restart-ms 100") {
		t.Errorf("exit %d, %q; want 3, and one line with the bus, its state and the command", code, message)
	}
}

func downAtTheStart(t *testing.T, card *adapter) {
	lab.Shell(t, "ip link set "+card.bus+" down")
	b := lab.StartDemoOn(t, card.bus, time.Second, nil, "-besteffort")
	code := b.Wait()
	if want := "ip link set can0 up type can bitrate 500000 restart-ms 100\n"; code != 3 || !strings.HasSuffix(b.Err.String(), want) || strings.Count(b.Err.String(), "\n") != 1 {
		t.Errorf("exit %d, %q; want 3, and one line with %q", code, &b.Err, want)
	}
}

// The run continues without an interface. When an interface of the same name is made, the bench
// binds its socket to that.
func TestLabBenchBindsToAnInterfaceThatIsMadeAgain(t *testing.T) {
	if !lab.InVCAN(t, "ip", "candump") {
		return
	}
	log := filepath.Join(t.TempDir(), "run.rec")
	b := ticking(t, "vcan1", nil, "-besteffort", "-record", log)
	lab.Shell(t, "ip link set vcan1 down")
	b.AwaitOutput("bus drive is down")
	lab.Shell(t, "ip link set vcan1 up")
	awaitBus(b.Bench)
	lab.Shell(t, "ip link del vcan1")
	b.AwaitOutput("bus drive is gone")
	lab.Shell(t, "ip link add dev vcan1 type vcan && ip link set vcan1 mtu 72 up")
	dump := lab.StartCandump(t, "vcan1")
	tcu := lab.StartUnit(t, "vcan1")
	lab.Await(t, "50 Speeds and a pressure on the new interface", func() bool {
		seen := dump.Out.String()
		return strings.Count(seen, " 200#") >= 50 && strings.Contains(seen, " 110#")
	})
	awaitBus(b.Bench)
	r := b.stop()
	tcu.Signal(syscall.SIGTERM)
	f := reportOfBus(b.Bench)
	if got, want := f.states(), []string{"down", "up", "down", "gone", "down", "up"}; !slices.Equal(got, want) {
		t.Errorf("the bus was %q, want %q", got, want)
	}
	byID, _ := lab.EndCandump(t, dump)
	if byID["200"] == nil || len(byID["200"].Data) < 50 {
		t.Fatalf("%d Speeds on the new interface, want at least 50", len(byID["200"].Data))
	}
	if r.RxFrames == 0 || r.BusDown == 0 {
		t.Errorf("received %d frames, %d ticks without a bus; want some of each", r.RxFrames, r.BusDown)
	}
	events := busEvents(t, log)
	if !slices.Contains(events, "bus drive (vcan1): bound to the new interface") || !slices.Contains(events, "bus drive (vcan1): gone") {
		t.Errorf("bus events %q, want gone and bound", events)
	}
	t.Logf("%s", &b.Out)
}

// errorFrames writes n error frames of some classes to a bus, with a pause after every 30 frames,
// and returns how many the kernel took.
func errorFrames(t *testing.T, bus string, n int, classes uint32) (sent int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_CAN, unix.SOCK_RAW, unix.CAN_RAW)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	iface, err := net.InterfaceByName(bus)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrCAN{Ifindex: iface.Index}); err != nil {
		t.Fatal(err)
	}
	frame := append(binary.NativeEndian.AppendUint32(nil, unix.CAN_ERR_FLAG|classes), 8)
	frame = append(frame, make([]byte, 16-len(frame))...)
	for i := range n {
		if _, err := unix.Write(fd, frame); err == nil {
			sent++
		}
		if i%30 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return sent
}

// The number of error frames that the supervisor reads is bounded, the others are counted, and the
// target receives none.
func TestLabFloodOfErrorFramesIsCounted(t *testing.T) {
	if !lab.InVCAN(t, "ip") {
		return
	}
	b := ticking(t, "vcan0", nil, "-besteffort")
	// No acknowledgement and a bus error, as from a broken wire.
	sent := errorFrames(t, "vcan0", 10_000, unix.CAN_ERR_ACK|unix.CAN_ERR_BUSERROR)
	b.AwaitStatus(3) // until all frames are read or counted
	r := b.stop()
	f := reportOfBus(b.Bench)
	t.Logf("%d error frames written, %d read, %d not", sent, f.Frames, f.Unread)
	if f.Frames+f.Unread != sent || f.Frames < 100 || f.Unread == 0 || f.NoAck != f.Frames {
		t.Errorf("%d error frames read and %d not, %d of them without acknowledgement; %d were written", f.Frames, f.Unread, f.NoAck, sent)
	}
	if r.RxFrames+r.RxOverflow != 0 {
		t.Errorf("the target received %d frames and lost %d, want none", r.RxFrames, r.RxOverflow)
	}
	if most := int(1280 * (1 + r.Ticks*uint64(r.StepNs)/1e9)); f.Frames > most {
		t.Errorf("%d error frames were read in %d ticks, more than the bound of %d", f.Frames, r.Ticks, most)
	}
}

// The target handles bus-off without its supervisor.
func TestLabBusOffTakesEffectWithoutASupervisor(t *testing.T) {
	if !lab.InVCAN(t, "candump", "cansend") {
		return
	}
	dump := lab.StartCandump(t, "vcan0")
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, []lab.Edit{{"bus_off: continue", "bus_off: stop"}, {"supervisor_gone: stop after 1 s", "supervisor_gone: continue"}}, "-besteffort")
	b.AwaitTicking()
	target := lab.Child(t, b.Cmd.Process.Pid, "lockstep-target")
	b.Signal(syscall.SIGKILL)
	b.Wait()
	before := strings.Count(dump.Out.String(), " 200#")
	lab.Await(t, "80 Speeds without a supervisor", func() bool { return strings.Count(dump.Out.String(), " 200#") > before+80 })
	off := lab.Start(t, "cansend", "vcan0", "20000040#0000000000000000")
	if code := off.Wait(); code != 0 {
		t.Fatalf("cansend: exit %d, %s", code, &off.Err)
	}
	lab.AwaitExit(t, target)
	byID, _ := lab.EndCandump(t, dump)
	lab.CheckFallToSafe(t, byID["200"])
}
