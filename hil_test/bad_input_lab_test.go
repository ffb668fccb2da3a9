package hiltest

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// garbage starts a sender.
func garbage(t *testing.T, bus, rate, seconds string, ids ...string) *process {
	t.Helper()
	t.Setenv(senderVar, "1")
	p := start(t, os.Args[0], append([]string{bus, rate, seconds}, ids...)...)
	os.Unsetenv(senderVar)
	return p
}

// taken waits for a sender and returns how many frames the bus took.
func taken(t *testing.T, p *process) uint64 {
	t.Helper()
	var s sent
	if code := p.wait(3 * time.Minute); code != 0 {
		t.Fatalf("%s: exit %d\n%s", p.name, code, &p.err)
	}
	if err := json.Unmarshal([]byte(p.out.String()), &s); err != nil {
		t.Fatal(err)
	}
	t.Logf("sender: %d taken, %d refused", s.Taken, s.Refused)
	return s.Taken
}

func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("bash", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// refused runs the command and wants exit 3 and one line that says all of want.
func refused(t *testing.T, want []string, args ...string) {
	t.Helper()
	p := start(t, command(t), args...)
	code := p.wait(patience)
	text := strings.TrimSpace(p.err.String())
	if code != 3 || strings.Count(text, "\n") != 0 {
		t.Errorf("%s: exit %d, want 3 and one line:\n%s", p.name, code, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: does not say %q: %s", p.name, w, text)
		}
	}
}

func TestLabUnusableBusIsRefusedWithTheCommandThatHelps(t *testing.T) {
	if !inLab(t, "rmmod") {
		return
	}
	run := func(bus string) []string { return []string{"run", "-bus", bus, "-besteffort", "-for", "1s"} }
	ecu := func(bus string) []string { return []string{"ecu", "powershift", "-bus", bus} }
	both := []func(string) []string{run, ecu}
	for _, command := range both {
		refused(t, []string{"can9", "vcan0"}, command("can9")...) // what there is, or how to make it
		refused(t, []string{"lo"}, command("lo")...)
	}
	shell(t, "ip link set vcan1 down")
	for _, command := range both {
		refused(t, []string{"vcan1", "ip link set vcan1 up"}, command("vcan1")...)
	}
	shell(t, "ip link del vcan0; ip link del vcan1")
	for _, command := range both {
		refused(t, []string{"vcan0", "ip link add"}, command("vcan0")...)
	}
	shell(t, "rmmod vcan can_gw can_j1939 can_raw can")
	for _, command := range both {
		refused(t, []string{"vcan0", "AF_CAN", "modprobe"}, command("vcan0")...)
	}
}

func TestLabRunWaitsForInterfacesThatComeLate(t *testing.T) {
	if !inLab(t, "ip") {
		return
	}
	shell(t, "ip link set vcan1 down")
	for name, up := range map[string]string{
		"late0": "ip link add dev late0 type vcan && ip link set late0 up",
		"vcan1": "ip link set vcan1 up",
	} {
		p := start(t, command(t), "run", "-bus", name, "-wait", "1m", "-besteffort", "-for", "100ms")
		p.await("waiting for "+name+", 1m0s at most", patience)
		shell(t, up)
		if code := p.wait(30 * time.Second); code != 0 {
			t.Errorf("%s: exit %d, want 0\n%s%s", name, code, &p.out, &p.err)
		}
	}
	refused(t, []string{"no such CAN interface"}, "run", "-bus", "never0", "-wait", "300ms", "-besteffort", "-for", "100ms")
	p := start(t, command(t), "run", "-bus", "never0", "-wait", "1m", "-besteffort")
	p.await("waiting", patience)
	p.signal(syscall.SIGTERM)
	p.wait(5 * time.Second)
}

func TestLabUnknownAndShortFramesAreCountedAndChangeNothing(t *testing.T) {
	if !inLab(t, "cansend") {
		return
	}
	b := run(t, time.Minute)
	b.await("missed", patience) // the first status line
	for _, frame := range []string{
		"110#0102", "111#", "110#R", // too short; a remote frame has no data
		"123#1122334455667788", "00000110#1122334455667788", "200#0000000000000000", // none of the bench's
	} {
		shell(t, "cansend vcan0 "+frame)
	}
	// 40.95 bar, above the range of the signal.
	shell(t, "cansend vcan0 110#FFFFFFFFFFFF0000")
	time.Sleep(time.Second)
	r := b.stop()
	// The kernel's filter may keep away what nobody reads.
	if r.RxShort != 2 || r.RxRange != 1 || r.RxUnknown > 4 || r.RxFrames != 3+r.RxUnknown {
		t.Errorf("received %d: %d short, %d out of range, %d unknown; want 2 short, 1 out of range, at most 4 unknown, nothing else",
			r.RxFrames, r.RxShort, r.RxRange, r.RxUnknown)
	}
	// Taken as pressures, each of them would have released a clutch.
	if r.Transitions != 0 {
		t.Errorf("%d clutches changed their state", r.Transitions)
	}
}

func TestLabTwentyThousandFramesASecondDoNotStopTheLoop(t *testing.T) {
	if !inLab(t) {
		return
	}
	b := run(t, time.Minute)
	b.await("missed", patience) // the first status line
	unknown := garbage(t, "vcan0", "20000", "3", "7ff", "123", "1abcdef", "112")
	n := taken(t, unknown)
	known := garbage(t, "vcan0", "20000", "3", "110", "111")
	m := taken(t, known)
	r := b.stop()
	if n == 0 || m == 0 {
		t.Fatal("the sender sent nothing")
	}
	// What the filter lets pass is read, or counted as lost: not a frame between.
	if got := r.RxFrames + r.RxOverflow; got < m || got > m+n {
		t.Errorf("of %d frames for the bench and %d for nobody it read %d and counted %d as lost", m, n, r.RxFrames, r.RxOverflow)
	}
	if r.RxUnknown == 0 && r.RxFrames+r.RxOverflow != m {
		t.Errorf("of %d frames for the bench it read %d and counted %d as lost", m, r.RxFrames, r.RxOverflow)
	}
}

func TestLabGarbageBesideAUnitLeavesTheDriveAlone(t *testing.T) {
	if !inside(t, pacedLab, "candump") {
		return
	}
	dump := candump(t, "vcan0")
	tcu := unit(t, "vcan0")
	b := run(t, time.Minute)
	noise := garbage(t, "vcan0", "2000", "4", "7ff", "1abcdef")
	tcu.await("gear 2-4-7 engaged", 40*time.Second)
	taken(t, noise)
	r := b.stop()
	tcu.signal(syscall.SIGINT)
	tcu.wait(10 * time.Second)
	byID, _ := dumped(t, dump)
	checkSpeeds(t, byID["200"], r)
	if log := tcu.out.String() + tcu.err.String(); strings.Contains(log, "still slips") {
		t.Errorf("the drive suffered:\n%s", log)
	}
}

func TestLabUnitKilledMidShiftDoesNotStopTheBench(t *testing.T) {
	if !inLab(t, "candump") {
		return
	}
	dump := candump(t, "vcan0")
	tcu := unit(t, "vcan0")
	b := run(t, time.Minute)
	tcu.await("shift 2-3-6 -> 1-5-6", patience)
	time.Sleep(50 * time.Millisecond) // the double swap takes 0.4 s
	tcu.signal(syscall.SIGKILL)
	tcu.wait(10 * time.Second)
	time.Sleep(3 * time.Second)
	r := b.stop()
	byID, order := dumped(t, dump)
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
		t.Errorf("%d Speeds after the unit's last frame, want seconds of them", after)
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
