package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
)

// longMessages are additions to the truck's database: pressures for C1 to all and for C2 to the gearbox,
// 0x80; speeds to all and to the transmission, 3.
const longMessages = `
BO_ 2566852862 LongPressure: 100 TCU
 SG_ long_C1 : 736|8@1+ (0.1,0) [0|25] "bar" Gearbox
BO_ 2565832958 LongCommand: 100 TCU
 SG_ long_C2 : 720|16@1+ (0.001,0) [0|25] "bar" Gearbox
BO_ 2566852992 LongSpeeds: 100 Gearbox
 SG_ long_out : 720|16@1+ (0.125,0) [0|8031.875] "rpm" TCU
BO_ 2565800832 LongAnswer: 100 Gearbox
 SG_ long_in : 700|16@1+ (0.125,0) [0|8031.875] "rpm" TCU

`

const longFormats = `
BA_ "VFrameFormat" BO_ 2566852862 3;
BA_ "VFrameFormat" BO_ 2565832958 3;
BA_ "VFrameFormat" BO_ 2566852992 3;
BA_ "VFrameFormat" BO_ 2565800832 3;
`

// writeLongBench writes the truck bench with the long messages and returns its file.
func writeLongBench(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db := strings.Replace(lab.MustRun(t, "plants", "j1939.dbc"), "CM_ \"", longMessages+"CM_ \"", 1) + longFormats
	bench := strings.NewReplacer("j1939.dbc", "long.dbc", "time: 200 ms", "time: 2 s", "overrun: skip 100", "overrun: skip 1000",
		"ClutchPressures.pressure_C1 ->", "LongPressure.long_C1 ->", "ClutchPressures.pressure_C2 ->", "LongCommand.long_C2 ->",
		"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms}\n      LongSpeeds: {cycle: 2 s, phase: 500 ms}\n      LongAnswer: {cycle: 1 s, phase: 500 ms}",
		"    messages:\n", "    messages:\n      LongPressure: {timeout: 0 s}\n      LongCommand: {timeout: 0 s}\n",
		"    send:\n", "    send:\n      - w_out -> LongSpeeds.long_out\n      - w_engine -> LongAnswer.long_in\n",
	).Replace(lab.MustRun(t, "plants", "truck-bench"))
	for name, text := range map[string]string{"long.dbc": db, "bench.yaml": bench} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bench.yaml")
}

// The kernel's J1939 stack is the other node. It sends a message of 100 bytes to all and one to the bench, and
// receives both kinds from it. It requests the message to all from the bench: the answer comes to its own
// address. The record of the run replays bit for bit.
func TestLabKernelExchangesLongMessagesWithTheBench(t *testing.T) {
	if !lab.InVCAN(t, "testj1939", "j1939cat", "candump") {
		return
	}
	file := writeLongBench(t)
	dir := filepath.Dir(file)
	for name, data := range map[string]string{
		"data":    strings.Repeat("\xFF", 90) + "\x88\x13" + strings.Repeat("\xFF", 8), // 5 bar
		"request": "\x11\xFF\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	byLine := func(args ...string) *lab.Process { return lab.Start(t, "stdbuf", append([]string{"-oL"}, args...)...) }
	toAll := byLine("testj1939", "-r", "-B", "vcan0:0x90,0xff11")
	toNode := byLine("testj1939", "-r", "vcan0:0x03")
	asking := byLine("testj1939", "-r", "vcan0:0x24")
	witness := byLine("candump", "-L", "vcan0,18E8FF00:1FFFFF00")
	var b *lab.Bench
	packets := byLine("candump", "-L", "vcan0,00EB0000:00FF0000,00EC0000:00FF0000")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("packets:\n%s", &packets.Out)
			if b != nil {
				t.Logf("bench:\n%s\n%s", &b.Out, &b.Err)
			}
		}
	})
	for _, p := range []*lab.Process{toAll, toNode, asking, witness, packets} {
		lab.AwaitSocket(p)
	}
	b = &lab.Bench{File: filepath.Join(dir, "report.json")}
	b.Process = lab.Start(t, lab.Command(t), "run", file, "-bus", "vcan0", "-besteffort", "-report", b.File, "-record", filepath.Join(dir, "drive.rec"))
	b.AwaitTicking()
	for _, args := range [][]string{
		{"testj1939", "-B", "-s100", "vcan0:0x21,0xff10", ":0xff,0xff10"}, // byte 92 is 0x89: 13.7 bar
		{"j1939cat", "-i", filepath.Join(dir, "data"), "vcan0:0x22", ":0x80,0xef00"},
		{"j1939cat", "-i", filepath.Join(dir, "request"), "vcan0:0x24", ":0x80,0xea00"},
		{"testj1939", "-s3", "vcan0:0x23", ":0x80,0xea00"}, // a request for group 0x452301
	} {
		p := lab.Start(t, args[0], args[1:]...)
		if code := p.Wait(); code != 0 && args[0] != "j1939cat" { // Debian's cannot read the kernel's acknowledgement
			t.Errorf("%q: exit %d, %s%s", args, code, &p.Out, &p.Err)
		}
	}
	toNode.AwaitOutput("80 0ef00:")
	toAll.AwaitOutput("80 0ff11:")
	asking.AwaitOutput("80 0ff11:")
	witness.AwaitOutput("18E8FF80#01FFFFFF23012345")
	b.Signal(syscall.SIGINT)
	if code := b.Wait(); code != 0 {
		t.Errorf("exit %d, %s", code, &b.Err)
	}
	for _, p := range []*lab.Process{toAll, toNode, asking, witness, packets} {
		p.Signal(syscall.SIGTERM)
		p.Wait()
	}
	t.Logf("to all: %s\nto 3: %s\nto 0x24: %s", &toAll.Out, &toNode.Out, &asking.Out)

	var r struct{ Ports []string }
	text, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Ports) != 1 || !all(r.Ports[0], "drive: ", "2 requests, 1 refused", "2 received", " 0 broken", " frames of the plant on the bus ", "delayed by at most ") {
		t.Errorf("%v, ports %q", err, r.Ports)
	}
	table := filepath.Join(dir, "out.csv")
	if out := lab.MustRun(t, "replay", filepath.Join(dir, "drive.rec"), "-out", table); !strings.Contains(out, "identical") {
		t.Errorf("replay: %s", out)
	}
	rows, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(rows)), "\n")
	head, last := strings.Split(lines[0], ","), strings.Split(lines[len(lines)-1], ",")
	for i, name := range head {
		for port, want := range map[string]string{"C1.pressure[bar]": "13.7", "C2.pressure[bar]": "5"} {
			if name == port && !strings.HasPrefix(last[i], want) {
				t.Errorf("%s is %s in the replay, want %s", port, last[i], want)
			}
		}
	}
}
