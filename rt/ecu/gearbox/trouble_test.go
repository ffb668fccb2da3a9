package gearbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// Identifiers of the diagnosis.
const (
	testerRequest  = 0x7E1
	testerResponse = 0x7E9
)

// rawSpeed returns a speed, rad/s, as ShaftSpeeds carries it.
func rawSpeed(w float64) uint64 { return uint64(uint16(int16(math.Round(w / automaticSpeed)))) }

// put replaces n bits of a unit.Payload.
func put(data uint64, at, n int, v uint64) uint64 {
	g := unit.Payload(data)
	g.SetBits(at, n, v)
	return uint64(g)
}

// ask sends a request of up to 7 bytes, "19 02 08", and returns the response; "" without one. The unit stands
// still for 50 ms.
func (g *automaticRig) ask(text string) string {
	g.t.Helper()
	var b []byte
	for _, word := range strings.Fields(text) {
		var v byte
		if _, err := fmt.Sscanf(word, "%02X", &v); err != nil {
			g.t.Fatal(err)
		}
		b = append(b, v)
	}
	return g.exchange(b)
}

// exchange sends a request. An answer in several frames is fetched with one flow control.
func (g *automaticRig) exchange(request []byte) string {
	g.t.Helper()
	from := len(g.line.All)
	frame := func(bytes ...byte) {
		f := can.Frame{ID: testerRequest, Length: 8}
		copy(f.Data[:], bytes)
		g.u.Receive(unittest.Pack(g.t, f), g.line.Now)
		if err := g.u.Tick(g.line.Now + 5*time.Millisecond); err != nil {
			g.t.Fatal(err)
		}
	}
	frame(append([]byte{byte(len(request))}, request...)...)
	frame(0x30, 0, 0)
	var message []byte
	n := 0
	for _, f := range g.line.All[from:] {
		switch {
		case f.ID != testerResponse:
		case f.Data[0]>>4 == 0:
			return fmt.Sprintf("% X", f.Data[1:f.Data[0]+1])
		case f.Data[0]>>4 == 1:
			n, message = int(f.Data[0]&15)<<8|int(f.Data[1]), append([]byte{}, f.Data[2:]...)
		default:
			message = append(message, f.Data[1:]...)
		}
	}
	return fmt.Sprintf("% X", message[:n])
}

// healthy drives in second gear, at a speed that moves, and fails if a fault is found.
func (g *automaticRig) healthy() {
	g.t.Helper()
	if g.oil == 0 {
		g.oil = 90
	}
	g.drive(2, leverD, 0.1, 0, inGear)
	g.drive(3, leverD, 0.1, 60, inGear)
	if got := g.ask("19 02 01"); got != "59 02 FF" {
		g.t.Errorf("a healthy unit answers %s", got)
	}
}

const off, running = 1, 5 // states of the ignition

