package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/bench/benchtest"
)

func TestCheckWritesTheCompleteInterface(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(benchtest.GuardedText(t), "timeout: 40 ms", "timeout: 40 ms\n        first_timeout: 1 s", 1)
	text += "      Pages: {cycle: 20 ms, values: {page: 1}}\n"
	database := strings.Replace(benchtest.GuardedDatabase(t), "BO_ 1026", `BO_ 1027 Pages: 8 Motor
 SG_ page M : 0|8@1+ (1,0) [0|0] "" TCU
 SG_ a m0 : 8|8@1+ (1,0) [0|0] "" TCU
 SG_ b m1 : 8|8@1+ (1,0) [0|0] "" TCU

BO_ 1026`, 1)
	for name, text := range map[string]string{"b.yaml": text, "guarded.dbc": database} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := checkedFile(t, filepath.Join(dir, "b.yaml"), false)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"bus drive on pair, database guarded.dbc, 250 kbit/s",
		"0x110 TCU_Pressure_1 received, 8 bytes every 10 ms, late after 40 ms (at first 1000 ms): clutch1.pressure is 3 bar, protected by crc8, while INVALID: safe, rejected if a signal is out of range",
		"TCU_Pressure_1.pressure_C1 0|12@1+ (0.01,0) [0|40] [bar] -> clutch1.pressure[bar] 0 to 40",
		"TCU_Pressure_1.counter_P1 52|4@1+ (1,0) [0|15] [1] counter of crc8",
		"0x111 TCU_Pressure_2 received, 8 bytes or more every 10 ms, late after 30 ms: hold",
		"0x200 Speeds, 8 bytes every 5 ms, phase 0 ms",
		"Speeds.counter_S 60|4@1+ (1,0) [0|15] [1] counts the frames",
		"0x201 Torque, 8 bytes every 10 ms, phase 0 ms (chosen), protected by e2e-2",
		"Torque.tau_load 23|16@0- (0.5,0) [-16384|16383.5] [N.m] <- tau_load[N.m]",
		"Torque.counter_T 51|4@0+ (1,0) [0|15] [1] counter of e2e-2",
		"0x202 Status, 8 bytes every 10 ms, phase 5 ms",
		"0x400 Motor, 8 bytes every 10 ms, phase 0 ms (chosen), restbus",
		"Motor.speed 0|16@1+ (1,0) [0|8000] [rpm] <- a waveform",
		"Motor.mode 32|4@1+ (1,0) [0|15] [1] = running",
		"0x401 Klemmen, 1 bytes, on change, at most every 10 ms, restbus",
		"Klemmen.level 1|7@1+ (1,-40) - [1] = raw 0, which is -40",
		"0x403 Pages, 8 bytes every 20 ms",
		"Pages.page 0|8@1+ (1,0) - [1] = 1 multiplexor",
		"Pages.a 8|8@1+ (1,0) - [1] not sent: if page=0",
		"Pages.b 8|8@1+ (1,0) - [1] = 0 if page=1",
		"0x402 Slow, 2 bytes every 20 ms, phase 5 ms (chosen), restbus",
		// 135 bits with 8 bytes, 75 with 2: (200 + 3·100 + 50)·135 + 50·75 bit/s; a change: 100·65 bit/s.
		"sent: 600 frames/s, at most 78.0 kbit/s, 31.2 % of 250 kbit/s; frames sent on change add up to 2.6 %",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestCheckWarnsOfAnOverloadedBus(t *testing.T) {
	for _, c := range []struct{ rate, want string }{
		{"250 kbit/s", ""},
		{"72 kbit/s", ""},
		{"71 kbit/s", "the bench sends up to 100.4 % of 71 kbit/s: frames will be dropped"},
	} {
		dir := t.TempDir()
		text := strings.Replace(benchtest.GuardedText(t), "250 kbit/s", c.rate, 1)
		for name, text := range map[string]string{"b.yaml": text, "guarded.dbc": benchtest.GuardedDatabase(t)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, warned, err := checkedFile(t, filepath.Join(dir, "b.yaml"), false)
		if err != nil || !strings.Contains(warned, c.want) || (warned == "") != (c.want == "") {
			t.Errorf("%s: warned %q, %v; want %q", c.rate, warned, err, c.want)
		}
	}
}

// A bus by wire has images, no bit rate.
func TestCheckStatesTheImagesOfABusByWire(t *testing.T) {
	out, warned, err := checkedFile(t, "abs-wire-bench", false)
	if err != nil || !strings.Contains(out, "sent: one image of 1064 bytes per tick, 200 images/s") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out+warned, "kbit/s") || strings.Contains(out, "CAN FD") {
		t.Errorf("the image is judged like frames: %s\n%s", warned, out)
	}
}

// A message of 100 bytes is an announcement and 15 packets.
func TestCheckCountsThePacketsOfALongMessage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"p.yaml": "plant: p\nelements: {a: {type: inertia, J: 1 kg.m2}}\noutputs: {w: {speed: a, unit: rpm}}\n",
		"b.dbc": `BU_: A
BO_ 2565865216 Long: 100 A
 SG_ n : 240|16@1+ (0.5,0) [0|16383] "rpm" A
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","reserved","J1939PG";
BA_ "VFrameFormat" BO_ 2565865216 3;
`,
		"b.yaml": `bench: b
plant: p.yaml
period: 5 ms
buses:
  drive:
    interface: pair
    database: b.dbc
    frames: {Long: {cycle: 1 s}}
    send: [w -> Long.n]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := checkedFile(t, filepath.Join(dir, "b.yaml"), false)
	if want := "sent: 16 frames/s, at most 2.6 kbit/s"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v: %q is missing in\n%s", err, want, out)
	}
}
