package proof

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	brutella "github.com/brutella/can"
	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/proof/unit"
	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	product "lockstep/rt/bench"
	"lockstep/sched"
)

// bus frames are what is on the wire: 16 bytes of a classic frame, 72 of CAN FD.
type onWire struct {
	name string
	grid int64
	data string
}

// network is what a frame of the benches is called, and where its grid point is.
var network = map[uint32]struct {
	name string
	grid int
}{
	0x200: {"Wheels", 2}, 0x201: {"Shafts", 6}, 0x202: {"Torque", 4}, 0x203: {"Gears", 4}, 0x204: {"Service", 6},
	0x18FEF103 | can.EFF: {"Engine", 6}, 0x300: {"Motion", 4}, 0x301: {"Chassis", 4}, 0x302: {"MotionC", 4}, 0x303: {"ChassisC", 4},
	0x3C0: {"Ignition", 2}, 0x3C1: {"Ambient", 6},
}

// timeless is a bench of package proof in virtual time, with the other end of its bus.
type timeless struct {
	*testing.T
	*rt.Loop
	clock *sched.Virtual
	page  *rt.StatusBlock
	end   *os.File
	fd    int
}

func newTimeless(t *testing.T, name string, change func(*rt.Config)) *timeless {
	t.Helper()
	b, err := product.Load("" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	h, err := product.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	h.Loop.Virtual = true
	if change != nil {
		change(&h.Loop)
	}
	target, end, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	bus, err := can.Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	v := &timeless{T: t, clock: sched.NewVirtual(time.Duration(b.PeriodNs)), page: new(rt.StatusBlock), end: end, fd: int(end.Fd())}
	if v.Loop, err = rt.New(h.Loop, kernel.New(h.Tables), []*can.Bus{bus}, h.Maps, v.clock, v.page); err != nil {
		t.Fatal(err)
	}
	return v
}

// turn passes to the next wake-up and returns what is on the bus then.
func (v *timeless) turn() (list []onWire) {
	v.Helper()
	v.Tick(v.clock.Wait())
	var frame [72]byte
	for {
		n, _, err := unix.Recvfrom(v.fd, frame[:], unix.MSG_DONTWAIT)
		if err != nil || n == 0 {
			return list
		}
		f, known := network[binary.LittleEndian.Uint32(frame[:])]
		if !known {
			v.Fatalf("a frame %X", frame[:n])
		}
		list = append(list, onWire{f.name, int64(binary.LittleEndian.Uint16(frame[8+f.grid:])), string(frame[:n])})
	}
}

// put sends a frame to the bench.
func (v *timeless) put(frame []byte) {
	v.Helper()
	if _, err := unix.Write(v.fd, frame); err != nil {
		v.Fatalf("%v", err)
	}
}

// order is how the messages follow one another at a grid point: as in the bench file.
func order(fd bool) []string {
	names := []string{"Wheels", "Shafts", "Torque", "Gears", "Service", "Engine", "MotionC", "ChassisC", "Ignition", "Ambient"}
	if fd {
		names[6], names[7] = "Motion", "Chassis"
	}
	return names
}

// dueAt are the messages due at a grid point.
func dueAt(k int64, fd bool) (list []onWire) {
	for _, name := range order(fd) {
		if s := schedule[name]; k%s.cycle == s.phase {
			list = append(list, onWire{name: name, grid: k})
		}
	}
	return list
}

// Tick by tick, in virtual time: each frame is on the bus at its grid points and at no
// other, in its phase also after ticks were lost, and no tick carries all.
func TestProofEachFrameGoesOutAtItsGridPoints(t *testing.T) {
	const ticks, lost = 3000, 7
	for _, fd := range []bool{true, false} {
		for _, late := range []bool{false, true} { // of lost points: not at all, or late
			v := newTimeless(t, map[bool]string{true: "fd", false: "classic"}[fd], func(c *rt.Config) {
				if late {
					c.Overrun = rt.Overrun{Policy: rt.CatchUp, Max: 20}
				}
			})
			v.clock.Miss(501, lost)
			v.clock.Miss(1500, 1)
			n, most, before := 0, 0, int64(0)
			for before < ticks {
				got := v.turn()
				k := int64(v.page.Ticks.Load())
				var want []onWire
				for i := before + 1; i <= k; i++ {
					if late || i == k {
						want = append(want, dueAt(i, fd)...)
					}
				}
				if !slices.EqualFunc(got, want, func(a, b onWire) bool { return a.name == b.name && a.grid == b.grid }) {
					t.Fatalf("CAN FD %t, late %t: at grid point %d there are %v on the bus, want %v", fd, late, k, names(got), names(want))
				}
				if n += len(got); k == before+1 {
					most = max(most, len(got))
				}
				before = k
			}
			if v.page.Missed.Load() != lost+1 || most >= len(order(fd)) {
				t.Errorf("CAN FD %t: %d grid points lost, want %d; a tick carries %d frames of %d messages", fd, v.page.Missed.Load(), lost+1, most, len(order(fd)))
			}
			t.Logf("CAN FD %t, lost points sent late %t: %d frames at their grid points, at most %d at one", fd, late, n, most)
		}
	}
}

func names(list []onWire) (names []string) {
	for _, f := range list {
		names = append(names, f.name)
	}
	return names
}

// unknown is the i-th frame that nobody reads.
func unknown(i int) []byte {
	f := make([]byte, 16)
	binary.LittleEndian.PutUint32(f, uint32([]int{0x7FF, 0x123, 0x113, 0x10F}[i%4]))
	f[4] = byte(i % 9)
	binary.LittleEndian.PutUint64(f[8:], uint64(i)*0x9E3779B97F4A7C15)
	return f
}

// drive runs the classic bench for a while with the unit's TCU_1 every other tick among
// unknown frames, and returns what it did, tick by tick.
func drive(t *testing.T, ticks, flood int) (v *timeless, y [][]float64, out []string) {
	t.Helper()
	v = newTimeless(t, "classic", nil)
	for k := range ticks {
		for i := range flood / 2 {
			v.put(unknown(k + i))
		}
		if k%2 == 0 {
			bar := [4]float64{17.5, 0, 18, 0}
			if k/400%2 == 1 {
				bar = [4]float64{0, 17.5, 0, 18}
			}
			f, err := brutella.Marshal(unit.TCU1(k/2, bar))
			if err != nil {
				t.Fatal(err)
			}
			v.put(f)
		}
		for i := range flood / 2 {
			v.put(unknown(k + i + 1))
		}
		wire := ""
		for _, f := range v.turn() {
			wire += f.data
		}
		y, out = append(y, slices.Clone(v.Y)), append(out, wire)
	}
	return v, y, out
}

// A flood on a bus that no kernel filters: as long as a tick may read it all, not one bit
// changes of what the plant does and of what is sent.
func TestProofFloodOfUnknownFramesChangesNoBit(t *testing.T) {
	const ticks, flood = 2000, 200
	calm, y0, out0 := drive(t, ticks, 0)
	v, y1, out1 := drive(t, ticks, flood)
	for k := range ticks {
		if !slices.EqualFunc(y0[k], y1[k], func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) || out0[k] != out1[k] {
			t.Fatalf("tick %d: outputs %v and frames %X; with the flood %v and %X", k+1, y0[k], out0[k], y1[k], out1[k])
		}
	}
	if n := v.page.RxUnknown.Load(); n != ticks*flood || v.page.RxBound.Load() != 0 || v.page.Rx[0].Counts().OK != ticks/2 || calm.page.Transitions.Load() < 10 {
		t.Errorf("%d unknown frames, want %d; bound reached %d times; %d frames of the unit, want %d; %d transitions",
			n, ticks*flood, v.page.RxBound.Load(), v.page.Rx[0].Counts().OK, ticks/2, calm.page.Transitions.Load())
	}
	t.Logf("a tick takes %d ns, with %d unknown frames %d ns", calm.page.Work.Quantile(0.5), flood, v.page.Work.Quantile(0.5))
}

// And beyond: no tick reads more than it may, and each that left something says so.
func TestProofNoTickReadsMoreThanItMay(t *testing.T) {
	v := newTimeless(t, "classic", nil)
	waiting, before := 0, uint64(0)
	for k := range 200 {
		for i := 0; waiting < 2*rt.MaxRecv; i++ {
			if _, err := unix.Write(v.fd, unknown(k+i)); err != nil {
				break // as many as the socket holds
			}
			waiting++
		}
		bound := v.page.RxBound.Load()
		v.turn()
		read := int(v.page.RxUnknown.Load() - before)
		before = v.page.RxUnknown.Load()
		if read != min(waiting, rt.MaxRecv) || (v.page.RxBound.Load() > bound) != (read == rt.MaxRecv) {
			t.Fatalf("tick %d: read %d of %d waiting, the bound is %d; said so: %t", k+1, read, waiting, rt.MaxRecv, v.page.RxBound.Load() > bound)
		}
		waiting -= read
	}
	if v.page.RxBound.Load() == 0 {
		t.Error("no tick reached its bound")
	}
}

func TestProofDatabaseOfAnotherBusIsRefusedInOneLine(t *testing.T) {
	text, err := os.ReadFile("fd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other, err := filepath.Abs("../../model/plants/powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "database: gearbox.dbc", "database: "+other, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", path, "-besteffort", "-for", "1s"}, {"check", path}} {
		p := lab.Start(t, lab.Command(t), args...)
		code, said := p.Wait(), strings.TrimSpace(p.Err.String())
		if code != 2 || strings.Contains(said, "\n") || !strings.Contains(said, path+":15:7: ") || !strings.Contains(said, `"Wheels"`) {
			t.Errorf("%s: exit %d, %q; want 2 and one line with the place, the message and the nearest one", p.Name, code, said)
		}
	}
}
