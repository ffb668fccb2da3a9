package labs

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

func TestLabUnusableBusIsRefusedWithItsRemedy(t *testing.T) {
	if !lab.InVCAN(t, "rmmod") {
		return
	}
	run := func(bus string) []string { return []string{"run", "-bus", bus, "-besteffort", "-for", "1s"} }
	ecu := func(bus string) []string { return []string{"ecu", "powershift", "-bus", bus} }
	both := []func(string) []string{run, ecu}
	for _, command := range both {
		lab.CheckRefused(t, []string{"can9", "vcan0"}, command("can9")...) // the message names an existing interface
		lab.CheckRefused(t, []string{"lo"}, command("lo")...)
	}
	lab.Shell(t, "ip link set vcan1 down")
	for _, command := range both {
		lab.CheckRefused(t, []string{"vcan1", "ip link set vcan1 up"}, command("vcan1")...)
	}
	lab.Shell(t, "ip link del vcan0; ip link del vcan1")
	for _, command := range both {
		lab.CheckRefused(t, []string{"vcan0", "ip link add"}, command("vcan0")...)
	}
	lab.Shell(t, "rmmod vcan can_gw can_j1939 can_raw can")
	for _, command := range both {
		lab.CheckRefused(t, []string{"vcan0", "AF_CAN", "modprobe"}, command("vcan0")...)
	}
}

func TestLabRunWaitsForInterfacesThatComeLate(t *testing.T) {
	if !lab.InVCAN(t, "ip") {
		return
	}
	lab.Shell(t, "ip link set vcan1 down")
	for name, up := range map[string]string{
		"late0": "ip link add dev late0 type vcan && ip link set late0 up",
		"vcan1": "ip link set vcan1 up",
	} {
		p := lab.Start(t, lab.Command(t), "run", "-bus", name, "-wait", "1m", "-besteffort", "-for", "100ms")
		p.AwaitOutput(name)
		lab.Shell(t, up)
		if code := p.Wait(); code != 0 {
			t.Errorf("%s: exit %d, want 0\n%s%s", name, code, &p.Out, &p.Err)
		}
	}
	lab.CheckRefused(t, []string{"never0"}, "run", "-bus", "never0", "-wait", "300ms", "-besteffort", "-for", "100ms")
	p := lab.Start(t, lab.Command(t), "run", "-bus", "never0", "-wait", "1m", "-besteffort")
	p.AwaitOutput("never0")
	p.Signal(syscall.SIGTERM)
	p.Wait()
}

func TestLabFramesThatAreNotOfTheBenchAreCountedAndHaveNoEffect(t *testing.T) {
	if !lab.InVCAN(t, "cansend") {
		return
	}
	b := lab.StartDemo(t, lab.UntilStopped)
	b.AwaitTicking() // the first status line
	for _, frame := range []string{
		"110#0102", "111#", // too short
		"110#R", "00000110#1122334455667788", // remote, 29 bits
		"123#1122334455667788", "200#0000000000000000", // not received by the bench
	} {
		lab.Shell(t, "cansend vcan0 "+frame)
	}
	// The pressure is 40.95 bar, above the range of the signal.
	lab.Shell(t, "cansend vcan0 110#FFFFFFFFFFFF0000")
	b.AwaitTicks(1)
	r := b.Stop()
	// The filter of the kernel may drop frames that no socket reads.
	if r.RxShort != 2 || r.RxFormat != 2 || r.RxRange != 1 || r.RxUnknown > 1 || r.RxFrames != 6+r.RxUnknown {
		t.Errorf("received %d: %d short, %d of a wrong format, %d out of range, %d unknown; want 2, 2, 1, at most 1 unknown, one of another sender, nothing else",
			r.RxFrames, r.RxShort, r.RxFormat, r.RxRange, r.RxUnknown)
	}
	// The frames of the bench itself, and of its monitor and watchdog, are no conflicts.
	if len(r.Conflicts) != 1 || r.Conflicts[0].Message != "Speeds" || r.Conflicts[0].Frames != 1 {
		t.Errorf("other senders %+v, want one of Speeds with 1 frame", r.Conflicts)
	}
	// Read as pressures, each of the frames would have released a clutch.
	if r.Transitions != 0 {
		t.Errorf("%d transitions of clutches, want none", r.Transitions)
	}
}

