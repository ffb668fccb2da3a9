package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// startContested starts the truck bench on vcan0. Its engine has a NAME that allows lower ones;
// rule is the setting for a lost address.
func startContested(t *testing.T, rule string) *lab.Bench {
	t.Helper()
	text := lab.MustRun(t, "plants", "truck-bench")
	for old, new := range map[string]string{
		"function: engine, identity: 1}": "function: engine, manufacturer: 100, identity: 1}",
		"lost: stop":                     "lost: " + rule,
		"overrun: skip 100":              "overrun: skip 1000", // the lab may stall
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the truck bench has no %q", old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bench.yaml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &lab.Bench{File: filepath.Join(dir, "report.json")}
	b.Process = lab.Start(t, lab.Command(t), "run", filepath.Join(dir, "bench.yaml"), "-bus", "vcan0", "-besteffort",
		"-report", b.File, "-record", filepath.Join(dir, "drive.rec"))
	return b
}

// addressesOf returns the lines of the report about the addresses of the bench, and the reason of
// its end.
func addressesOf(b *lab.Bench) (lines []string, ended string) {
	b.T.Helper()
	var r struct {
		Addresses []string
		Ended     string
	}
	data, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Addresses) != 4 {
		b.T.Fatalf("%v: %s", err, data)
	}
	return r.Addresses, r.Ended
}

// startClaimer starts j1939acd, which claims the bench's address 0 for a NAME, or else address 1.
func startClaimer(t *testing.T, name string) *lab.Process {
	t.Helper()
	return lab.Start(t, "j1939acd", "-v", "-r", "0,1", "-a", "0", name, "vcan0")
}

// The bench, with NAME 000000000C800001, contests an address with j1939acd. The lower NAME gets the
// address, whichever comes first.
func TestLabLowerNameGetsTheContestedAddress(t *testing.T) {
	if !lab.InVCAN(t, "j1939acd") {
		return
	}
	const higher, lower = "F000000000000003", "1"

	low := startClaimer(t, lower)
	low.AwaitOutput("claimed 0x00")
	b := startContested(t, "stop")
	// In a slow lab the answer may take longer than the 250 ms for which a claim waits: exit 1.
	if code := b.Wait(); code != 3 && code != 1 || !all(b.Err.String(), "0x00", "drive", "0000000000000001", "000000000C800001") {
		t.Errorf("against a lower NAME: exit %d, %s", code, &b.Err)
	}
	low.Signal(syscall.SIGTERM)
	low.Wait()

	high := startClaimer(t, higher)
	high.AwaitOutput("claimed 0x00")
	b = startContested(t, "stop")
	high.AwaitOutput("claimed 0x01") // yields address 0
	b.AwaitTicking()
	high.Signal(syscall.SIGTERM)
	high.Wait()

	high = startClaimer(t, higher) // while the bench runs
	high.AwaitOutput("claimed 0x01")
	b.Signal(syscall.SIGINT)
	code := b.Wait()
	if lines, _ := addressesOf(b); code != 0 || !all(lines[0], "drive", "0x00", "held", "engine") {
		t.Errorf("against a higher NAME: exit %d, %q", code, lines)
	}
	high.Signal(syscall.SIGTERM)
	high.Wait()
}

// The setting for a lost address says how the run ends.
func TestLabLostAddressHasTheEffectOfItsSetting(t *testing.T) {
	if !lab.InVCAN(t, "j1939acd", "candump") {
		return
	}
	for _, c := range []struct {
		rule, ended string
		code        int
	}{
		{"stop", "0000000000000001", 1},
		{"safe", "address", 1},
		{"continue", "interrupt", 0},
	} {
		witness := lab.Start(t, "stdbuf", "-oL", "candump", "-L", "vcan0,18EEFFFE:1FFFFFFF")
		lab.AwaitSocket(witness)
		b := startContested(t, c.rule)
		b.AwaitTicking()
		low := startClaimer(t, "1")
		low.AwaitOutput("claimed 0x00")
		if c.rule == "stop" {
			b.AwaitOutput("0000000000000001")
		} else {
			witness.AwaitOutput("18EEFFFE#010080") // cannot claim
			b.Signal(syscall.SIGINT)
		}
		code := b.Wait()
		lines, ended := addressesOf(b)
		if code != c.code || !strings.Contains(ended, c.ended) {
			t.Errorf("%s: exit %d, %s", c.rule, code, ended)
		}
		if !all(lines[0], "drive", "0x00", "lost", "engine", "0000000000000001") || !all(lines[2], "drive", "0x0B", "held") {
			t.Errorf("%s: addresses %q", c.rule, lines)
		}
		log := filepath.Join(t.TempDir(), "drive.asc")
		lab.MustRun(t, "export", filepath.Join(filepath.Dir(b.File), "drive.rec"), "-o", log)
		if text, err := os.ReadFile(log); err != nil || !anyLine(string(text), "0x00", "drive", "lost", "0000000000000001") ||
			!anyLine(string(text), "0x00", "drive", "held", "000000000C800001") {
			t.Errorf("%s: the record lacks the lost or the held address (%v)", c.rule, err)
		}
		low.Signal(syscall.SIGTERM)
		low.Wait()
	}
}

