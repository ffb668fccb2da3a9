package supervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/report"
	"lockstep/sched"
)

// rig has the address claims on one end of a pair; the test is the node at the other end.
type rig struct {
	t     *testing.T
	c     *busPorts
	other *os.File
}

func newRig(t *testing.T, rule string, addresses ...bench.Address) *rig {
	t.Helper()
	ours, other, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	on, err := can.Inherit(ours)
	if err != nil {
		t.Fatal(err)
	}
	bus := bench.Bus{Name: yamlfile.Scalar{Text: "drive"}, J1939: &bench.J1939{Lost: rule, Addresses: addresses}}
	h := &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: &bench.Bench{Buses: []bench.Bus{bus}}}}
	h.Maps = []*sigmap.Map{{}}
	g := &rig{t: t, c: &busPorts{View: report.View{Handover: h, Status: new(rt.StatusBlock)}}, other: other}
	g.c.add(0, on, true)
	t.Cleanup(func() {
		g.c.close()
		other.Close()
	})
	return g
}

func (g *rig) send(f can.Frame) {
	g.t.Helper()
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b, f.ID)
	b[4] = f.Len
	copy(b[8:], f.Data[:8])
	if _, err := g.other.Write(b); err != nil {
		g.t.Fatal(err)
	}
}

// claimed waits for a claim and returns its address and NAME.
func (g *rig) claimed() (uint8, j1939.Name) {
	g.t.Helper()
	b := make([]byte, 16)
	g.other.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := g.other.Read(b); n != 16 || err != nil {
		g.t.Fatalf("%d bytes, %v", n, err)
	}
	id := j1939.ParseID(binary.NativeEndian.Uint32(b))
	if id.PGN != j1939.PGNClaim {
		g.t.Fatalf("%+v is not an address claim", id)
	}
	return id.Source, j1939.Name(binary.LittleEndian.Uint64(b[8:]))
}

func (g *rig) expect(address uint8, name j1939.Name) {
	g.t.Helper()
	if a, n := g.claimed(); a != address || n != name {
		g.t.Errorf("0x%02X is claimed for %v, want 0x%02X for %v", a, n, address, name)
	}
}

func claimBy(address uint8, name j1939.Name) can.Frame {
	n := j1939.Node{Name: name, Address: address}
	return n.Begin(0)
}

func TestAddressesAreClaimedDefendedAndReported(t *testing.T) {
	g := newRig(t, "stop", bench.Address{Address: 0, Name: 10}, bench.Address{Address: 11, Name: 20})
	begun := time.Now()
	if err := g.c.waitClaimed(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d < 250*time.Millisecond {
		t.Errorf("held after %v", d)
	}
	g.expect(0, 10)
	g.expect(11, 20)
	g.c.serve()
	g.send(claimBy(11, 30)) // higher
	g.expect(11, 20)
	g.send(requestBy(j1939.Global, j1939.PGNClaim))
	g.expect(0, 10)
	g.expect(11, 20)
	if why := g.c.endReason(); why != "" {
		t.Errorf("ends: %s", why)
	}
	g.send(claimBy(0, 5)) // lower
	g.expect(j1939.Null, 10)
	if why := g.c.endReason(); !strings.HasPrefix(why, "address 0x00 of bus drive was lost to NAME 0000000000000005 (engine, identity 5, manufacturer 0); the bench has NAME 000000000000000A") {
		t.Errorf("ends: %q", why)
	}
	g.c.close()
	if list := g.c.lines(); len(list) != 2 || !strings.HasPrefix(list[0], "drive: 0x00 lost, engine, identity 10") || !strings.HasSuffix(list[0], "held by NAME 0000000000000005 (engine, identity 5, manufacturer 0)") ||
		list[1] != "drive: 0x0B held, engine, identity 20, manufacturer 0; defended 1 times" {
		t.Errorf("lines of the report: %q", list)
	}
	if list := g.c.events(); len(list) != 3 || len(g.c.events()) != 0 {
		t.Errorf("events %v", list)
	}
}

// The supervisor has no real-time rights: its first poll may come late. The time in which another node may
// contest the address begins with the frame.
func TestWaitForAnAddressBeginsWhenTheClaimIsOnTheBus(t *testing.T) {
	g := newRig(t, "stop", bench.Address{Address: 0, Name: 10})
	time.Sleep(j1939.ClaimWait + 50*time.Millisecond)
	for range 2 {
		if !g.c.poll() {
			t.Error("the address is held as soon as its claim is sent")
		}
	}
	g.expect(0, 10)
	if err := g.c.waitClaimed(); err != nil || g.c.buses[0].nodes[0].State != j1939.Held {
		t.Errorf("%v, %v", err, g.c.buses[0].nodes[0].State)
	}
}

// silence expects that no frame comes for a time.
func (g *rig) silence(d time.Duration) {
	g.t.Helper()
	g.other.SetReadDeadline(time.Now().Add(d))
	b := make([]byte, 16)
	if n, err := g.other.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
		g.t.Fatalf("a frame follows: %d bytes % X, %v", n, b, err)
	}
}

// The target sends for a tick after the loss. "Cannot claim" comes after it, and nothing comes then.
func TestCannotClaimIsTheLastFrameOfABusUnderTheRuleStop(t *testing.T) {
	g := newRig(t, "stop", bench.Address{Address: 0, Name: 10}, bench.Address{Address: 11, Name: 20})
	if err := g.c.waitClaimed(); err != nil {
		t.Fatal(err)
	}
	g.expect(0, 10)
	g.expect(11, 20)
	g.c.Status.StartNs.Store(1)
	g.c.Status.Ticks.Store(100)
	g.send(claimBy(0, 5))
	g.c.poll()
	if g.c.Status.Muted.Load() != 1 {
		t.Error("the target may send after the loss")
	}
	g.c.serve()
	g.silence(2 * j1939.CannotClaimDelay)
	g.c.Status.Ticks.Store(102)
	g.expect(j1939.Null, 10)
	g.send(claimBy(11, 30)) // higher: a bench that goes on would defend its address
	g.send(requestBy(j1939.Global, j1939.PGNClaim))
	g.silence(3 * portInterval)
	g.c.close()
	g.silence(portInterval)
}