func TestLabTwentyThousandFramesASecondDoNotStopTheLoop(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	b := lab.StartDemo(t, lab.UntilStopped)
	b.AwaitTicking() // the first status line
	unknown := lab.SendRandom(t, "vcan0", "20000", "3", "7ff", "123", "1abcdef", "112")
	n := lab.AwaitSender(t, unknown)
	known := lab.SendRandom(t, "vcan0", "20000", "3", "110", "111")
	m := lab.AwaitSender(t, known)
	r := b.Stop()
	if n == 0 || m == 0 {
		t.Fatal("the sender sent no frame")
	}
	// Every frame that passes the filter is read or counted as lost.
	if got := r.RxFrames + r.RxOverflow; got < m || got > m+n {
		t.Errorf("of %d frames for the bench and %d unknown ones it read %d and counted %d as lost", m, n, r.RxFrames, r.RxOverflow)
	}
	if r.RxUnknown == 0 && r.RxFrames+r.RxOverflow != m {
		t.Errorf("of %d frames for the bench it read %d and counted %d as lost", m, r.RxFrames, r.RxOverflow)
	}
}

func TestLabUnknownFramesDoNotDisturbTheDrive(t *testing.T) {
	if !lab.Inside(t, lab.VCANSerial, "candump") {
		return
	}
	dump := lab.StartCandump(t, "vcan0")
	tcu := lab.StartUnit(t, "vcan0")
	b := lab.StartDemo(t, lab.UntilStopped)
	noise := lab.SendRandom(t, "vcan0", "2000", "4", "7ff", "1abcdef")
	tcu.AwaitOutput("gear 2-4-7 engaged")
	lab.AwaitSender(t, noise)
	r := b.Stop()
	tcu.Signal(syscall.SIGINT)
	tcu.Wait()
	byID, _ := lab.EndCandump(t, dump)
	checkSpeeds(t, byID["200"], r)
	checkClutches(t, tcu.Out.String()+tcu.Err.String())
}

func TestLabUnitKilledMidShiftDoesNotStopTheBench(t *testing.T) {
	if !lab.InVCAN(t, "candump") {
		return
	}
	dump := lab.StartCandump(t, "vcan0")
	tcu := lab.StartUnit(t, "vcan0")
	b := lab.StartDemo(t, lab.UntilStopped)
	tcu.AwaitOutput("shift 2-3-6 -> 1-5-6")
	time.Sleep(50 * time.Millisecond) // the double swap takes 0.4 s
	tcu.Signal(syscall.SIGKILL)
	tcu.Wait()
	before := strings.Count(dump.Out.String(), " 200#")
	lab.Await(t, "two seconds of Speeds without a unit", func() bool { return strings.Count(dump.Out.String(), " 200#") > before+400 })
	r := b.Stop()
	byID, order := lab.EndCandump(t, dump)
	checkSpeeds(t, byID["200"], r)
	last, after := -1, 0
	for i, id := range order {
		if id == "110" || id == "111" {
			last = i
		}
	}
	for _, id := range order[last+1:] {
		if id == "200" {
			after++
		}
	}
	if after < 100 {
		t.Errorf("%d Speeds after the unit's last frame, want at least 100", after)
	}
	if len(r.Silent) != 2 {
		t.Errorf("the report names %d silent messages, want both pressure frames", len(r.Silent))
	}
	for _, s := range r.Silent {
		if !(s.For > 1 && s.Last > 0) {
			t.Errorf("%s: last at %v s, silent for %v s", s.Message, s.Last, s.For)
		}
	}
}
