package diagnosis

import (
	"encoding/binary"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

// The frames are built by hand from SAE J1939-81: the claim (PGN 0xEE00 to all), its answer to a request, its defence,
// and "cannot claim" from 254. No request goes to the unit before the address is held, or after it is lost.
func TestTesterClaimsItsAddressBeforeItAsks(t *testing.T) {
	const ms = int64(1e6)
	s := parse(t, truckFile)
	st, err := NewStation(s)
	if err != nil {
		t.Fatal(err)
	}
	add := func() {
		t.Helper()
		j, err := s.ParseCommand([]string{"dm", "2"}, false)
		if err == nil {
			err = st.Add(j)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sent := func(now int64) (ids []uint32) {
		st.Step(now)
		for f, ok := st.Next(now); ok; f, ok = st.Next(now) {
			st.Sent(now)
			ids = append(ids, f.ID&^can.EFF)
		}
		return ids
	}
	expect := func(now int64, want ...uint32) {
		t.Helper()
		got := sent(now)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%d ms: sent %08X, want %08X", now/ms, got, want)
			}
		}
	}
	claimOf := func(name uint64) *can.Frame {
		f := &can.Frame{ID: 0x18EEFFF9 | can.EFF, Len: 8}
		binary.LittleEndian.PutUint64(f.Data[:], name)
		return f
	}

	st.Claim(0)
	add()
	expect(100*ms, 0x18EEFFF9)
	expect(340 * ms) // the wait begins when the bus takes the claim
	expect(351*ms, 0x18EA03F9)
	st.Receive(&can.Frame{ID: 0x18FECB03 | can.EFF, Len: 8, Data: [64]byte{0, 0xFF, 191, 0, 19, 1, 0xFF, 0xFF}}, 360*ms)
	st.Step(360 * ms)
	if o := st.Take(); len(o) != 1 || o[0].Err != nil {
		t.Fatalf("%+v", o)
	}
	request := &can.Frame{ID: 0x18EAFF00 | can.EFF, Len: 3, Data: [64]byte{0x00, 0xEE, 0x00}}
	st.Receive(request, 370*ms)
	expect(370*ms, 0x18EEFFF9)
	st.Receive(claimOf(1<<63), 380*ms) // a higher NAME
	expect(380*ms, 0x18EEFFF9)

	st.Receive(claimOf(5), 390*ms)
	add()
	expect(390 * ms)
	o := st.Take()
	if len(o) != 1 || o[0].Err == nil || !strings.Contains(o[0].Err.Error(), "another node holds the address 0xF9 of the tester: engine, identity 5, manufacturer 0;") {
		t.Fatalf("%+v", o)
	}
	expect(390*ms+j1939.CannotClaimDelay, 0x18EEFFFE)
}