// Every fault of the inputs: which code it stores and when, whether the unit holds third gear, and that it is
// healthy again in the next operation cycle, with the code confirmed and the lamp on.
func TestFaultsAreStoredAndLeadToLimpHome(t *testing.T) {
	ignition := uint64(running)
	for name, c := range map[string]struct {
		code   uint32
		least  float64 // time to the code, s
		within float64
		limp   bool
		fault  func(id uint32, data uint64, n int) (uint64, bool) // n: frames since its begin
	}{
		"Pedals missing":               {codePedalsLost, 0.4, 0.6, true, func(id uint32, d uint64, _ int) (uint64, bool) { return d, id != idPedals }},
		"ShaftSpeeds missing":          {codeShaftsLost, 0.4, 0.6, true, func(id uint32, d uint64, _ int) (uint64, bool) { return d, id != idShaftSpeeds }},
		"counter of Pedals stuck":      {codePedalsInvalid, 0.15, 0.3, true, onlyOf(idPedals, 8, 4, 3)},
		"counter of ShaftSpeeds stuck": {codeShaftsInvalid, 0.15, 0.3, true, onlyOf(idShaftSpeeds, 8, 4, 3)},
		"lever impossible":             {codeLever, 0.15, 0.3, true, onlyOf(idPedals, 12, 4, 9)},
		"oil at the sensor's end":      {codeOilSensor, 0.9, 1.2, false, onlyOf(idGearboxOil, 16, 16, 2550)},
		"oil missing":                  {codeOilSensor, 1.9, 2.2, false, func(id uint32, d uint64, _ int) (uint64, bool) { return d, id != idGearboxOil }},
		"input speed frozen":           {codeInputSpeed, 0.4, 1.0, true, onlyOf(idShaftSpeeds, 16, 16, rawSpeed(60*1.62))},
		"output speed frozen":          {codeOutputSpeed, 0.4, 1.0, true, onlyOf(idShaftSpeeds, 32, 16, rawSpeed(60))},
		"input speed out of range":     {codeInputSpeed, 0.25, 0.4, true, onlyOf(idShaftSpeeds, 16, 16, 31000)},
		"impossible ratio": {codeRatio, 0.45, 0.6, true, func(id uint32, d uint64, _ int) (uint64, bool) {
			if id == idShaftSpeeds {
				d = put(d, 16, 16, uint64(int64(float64(int16(d>>16))*1.3)))
			}
			return d, true
		}},
		"slip": {codeSlip, 0.95, 1.1, false, func(id uint32, d uint64, _ int) (uint64, bool) {
			if id == idShaftSpeeds {
				d = put(d, 16, 16, uint64(int64(float64(int16(d>>16))*1.06)))
			}
			return d, true
		}},
	} {
		g := newAutomaticRig(t)
		begun, n := false, 0
		g.distort = func(id uint32, data uint64) (uint64, bool) {
			if id == idPedals {
				data = put(data, 48, 3, ignition)
			}
			if begun {
				n++
				return c.fault(id, data, n)
			}
			return data, true
		}
		ignition = running
		g.healthy()
		u := g.u.Law.(*automatic)
		begun = true
		at := -1.0
		for i := range 250 {
			g.drive(0.01, leverD, 0.1, 60+0.1*float64(i), inGear)
			if at < 0 && u.Memory.Status(c.code)&diagnosis.TestFailed != 0 {
				at = float64(i+1) / 100
			}
		}
		if at < c.least || at > c.within {
			t.Errorf("%s: stored after %g s, want %g to %g s\n%s", name, at, c.least, c.within, &g.log)
		}
		if got := u.Memory.Numbers(diagnosis.TestFailed); len(got) != 1 {
			t.Errorf("%s: codes %X, want one", name, got)
		}
		if u.Memory.LimpHome() != c.limp || (u.gear == limpGear) != c.limp {
			t.Errorf("%s: limp-home %v, gear %d", name, u.Memory.LimpHome(), u.gear)
		}
		begun = false
		g.drive(3, leverD, 0.1, 60, inGear)
		if u.Memory.Status(c.code)&diagnosis.TestFailed != 0 || u.Memory.LimpHome() != c.limp {
			t.Errorf("%s: 3 s after the fault: status %08b, limp-home %v", name, u.Memory.Status(c.code), u.Memory.LimpHome())
		}
		ignition = off
		g.drive(5, leverP, 0, 0, inGear)
		ignition = running
		g.drive(2, leverD, 0.1, 0, inGear)
		g.drive(2, leverD, 0.1, 60, inGear)
		status := u.Memory.Status(c.code)
		stored := byte(diagnosis.Confirmed | diagnosis.WarningLamp)
		if c.code == codeSlip { // two trips
			stored = 0
		}
		if u.gear != 2 || u.Memory.LimpHome() || status&(diagnosis.Confirmed|diagnosis.WarningLamp) != stored {
			t.Errorf("%s: in the next operation cycle gear %d, status %08b\n%s", name, u.gear, status, &g.log)
		}
	}
}

// onlyOf sets n bits of one message.
func onlyOf(message uint32, at, n int, v uint64) func(id uint32, data uint64, _ int) (uint64, bool) {
	return func(id uint32, data uint64, _ int) (uint64, bool) {
		if id == message {
			data = put(data, at, n, v)
		}
		return data, true
	}
}