// The bench claims its addresses again after the interface was down, and a supervisor that takes
// over does so, too. The gateway of the kernel copies the claims to vcan1, on which candump
// listens.
func TestLabAddressesAreClaimedAgainAfterAnInterruption(t *testing.T) {
	if !lab.InVCAN(t, "candump", "cangw") {
		return
	}
	text := strings.NewReplacer("supervisor_gone: stop after 1 s", "supervisor_gone: continue", "overrun: skip 100", "overrun: skip 1000").
		Replace(lab.MustRun(t, "plants", "truck-bench"))
	file := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cangw", "-A", "-s", "vcan0", "-d", "vcan1", "-e", "-f", "18EE0000:1FFF0000").CombinedOutput(); err != nil {
		t.Fatalf("cangw: %v\n%s", err, out)
	}
	witness := lab.Start(t, "stdbuf", "-oL", "candump", "-L", "vcan1")
	lab.Await(t, "candump listens to vcan1", func() bool { return lab.Listeners(t, "vcan1") > 0 })
	claims := func(n int) {
		t.Helper()
		witness.AwaitOutputs("18EEFF", n)
	}
	b := lab.Start(t, lab.Command(t), "run", file, "-bus", "vcan0", "-besteffort")
	claims(5) // four of the bench, and that of the tester
	b.AwaitTicking()
	lab.Shell(t, "ip link set vcan0 down")
	b.AwaitOutput("bus drive is down")
	lab.Shell(t, "ip link set vcan0 up")
	claims(10)
	b.Signal(syscall.SIGKILL)
	b.Wait()
	next := lab.Start(t, lab.Command(t), "attach")
	claims(15)
	next.AwaitTicking()
	next.Signal(syscall.SIGINT)
	if code := next.Wait(); code != 0 || strings.Count(next.Out.String(), " held, ") != 4 {
		t.Errorf("attach: exit %d\n%s%s", code, &next.Out, &next.Err)
	}
	if text := witness.Out.String(); strings.Count(text, "18EEFF") != 15 || strings.Count(text, "18EEFFF9#") != 3 || strings.Count(text, "18EEFF80#0400000000FF0000") != 3 {
		t.Errorf("claims:\n%s", text)
	}
}

// all reports whether a text contains all words.
func all(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// anyLine reports whether a line of a text contains all words.
func anyLine(text string, words ...string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return all(line, words...) })
}

// groups counts the lines of a text by their first words, separated by spaces.
func groups(text string, words int) map[string]int {
	count := map[string]int{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= words {
			count[strings.Join(f[:words], " ")]++
		}
	}
	return count
}

// byTshark counts the frames of a log in tshark by "GROUP,SOURCE,DESTINATION,PRIORITY". The
// destination is empty for a group to all.
func byTshark(t *testing.T, log string) map[string]int {
	t.Helper()
	out, err := exec.Command("tshark", "-r", log, "-d", "can.subdissector,j1939", "-T", "fields", "-E", "separator=,",
		"-e", "j1939.pgn", "-e", "j1939.src_addr", "-e", "j1939.dst_addr", "-e", "j1939.priority").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	return groups(string(out), 1)
}