// A request to the unit ends with the loss, and one that comes later ends at once. The tester sends nothing more.
func TestLostAddressEndsTheRequestsToTheUnit(t *testing.T) {
	g := newRig(t, "stop", bench.Address{Address: 0, Name: 10})
	if err := g.c.waitClaimed(); err != nil {
		t.Fatal(err)
	}
	g.expect(0, 10)
	s, err := diagnosis.Parse("unit.yaml", "", []byte("uds: {request: 0x7E1, response: 0x7E9}"), nil)
	if err == nil {
		g.c.buses[0].port.Tester, err = diagnosis.NewStation(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	desk := g.c.desk()
	ask := func() <-chan *diagnosis.UnitAnswer {
		answer, err := desk.Ask(&diagnosis.UnitRequest{Words: []string{"dtc"}})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	open := ask()
	g.c.poll()
	g.send(claimBy(0, 5))
	g.c.poll()
	later := ask()
	g.c.poll()
	for _, answer := range []<-chan *diagnosis.UnitAnswer{open, later} {
		select {
		case a := <-answer:
			if !strings.HasPrefix(a.Error, "the bench sends nothing more on bus drive: address 0x00 of bus drive was lost to NAME ") {
				t.Errorf("%+v", a)
			}
		default:
			t.Error("a request waits")
		}
	}
	if list := g.c.outcomes(); len(list) != 2 {
		t.Errorf("%d outcomes", len(list))
	}
}

// The tester on SAE J1939 claims its own address on an interface, also when the bus was down. A node that takes it ends no
// run. An address of the bench is not claimed twice.
func TestTesterClaimsItsAddress(t *testing.T) {
	for _, c := range []struct {
		tester string
		claims bool
	}{{"0xF9", true}, {"0x00", false}} {
		g := newRig(t, "stop", bench.Address{Address: 0, Name: 10})
		g.c.poll()
		g.expect(0, 10)
		s, err := diagnosis.Parse("unit.yaml", "", []byte("j1939: {address: 0x03, tester: "+c.tester+"}"), nil)
		if err == nil {
			g.c.buses[0].port.Tester, err = diagnosis.NewStation(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		g.c.buses[0].claimAll(sched.Now())
		g.c.poll()
		g.expect(0, 10)
		if !c.claims {
			g.c.poll()
			g.silence(portInterval)
			continue
		}
		g.c.poll()
		if a, name := g.claimed(); a != 0xF9 || !strings.HasPrefix(name.Describe(), "function 129") {
			t.Errorf("the tester claims 0x%02X as %s", a, name.Describe())
		}
		g.send(claimBy(0xF9, 5))
		g.c.poll()
		if why := g.c.endReason(); why != "" {
			t.Errorf("the run ends: %s", why)
		}
	}
}

// The run ends, or is refused, before the delay of "cannot claim" is over.
func TestCannotClaimIsSentBeforeTheSocketIsClosed(t *testing.T) {
	g := newRig(t, "stop", bench.Address{Address: 0, Name: 10})
	g.send(claimBy(0, 5))
	if err := g.c.waitClaimed(); err == nil {
		t.Fatal("the address is not lost")
	}
	g.c.close()
	g.expect(j1939.Null, 10)
	g.silence(portInterval)
}

func requestBy(to uint8, pgn uint32) can.Frame {
	f := can.Frame{ID: j1939.ID{Priority: 6, PGN: j1939.PGNRequest, Destination: to, Source: 0xF9}.Bits(), Len: 3}
	f.Data[0], f.Data[1], f.Data[2] = byte(pgn), byte(pgn>>8), byte(pgn>>16)
	return f
}

func TestLostAddressFollowsTheDeclaredRule(t *testing.T) {
	for rule, want := range map[string]struct {
		refused, over bool
		stop          uint64
	}{"stop": {true, true, 0}, "safe": {true, false, rt.StopSafe}, "continue": {false, false, 0}} {
		g := newRig(t, rule, bench.Address{Address: 0, Name: 10})
		g.send(claimBy(0, 5))
		err := g.c.waitClaimed()
		if (err != nil) != want.refused || (g.c.endReason() != "") != want.over || g.c.Status.Stop.Load() != want.stop {
			t.Errorf("%s: %v, ends %q, stop %d", rule, err, g.c.endReason(), g.c.Status.Stop.Load())
		}
	}
}

// An address claim has no cycle and no inputs.
func TestAddressClaimIsNotReportedAsSilent(t *testing.T) {
	b, err := bench.Load("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	v := report.View{Handover: h, Status: new(rt.StatusBlock)}
	v.Status.Ticks.Store(1000)
	var names []string
	for _, s := range v.Silent() {
		names = append(names, s.Message)
	}
	if got := strings.Join(names, " "); got != "TSC1 ETC1 ETC2 ClutchPressures" {
		t.Errorf("silent: %s", got)
	}
}

func TestPairNeedsNoAddressClaims(t *testing.T) {
	b, err := bench.Load("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	c := &busPorts{}
	err = c.open(report.View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: b}}, Status: new(rt.StatusBlock)})
	if err != nil || len(c.buses) != 0 {
		t.Fatalf("%d buses with claims, %v", len(c.buses), err)
	}
	if err := c.waitClaimed(); err != nil {
		t.Error(err)
	}
}