// In first gear C3 is a freewheel: a car that coasts has a slower input shaft, and an input shaft that is faster is wrong.
func TestFirstGearCoastsOnItsFreewheel(t *testing.T) {
	for ratio, want := range map[float64]int{1.5: 0, 3.5: 1} {
		g := newAutomaticRig(t)
		g.drive(2, leverD, 0, 0, inGear)
		u := g.u.Law.(*automatic)
		for i := range 150 {
			g.drive(0.01, leverD, 0, 30-0.05*float64(i), ratio)
		}
		if got := u.Memory.Numbers(diagnosis.TestFailed); len(got) != want || want == 1 && (got[0] != codeRatio || u.gear != limpGear) {
			t.Errorf("ratio %g in first gear: codes %X, gear %d\n%s", ratio, got, u.gear, &g.log)
		}
	}
}

func TestDamagedFramesAreStoredAsInvalidData(t *testing.T) {
	g := newAutomaticRig(t)
	g.healthy()
	g.damaged = true
	g.drive(0.3, leverD, 0.1, 60, inGear)
	g.damaged = false
	u := g.u.Law.(*automatic)
	if got := fmt.Sprintf("%X", u.Memory.Numbers(diagnosis.TestFailed)); got != "[C40100 D40100]" {
		t.Errorf("codes %s", got)
	}
}

// The snapshot holds the values at the failure: gear 2, ratio 1.62·1.3, speeds, oil, engine, car, 5490 ms.
func TestFreezeFrameHoldsTheValuesAtTheFailure(t *testing.T) {
	g := newAutomaticRig(t)
	g.healthy()
	g.distort = func(id uint32, d uint64) (uint64, bool) {
		switch id {
		case idShaftSpeeds:
			d = put(put(d, 16, 16, rawSpeed(126)), 48, 16, rawSpeed(150))
		case idPedals:
			d = put(d, 32, 16, 4321)
		}
		return d, true
	}
	g.drive(1, leverD, 0.1, 60, inGear)
	got := g.ask("19 04 07 30 00 01")
	want := "59 04 07 30 00 AF 01 08 10 02 02 10 03 08 34 10 04 12 CD 10 05 08 F4 10 01 03 84 10 0C 16 62 10 0D 10 E1 10 20 00 00 15 72"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if at := g.exchange([]byte{0x19, 0x06, 0x07, 0x30, 0, 0xFF}); !strings.HasPrefix(at, "59 06 07 30 00 AF 01 01 02 00 03 7F") {
		t.Error(at)
	}
}

// Forty operation cycles without the fault erase the code: by the ignition of Pedals.
func TestCodesAgeByTheIgnition(t *testing.T) {
	g := newAutomaticRig(t)
	ignition, wrong := uint64(running), true
	g.distort = func(id uint32, d uint64) (uint64, bool) {
		if id == idPedals {
			d = put(d, 48, 3, ignition)
			if wrong {
				d = put(d, 12, 4, 8)
			}
		}
		return d, true
	}
	g.drive(1, leverD, 0, 0, inGear)
	wrong = false
	u := g.u.Law.(*automatic)
	for cycle := 0; cycle <= 40; cycle++ {
		ignition = off
		g.drive(0.1, leverP, 0, 0, inGear)
		ignition = running
		g.drive(1, leverP, 0, 0, inGear)
		confirmed := u.Memory.Status(codeLever)&diagnosis.Confirmed != 0
		if confirmed != (cycle < 40) {
			t.Fatalf("after %d good cycles: confirmed %v", cycle, confirmed)
		}
	}
}

