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

// busFrame is a frame on the bus.
type busFrame struct {
	name string
	grid int64  // grid point
	data string // 16 bytes of a classic frame, 72 of CAN FD
}

// network gives the name of each frame and the first byte of its grid point.
var network = map[uint32]struct {
	name string
	grid int
}{
	0x200: {"Wheels", 2}, 0x201: {"Shafts", 6}, 0x202: {"Torque", 4}, 0x203: {"Gears", 4}, 0x204: {"Service", 6},
	0x18FEF103 | can.EFF: {"Engine", 6}, 0x300: {"Motion", 4}, 0x301: {"Chassis", 4}, 0x302: {"MotionC", 4}, 0x303: {"ChassisC", 4},
	0x3C0: {"Ignition", 2}, 0x3C1: {"Ambient", 6},
}

// virtualBench is a bench of package proof in virtual time, with the other end of its bus.
type virtualBench struct {
	*testing.T
	*rt.Loop
	clock *sched.Virtual
	page  *rt.StatusBlock
	end   *os.File
	fd    int
}

func newVirtualBench(t *testing.T, name string, change func(*rt.Config)) *virtualBench {
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
	v := &virtualBench{T: t, clock: sched.NewVirtual(time.Duration(b.PeriodNs)), page: new(rt.StatusBlock), end: end, fd: int(end.Fd())}
	if v.Loop, err = rt.New(h.Loop, kernel.New(h.Tables), []*can.Bus{bus}, h.Maps, v.clock, v.page); err != nil {
		t.Fatal(err)
	}
	return v
}

// tick runs the next tick and returns the sent frames.
func (v *virtualBench) tick() (list []busFrame) {
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
			v.Fatalf("unknown frame %X", frame[:n])
		}
		list = append(list, busFrame{f.name, int64(binary.LittleEndian.Uint16(frame[8+f.grid:])), string(frame[:n])})
	}
}

// send sends a frame to the bench.
func (v *virtualBench) send(frame []byte) {
	v.Helper()
	if _, err := unix.Write(v.fd, frame); err != nil {
		v.Fatalf("%v", err)
	}
}

// order returns the messages in the order of the bench file, in which they are sent at a grid
// point.
func order(fd bool) []string {
	names := []string{"Wheels", "Shafts", "Torque", "Gears", "Service", "Engine", "MotionC", "ChassisC", "Ignition", "Ambient"}
	if fd {
		names[6], names[7] = "Motion", "Chassis"
	}
	return names
}

// dueAt returns the messages due at a grid point.
func dueAt(k int64, fd bool) (list []busFrame) {
	for _, name := range order(fd) {
		if s := schedule[name]; k%s.cycle == s.phase {
			list = append(list, busFrame{name: name, grid: k})
		}
	}
	return list
}

// In virtual time each frame is on the bus at its grid points only, in its phase also after lost
// ticks. No tick sends all messages.
func TestProofEachFrameGoesOutAtItsGridPoints(t *testing.T) {
	const ticks, lost = 3000, 7
	for _, fd := range []bool{true, false} {
		for _, late := range []bool{false, true} { // frames of lost points are dropped or sent late
			v := newVirtualBench(t, map[bool]string{true: "fd", false: "classic"}[fd], func(c *rt.Config) {
				if late {
					c.Overrun = rt.Overrun{Policy: rt.CatchUp, Max: 20}
				}
			})
			v.clock.Miss(501, lost)
			v.clock.Miss(1500, 1)
			n, most, before := 0, 0, int64(0)
			for before < ticks {
				got := v.tick()
				k := int64(v.page.Ticks.Load())
				var want []busFrame
				for i := before + 1; i <= k; i++ {
					if late || i == k {
						want = append(want, dueAt(i, fd)...)
					}
				}
				if !slices.EqualFunc(got, want, func(a, b busFrame) bool { return a.name == b.name && a.grid == b.grid }) {
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

func names(list []busFrame) (names []string) {
	for _, f := range list {
		names = append(names, f.name)
	}
	return names
}

// unknown returns the i-th frame with an identifier that the bench does not receive.
func unknown(i int) []byte {
	f := make([]byte, 16)
	binary.LittleEndian.PutUint32(f, uint32([]int{0x7FF, 0x123, 0x113, 0x10F}[i%4]))
	f[4] = byte(i % 9)
	binary.LittleEndian.PutUint64(f[8:], uint64(i)*0x9E3779B97F4A7C15)
	return f
}

// drive runs the classic bench with TCU_1 every other tick and flood unknown frames per tick. It
// returns the outputs and the sent frames by tick.
func drive(t *testing.T, ticks, flood int) (v *virtualBench, y [][]float64, out []string) {
	t.Helper()
	v = newVirtualBench(t, "classic", nil)
	for k := range ticks {
		for i := range flood / 2 {
			v.send(unknown(k + i))
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
			v.send(f)
		}
		for i := range flood / 2 {
			v.send(unknown(k + i + 1))
		}
		wire := ""
		for _, f := range v.tick() {
			wire += f.data
		}
		y, out = append(y, slices.Clone(v.Y)), append(out, wire)
	}
	return v, y, out
}

// The bus has no filter. As long as a tick can read the whole flood, outputs and sent frames are
// identical bit by bit.
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

// A tick reads at most MaxRecv frames, and counts RxBound if it reaches this limit.
func TestProofTickReadsAtMostMaxRecvFrames(t *testing.T) {
	v := newVirtualBench(t, "classic", nil)
	waiting, before := 0, uint64(0)
	for k := range 200 {
		for i := 0; waiting < 2*rt.MaxRecv; i++ {
			if _, err := unix.Write(v.fd, unknown(k+i)); err != nil {
				break // the socket is full
			}
			waiting++
		}
		bound := v.page.RxBound.Load()
		v.tick()
		read := int(v.page.RxUnknown.Load() - before)
		before = v.page.RxUnknown.Load()
		if read != min(waiting, rt.MaxRecv) || (v.page.RxBound.Load() > bound) != (read == rt.MaxRecv) {
			t.Fatalf("tick %d: read %d of %d waiting, the limit is %d; counted: %t", k+1, read, waiting, rt.MaxRecv, v.page.RxBound.Load() > bound)
		}
		waiting -= read
	}
	if v.page.RxBound.Load() == 0 {
		t.Error("no tick reached the limit")
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
		code, message := p.Wait(), strings.TrimSpace(p.Err.String())
		if code != 2 || strings.Contains(message, "\n") || !strings.Contains(message, path+":15:7: ") || !strings.Contains(message, `"Wheels"`) {
			t.Errorf("%s: exit %d, %q; want 2 and one line with the place and the frame", p.Name, code, message)
		}
	}
}
