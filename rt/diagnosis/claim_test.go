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

// claimRig is a tester that has begun to claim its address at 0 s, with a request that waits.
func claimRig(t *testing.T) *Station {
	t.Helper()
	s := parse(t, truckFile)
	st, err := NewStation(s)
	if err != nil {
		t.Fatal(err)
	}
	st.Claim(0)
	j, err := s.ParseCommand([]string{"dm", "2"}, false)
	if err == nil {
		err = st.Add(j)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// requestForClaims is the request for the claims of all nodes, SAE J1939-81.
var requestForClaims = can.Frame{ID: 0x18EAFF00 | can.EFF, Len: 3, Data: [64]byte{0x00, 0xEE, 0x00}}

// While the bus takes no frame, requests for claims add up to one claim: no memory grows, and no burst follows.
func TestRequestsForClaimsAddUpToOneClaim(t *testing.T) {
	st := claimRig(t)
	for range 1000 {
		st.Receive(&requestForClaims, 0)
	}
	if n := testing.AllocsPerRun(100, func() { st.Receive(&requestForClaims, 0) }); n != 0 {
		t.Errorf("%g allocations for each request", n)
	}
	sent := 0
	for _, ok := st.Next(0); ok; _, ok = st.Next(0) {
		st.Sent(0)
		sent++
	}
	if sent != 1 {
		t.Errorf("%d claims sent", sent)
	}
}

// Requests for claims every 100 ms are answered, and do not keep the tester from its address.
func TestRequestsForClaimsDoNotDelayTheTester(t *testing.T) {
	st, begins := claimRig(t), int64(-1)
	for now := int64(0); now < 1e9 && begins < 0; now += 10e6 {
		if now%100e6 == 0 {
			st.Receive(&requestForClaims, now)
		}
		st.Step(now)
		for f, ok := st.Next(now); ok; f, ok = st.Next(now) {
			if st.Sent(now); f.ID == 0x18EA03F9|can.EFF {
				begins = now
			}
		}
	}
	if begins != 250e6 {
		t.Errorf("the tester asks at %d ns, want 250 ms", begins)
	}
}

// When another node takes the address, the open request ends with the reason at once. What the bus has not taken by then,
// it never gets: neither the request nor a claim.
func TestLostAddressEndsTheOpenRequestOfTheTester(t *testing.T) {
	st := claimRig(t)
	st.Sent(0)
	st.Step(251e6)
	if f, ok := st.Next(251e6); !ok || f.ID != 0x18EA03F9|can.EFF {
		t.Fatalf("%08X %t, want the request", f.ID, ok)
	}
	st.Receive(&requestForClaims, 252e6)
	rival := can.Frame{ID: 0x18EEFFF9 | can.EFF, Len: 8, Data: [64]byte{5}}
	st.Receive(&rival, 253e6)
	if f, ok := st.Next(253e6); ok {
		t.Errorf("%08X is sent from a lost address", f.ID)
	}
	st.Step(254e6)
	if o := st.Take(); len(o) != 1 || o[0].Err == nil || !strings.Contains(o[0].Err.Error(), "another node holds the address 0xF9") {
		t.Errorf("%+v", o)
	}
}

// Two testers with one address have different NAMEs, in one process and in processes with the same number on two hosts.
func TestTestersHaveDifferentNames(t *testing.T) {
	names := map[j1939.Name]bool{}
	for range 4 {
		names[claimRig(t).claim.Name] = true
	}
	if len(names) < 3 { // two of 2^21 may be equal
		t.Errorf("%d different NAMEs of 4 testers", len(names))
	}
}