func TestAfterRunEndsInSilence(t *testing.T) {
	g := newAutomaticRig(t)
	ignition := uint64(running)
	g.distort = func(id uint32, d uint64) (uint64, bool) {
		if id == idPedals {
			d = put(d, 48, 3, ignition)
		}
		return d, ignition != off || id == idPedals
	}
	g.drive(2, leverP, 0, 0, inGear)
	sent := func(seconds float64) int {
		before := len(g.line.All)
		g.drive(seconds, leverP, 0, 0, inGear)
		n := 0
		for _, f := range g.line.All[before:] {
			if f.ID == idClutchPressures {
				n++
			}
		}
		return n
	}
	ignition = off
	if n := sent(2.9); n != 290 {
		t.Errorf("%d frames in the first 2.9 s of the after-run, want 290", n)
	}
	if n := sent(10); n > 20 {
		t.Errorf("%d frames in the 10 s after it", n)
	}
	if got := g.ask("19 02 01"); got != "59 02 FF" {
		t.Errorf("missing frames without ignition are stored: %s", got)
	}
	if got := g.ask("22 10 06"); got != "62 10 06 01" {
		t.Errorf("ignition: %s", got)
	}
	ignition = running
	if n := sent(1); n < 98 {
		t.Errorf("%d frames in the first second of the next cycle", n)
	}
}

// With the ignition on a silent bus is lost communication; the code is there when the unit falls asleep.
func TestSilentBusIsLostCommunicationWhileTheIgnitionIsOn(t *testing.T) {
	for state, want := range map[uint64]string{running: "[C10000 D10000]", off: "[]"} {
		g := newAutomaticRig(t)
		ignition := uint64(running)
		g.distort = func(id uint32, d uint64) (uint64, bool) {
			if id == idPedals {
				d = put(d, 48, 3, ignition)
			}
			return d, true
		}
		g.drive(2, leverP, 0, 0, inGear)
		ignition = state
		g.drive(0.1, leverP, 0, 0, inGear)
		if err := g.u.Tick(g.line.Now + 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%X", g.u.Law.(*automatic).Memory.Numbers(diagnosis.TestFailed)); got != want || g.u.Awake {
			t.Errorf("ignition %d: codes %s, awake %v; want %s", state, got, g.u.Awake, want)
		}
	}
}

func (g *automaticRig) unlock() {
	g.t.Helper()
	g.ask("10 03")
	var seed [4]byte
	if _, err := fmt.Sscanf(g.ask("27 01"), "67 01 %02X %02X %02X %02X", &seed[0], &seed[1], &seed[2], &seed[3]); err != nil {
		g.t.Fatal(err)
	}
	key := binary.BigEndian.AppendUint32([]byte{0x27, 2}, diagnosis.Key(binary.BigEndian.Uint32(seed[:])))
	if got := g.exchange(key); got != "67 02" {
		g.t.Fatalf("key: %s", got)
	}
}

func TestTesterSetsTheGear(t *testing.T) {
	g := newAutomaticRig(t)
	g.healthy()
	g.unlock()
	if got := g.ask("2F 10 02 03 04"); got != "6F 10 02 03 02" {
		t.Errorf("control: %s", got)
	}
	g.drive(2, leverD, 0.1, 60, inGear)
	if got := g.ask("22 10 02"); got != "62 10 02 04" {
		t.Errorf("gear: %s", got)
	}
	g.ask("10 01")
	g.drive(4, leverD, 0.1, 60, inGear)
	if got := g.ask("22 10 02"); got == "62 10 02 04" {
		t.Error("the unit does not choose the gear again")
	}
	for ask, want := range map[string]string{"2F 10 02 03 05": "7F 2F 31", "31 01 02 03": "7F 31 22"} {
		g.unlock()
		if got := g.ask(ask); got != want {
			t.Errorf("%s: %s, want %s", ask, got, want)
		}
	}
	g.ask("31 01 02 01")
	if got := g.ask("22 10 09"); got != "62 10 09 00 00 00 00" {
		t.Errorf("shifts: %s", got)
	}
}