// The truck bench and its unit run on vcan0. The J1939 stack of the kernel resolves their NAMEs and
// delivers their groups to the addressed sockets. tshark finds group, addresses and priority of
// every frame that the bench has counted.
func TestLabJ1939ToolsAndTsharkDecodeTheTruckBench(t *testing.T) {
	if !lab.InVCAN(t, "j1939spy", "testj1939", "candump", "tshark") {
		return
	}
	// Large receive buffers keep frames while a program waits for the only processor.
	if err := os.WriteFile("/proc/sys/net/core/rmem_default", []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "drive.log")
	byLine := func(args ...string) *lab.Process { return lab.Start(t, "stdbuf", append([]string{"-oL"}, args...)...) }
	spy := byLine("j1939spy", "-P", "vcan0:")
	engine := byLine("testj1939", "-r", "-B", "vcan0:0x90,0xf004") // EEC1, from anybody to all
	console := byLine("testj1939", "-r", "vcan0:0x03,0x100")       // TC1, to the transmission
	witness := lab.Start(t, "sh", "-c", "exec candump -L vcan0 >"+log)
	unit := lab.Start(t, lab.Command(t), "ecu", "truck", "-bus", "vcan0")
	unit.AwaitOutput("waiting for ShaftSpeeds")
	for _, p := range []*lab.Process{spy, engine, console, witness} { // the tools do not report when they are ready
		lab.AwaitSocket(p)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	b := &lab.Bench{File: file, For: 5 * time.Second}
	b.Process = lab.Start(t, lab.Command(t), "run", "truck-bench", "-bus", "vcan0", "-besteffort", "-for", "5s", "-report", file)
	r := b.AwaitReport()
	for _, p := range []*lab.Process{spy, engine, console, witness} {
		lab.AwaitQuiet(p)
	}
	for _, p := range []*lab.Process{spy, engine, console, witness, unit} {
		p.Signal(syscall.SIGTERM)
		p.Wait()
	}

	seen := byTshark(t, log)
	t.Logf("tshark: %v; the bench sent %d frames and received %d", seen, r.TxFrames, r.RxFrames)
	ours := map[string]bool{}
	total := 0
	for group, every := range map[string]uint64{
		"61444,0,,3": 1, "65281,128,,3": 1, "65134,11,,2": 2, "256,5,3,3": 5,
		"65265,0,,6": 10, "61441,11,,6": 10, "65215,11,,6": 10,
	} {
		ours[group] = true
		total += seen[group]
		if most := r.Ticks/every + 1; seen[group] == 0 || uint64(seen[group]) > most {
			t.Errorf("tshark has %d frames of %s in %d ticks", seen[group], group, r.Ticks)
		}
	}
	if uint64(total) != r.TxFrames {
		t.Errorf("tshark has %d frames of the bench, which has sent %d", total, r.TxFrames)
	}
	for _, address := range []int{0, 3, 5, 11, 128, 249} { // 249: the tester
		ours[fmt.Sprintf("60928,%d,255,6", address)] = true
	}
	for _, group := range []string{"0,3,0,3", "61442,3,,3", "61445,3,,6", "65226,3,,6", "65280,3,,6"} {
		ours[group] = true
		if seen[group] == 0 {
			t.Errorf("tshark has no frames of %s", group)
		}
	}
	for group, n := range seen {
		if !ours[group] {
			t.Errorf("tshark has %d frames of %s, want none", n, group)
		}
	}
	compareTools(t, seen, spy, engine, console)
}

// compareTools compares the frames of the kernel's J1939 sockets with those of tshark.
func compareTools(t *testing.T, seen map[string]int, spy, engine, console *lab.Process) {
	t.Helper()
	// "vcan0:0000000000000001,0f004 - !3 [8] ff7d7687 15ffffff"
	named := groups(spy.Out.String(), 3)
	for line, group := range map[string]string{
		"vcan0:0000000000000001,0f004 - !3": "61444,0,,3", "vcan0:0000050000000002,00100 0000030000000d05 !3": "256,5,3,3",
		"vcan0:0000090000000003,0fe6e - !2": "65134,11,,2", "vcan0:0000FF0000000004,0ff01 - !3": "65281,128,,3",
		"vcan0:0000030000000d05,0f002 - !3": "61442,3,,3",
	} {
		if n := named[strings.ToLower(line)]; n == 0 || n > seen[group] { // j1939spy is slow and loses frames
			t.Errorf("j1939spy has %d of %q, tshark %d", n, line, seen[group])
		}
	}
	// "00 0f004: ff 7d 76 87 15 ff ff ff"
	for p, c := range map[*lab.Process][2]string{engine: {"00 0f004:", "61444,0,,3"}, console: {"05 00100:", "256,5,3,3"}} {
		got := groups(p.Out.String(), 2)
		if len(got) != 1 || got[c[0]] != seen[c[1]] {
			t.Errorf("%s has %v, tshark %d", p.Name, got, seen[c[1]])
		}
	}
}
