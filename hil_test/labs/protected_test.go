package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

const protectedDatabase = `VERSION ""
BU_: Bench TCU
BO_ 272 TCU: 8 TCU
 SG_ CRC : 0|8@1+ (1,0) [0|255] "" Bench
 SG_ CTR : 8|4@1+ (1,0) [0|15] "" Bench
 SG_ pressure_C1 : 16|16@1+ (0.01,0) [0|40] "bar" Bench
BO_ 512 Wheels: 8 Bench
 SG_ CRC : 0|8@1+ (1,0) [0|255] "" TCU
 SG_ CTR : 8|4@1+ (1,0) [0|15] "" TCU
 SG_ w1 : 16|16@1- (0.02,0) [0|0] "rad/s" TCU
 SG_ w4 : 39|16@0- (0.001,0) [0|0] "rad/s" TCU
BO_ 768 Motion: 24 Bench
 SG_ CRC : 0|16@1+ (1,0) [0|65535] "" TCU
 SG_ CTR : 16|8@1+ (1,0) [0|255] "" TCU
 SG_ tau : 32|32@1- (1,0) [0|0] "N.m" TCU
 SG_ speed : 64|64@1- (1,0) [0|0] "rad/s" TCU
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","reserved","J1939PG","reserved4","r5","r6","r7","r8","r9","r10","r11","r12","r13","StandardCAN_FD","ExtendedCAN_FD";
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_ "VFrameFormat" BO_ 768 14;
SIG_VALTYPE_ 768 tau : 1;
SIG_VALTYPE_ 768 speed : 2;
`

const protectedBench = `bench: protected
plant: powershift
period: 5 ms
overrun: skip 900
buses:
  drive:
    interface: vcan0
    database: protected.dbc
    frames:
      Wheels: {cycle: 5 ms, protect: {profile: e2e-2, counter: CTR, checksum: CRC,
               data_ids: [7, 42, 99, 1, 200, 17, 33, 64, 5, 91, 120, 250, 3, 77, 18, 155]}}
      Motion: {cycle: 10 ms, protect: {profile: e2e-5, counter: CTR, checksum: CRC, data_id: 0x1234}}
    messages:
      TCU: {cycle: 10 ms, timeout: 2 s, protect: {profile: e2e-2, counter: CTR, checksum: CRC,
            data_ids: [7, 42, 99, 1, 200, 17, 33, 64, 5, 91, 120, 250, 3, 77, 18, 155]}}
    send: [w1 -> Wheels.w1, w4 -> Wheels.w4, tau_output -> Motion.tau, w1 -> Motion.speed]
    receive: [TCU.pressure_C1 -> clutch1.pressure]
`

// runProtected runs the bench on vcan0 for 10 s with protected.py on a bus. It returns the report,
// the counts of the bench for TCU, and the counts of protected.py.
func runProtected(t *testing.T, bus string) (r lab.Report, tcu lab.ProtectedMessage, seen, sent map[string]uint64) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"protected.dbc": protectedDatabase, "protected.yaml": protectedBench} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	unit := lab.Start(t, "/usr/bin/python3", "protected.py", bus)
	unit.AwaitOutput("ready")
	file := filepath.Join(dir, "report.json")
	b := &lab.Bench{File: file, For: lab.UntilStopped}
	b.Process = lab.Start(t, lab.Command(t), "run", filepath.Join(dir, "protected.yaml"), "-besteffort", "-report", file)
	unit.AwaitOutput("sent") // 600 frames
	b.AwaitStatus(2)         // the bench has read them
	r = b.Stop()
	if code := unit.Wait(); code != 0 {
		t.Fatalf("%s: exit %d\n%s", unit.Name, code, &unit.Err)
	}
	var counts struct{ Seen, Sent map[string]uint64 }
	_, text, _ := strings.Cut(unit.Out.String(), "sent\n")
	if err := json.Unmarshal([]byte(text), &counts); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	t.Logf("%s", text)
	var full struct{ Messages []lab.ProtectedMessage }
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &full)
	}
	if err != nil || len(full.Messages) != 1 {
		t.Fatalf("%v, %d messages", err, len(full.Messages))
	}
	return r, full.Messages[0], counts.Seen, counts.Sent
}

// protected.py, an independent program, finds every counter and checksum of the bench right,
// classic and CAN FD. The bench finds every fault of protected.py.
func TestLabProtectionIsVerifiedByAnIndependentUnit(t *testing.T) {
	if !lab.InVCAN(t, "python3-can", "python3-crccheck") {
		return
	}
	r, m, seen, sent := runProtected(t, "vcan0")
	// The unit does not check the first frame, for which it waits. A frame that the bus refused is
	// lost after its counter has advanced.
	if n := seen["wheels"] + seen["motion"]; n+1 != r.TxFrames || seen["wrong"] != 0 || seen["flags"] != 0 || seen["jumps"] > r.TxDropped {
		t.Errorf("the unit has seen %v; the bench sent %d frames, %d dropped", seen, r.TxFrames, r.TxDropped)
	}
	// The frame after wrong checksums counts as OK after a lost one: those after 50 and 51 and
	// after 400, and the one that skips a number.
	if m.Frames != 600 || m.Errors != sent["wrong"] || m.Repeated != sent["repeated"] || m.SomeLost != 2+sent["lost"] || m.Sequence != 0 ||
		m.OK+m.SomeLost+m.Errors+m.Repeated != m.Frames {
		t.Errorf("the bench has counted %+v; the unit sent %v", m, sent)
	}
}

// The gateway of the kernel passes the frames between two buses and flips a bit in those of the
// unit.
func TestLabFramesCorruptedByAGatewayAreErrors(t *testing.T) {
	if !lab.InVCAN(t, "python3-can", "python3-crccheck", "cangw") {
		return
	}
	for _, rule := range [][]string{
		{"-A", "-s", "vcan0", "-d", "vcan1", "-e", "-f", "200:7FF"},
		{"-A", "-s", "vcan1", "-d", "vcan0", "-e", "-f", "110:7FF", "-m", "XOR:D:0.0.0000010000000000"},
	} {
		gateway := lab.Start(t, "cangw", rule...)
		if code := gateway.Wait(); code != 0 {
			t.Fatalf("cangw %v: exit %d, %s", rule, code, &gateway.Err)
		}
	}
	_, m, _, sent := runProtected(t, "vcan1")
	if m.Frames != 600 || m.Errors != 600 || m.OK+m.SomeLost+m.Repeated+m.Sequence != 0 || m.Window == "VALID" {
		t.Errorf("the bench has counted %+v of %v, want 600 errors", m, sent)
	}
}