// The clutches of every gear hold the input shaft while the car stands on its brake; a shaft that keeps turning
// shows a gear that does not engage.
func TestCheckOfTheClutches(t *testing.T) {
	for bad, want := range map[int]string{0: "71 03 02 03 00 1F", 3: "71 03 02 03 03 1B"} {
		g := newAutomaticRig(t)
		u := g.u.Law.(*automatic)
		brake := 20.0
		g.distort = func(id uint32, d uint64) (uint64, bool) {
			switch {
			case id == idPedals:
				d = put(d, 24, 8, uint64(brake/automaticBrake))
			case id == idShaftSpeeds:
				d = put(d, 48, 16, rawSpeed(80))
				if u.gear == neutral || u.gear == bad {
					d = put(d, 16, 16, rawSpeed(75))
				}
			}
			return d, true
		}
		g.drive(1, leverP, 0, 0, inGear)
		g.ask("10 03")
		if got := g.ask("31 01 02 03"); got != "71 01 02 03 01" {
			t.Errorf("start: %s", got)
		}
		for range 8 {
			g.drive(2.5, leverP, 0, 0, inGear)
			g.ask("3E 00")
		}
		if got := g.ask("31 03 02 03"); got != want {
			t.Errorf("gear %d does not engage: %s, want %s\n%s", bad, got, want, &g.log)
		}
		g.ask("31 01 02 03")
		g.drive(0.5, leverP, 0, 0, inGear)
		brake = 0
		g.drive(2, leverP, 0, 0, inGear)
		if got := g.ask("31 03 02 03"); got != "71 03 02 03 02 00" || u.gear != neutral {
			t.Errorf("without brake: %s, gear %d", got, u.gear)
		}
	}
}

func TestCommunicationControlSilencesTheUnit(t *testing.T) {
	g := newAutomaticRig(t)
	g.healthy()
	g.ask("10 03")
	if got := g.ask("28 01 01"); got != "68 01" {
		t.Error(got)
	}
	before := len(g.line.All)
	g.drive(1, leverD, 0.1, 60, inGear)
	if n := len(g.line.All) - before; n != 0 {
		t.Errorf("%d frames", n)
	}
	g.ask("28 00 01")
	if g.drive(1, leverD, 0.1, 60, inGear); len(g.line.All)-before < 100 {
		t.Error("it does not send again")
	}
}

func TestResetStartsANewDrive(t *testing.T) {
	for ask, cycle := range map[string]bool{"11 01": true, "11 03": false} {
		g := newAutomaticRig(t)
		g.oil = 90
		g.drive(2, leverD, 0.1, 0, inGear)
		u := g.u.Law.(*automatic)
		for range 100 { // a result counts for two cycles at most
			u.Memory.Report(codeRatio, true, 10*time.Millisecond)
		}
		g.ask(ask)
		g.drive(1, leverP, 0, 0, inGear)
		if u.gear != neutral || u.Memory.LimpHome() == cycle {
			t.Errorf("%s: gear %d, limp-home %v", ask, u.gear, u.Memory.LimpHome())
		}
	}
}

// In real time, over a socket: a unit that sleeps answers, in several frames.
func TestRunAnswersDiagnosis(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]io.ReadWriteCloser
	for i, fd := range pair {
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		ends[i] = os.NewFile(uintptr(fd), "bus")
	}
	defer ends[0].Close()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- unit.Run(unittest.Type(t, Types(), "automatic"), ends[1], nil, &bytes.Buffer{}, stop) }()
	write := func(bytes ...byte) {
		f := can.Frame{ID: testerRequest, Length: 8}
		copy(f.Data[:], bytes)
		if _, err := ends[0].Write(unittest.Pack(t, f)); err != nil {
			t.Fatal(err)
		}
	}
	var got []byte
	read := func() {
		b := make([]byte, 17)
		n, err := ends[0].Read(b)
		var f can.Frame
		if err != nil || can.Unmarshal(b[:n], &f) != nil || f.ID != testerResponse {
			t.Fatalf("% X: %v", b[:n], err)
		}
		got = append(got, f.Data[:]...)
	}
	write(3, 0x22, 0xF1, 0x90)
	read()
	write(0x30, 0, 1)
	read()
	read()
	if want := "\x10\x14\x62\xF1\x90WLS\x2100000000\x22000027"; !strings.HasPrefix(string(got), want[:16]) || len(got) != 24 || got[16] != 0x22 {
		t.Errorf("% X", got)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
