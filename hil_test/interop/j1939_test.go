package interop

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/io/dbc"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/plants"
)

// truckVerdict is the output of truck.py.
type truckVerdict struct {
	Groups   map[string]int // frames, by "GROUP from SOURCE"
	Wrong    int
	First    []string // the first wrong values
	Compared int
	Worst    float64 // largest difference to the plant, bits
	Ticks    int
	Gears    []int // sequence of gears in ETC2
	Limits   int   // TSC1 frames that limit the torque
}

// The bench drives through all gears in virtual time. truck.py, with its own tables of SAE J1939,
// checks that the groups carry the values of the plant, that commands of the unit reach the plant,
// that the checksums of TSC1 are right, and that the engine obeys the limits of TSC1.
func TestTruckGroupsAreDecodedByAnIndependentProgram(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		lab.Skip(t, "/usr/bin/python3 is missing: apt-get install python3")
	}
	dir := t.TempDir()
	rec, log, table := filepath.Join(dir, "drive.rec"), filepath.Join(dir, "drive.log"), filepath.Join(dir, "drive.csv")
	lab.MustRun(t, "sim", "truck-bench", "-for", "30s", "-record", rec, "-out", table, "-si")
	if out := lab.MustRun(t, "replay", rec); !strings.Contains(out, " 3000 ticks") {
		t.Errorf("output of replay %q, want 3000 ticks", out)
	}
	lab.MustRun(t, "export", rec, "-o", log)
	out, err := exec.Command("/usr/bin/python3", "truck.py", log, table).CombinedOutput()
	if err != nil {
		t.Fatalf("truck.py: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	var v truckVerdict
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	if v.Wrong != 0 || v.Compared < 50000 || !(v.Worst > 0.4 && v.Worst <= 0.500001) {
		t.Errorf("%d of %d values are wrong, largest difference %g bits: %q", v.Wrong, v.Compared, v.Worst, v.First)
	}
	// 30 s with the cycle times of SAE J1939-71; the unit waits 250 ms for its address.
	for group, want := range map[string]int{
		"61444 from 0": 3000, "65265 from 0": 300, "65281 from 128": 3000, "256 from 5": 600,
		"61441 from 11": 300, "65215 from 11": 300, "65134 from 11": 1500,
		"0 from 3": 2974, "61442 from 3": 2974, "61445 from 3": 298, "65280 from 3": 2974, "60928 from 3": 1,
	} {
		if v.Groups[group] != want {
			t.Errorf("%d frames of group %s, want %d", v.Groups[group], group, want)
		}
	}
	if !slices.Equal(v.Gears, []int{1, 2, 3, 4}) || v.Limits < 60 {
		t.Errorf("gears %v with %d frames that limit the engine, want 1 to 4 and three shifts of at least 0.2 s", v.Gears, v.Limits)
	}
}

// The test compares SPN 4207 of random frames with the formula of J1939-71, sent and received. A
// flipped bit that changes the checksum must be an error.
func TestTSC1ChecksumFollowsItsFormulaInBothDirections(t *testing.T) {
	data, err := plants.Read("j1939.dbc")
	if err != nil {
		t.Fatal(err)
	}
	db, err := dbc.Parse("j1939.dbc", data)
	if err != nil {
		t.Fatal(err)
	}
	m := &db.Messages[slices.IndexFunc(db.Messages, func(m messages.Message) bool { return m.Name == "TSC1" })]
	p, err := sigmap.NewProtection(sigmap.ProtectionSpec{Profile: "j1939-tsc1"}, m)
	if err != nil {
		t.Fatal(err)
	}
	formula := func(b [8]byte, id uint32) byte {
		s := uint32(b[7]&15) + id&255 + id>>8&255 + id>>16&255 + id>>24
		for _, v := range b[:7] {
			s += uint32(v)
		}
		return byte(s>>6&3+s>>3+s) & 7
	}
	random := rand.New(rand.NewPCG(1, 2))
	sends, checks := p, p
	for n := range 100_000 {
		id := random.Uint32() & (1<<29 - 1)
		var frame [64]byte
		for i := range 8 {
			frame[i] = byte(random.Uint32())
		}
		sends.Protect(&frame, 8, id)
		if want := formula([8]byte(frame[:8]), id)<<4 | byte(n%8); frame[7] != want {
			t.Fatalf("frame %d, % X of %08X: last byte %02X, want %02X", n, frame[:8], id, frame[7], want)
		}
		if got := checks.Check(&frame, 8, id); n > 0 && got.Frame != sigmap.FrameOK {
			t.Fatalf("frame %d, % X of %08X: status %v, want ok", n, frame[:8], id, got.Frame)
		}
		bit := random.IntN(56)
		frame[bit/8] ^= 1 << (bit % 8)
		one := checks
		wrong := formula([8]byte(frame[:8]), id) != frame[7]>>4
		if got := one.Check(&frame, 8, id); (got.Frame == sigmap.FrameError) != wrong {
			t.Fatalf("frame %d with bit %d flipped, checksum wrong %v: status %v", n, bit, wrong, got.Frame)
		}
	}
}
