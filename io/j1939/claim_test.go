package j1939_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

const ms = 1_000_000 // ns

// claimFrame returns the claim of another node.
func claimFrame(address uint8, name j1939.Name) can.Frame {
	n := j1939.Node{Name: name, Address: address}
	return n.Begin(0)
}

func requestFrame(to uint8, pgn uint32) can.Frame {
	f := can.Frame{ID: j1939.ID{Priority: 6, PGN: j1939.PGNRequest, Destination: to, Source: 0xF9}.Bits(), Len: 3}
	f.Data[0], f.Data[1], f.Data[2] = byte(pgn), byte(pgn>>8), byte(pgn>>16)
	return f
}

func TestAddressIsHeldAfter250Milliseconds(t *testing.T) {
	n := j1939.Node{Name: 7, Address: 3}
	f := n.Begin(1000)
	if a, name := claimOf(t, &f); a != 3 || name != 7 {
		t.Errorf("claims %d for %v", a, name)
	}
	for at, want := range map[int64]j1939.State{1000: j1939.Waiting, 1000 + 250*ms - 1: j1939.Waiting} {
		if n.Poll(at); n.State != want {
			t.Errorf("after %d ns it is %v", at-1000, n.State)
		}
	}
	if n.Poll(1000 + 250*ms); n.State != j1939.Held {
		t.Errorf("after 250 ms it is %v", n.State)
	}
}

func TestLowerNameKeepsTheAddress(t *testing.T) {
	n := j1939.Node{Name: 7, Address: 3}
	n.Begin(0)
	rival := claimFrame(3, 8)
	answer, ok := n.Receive(&rival, 200*ms)
	if a, name := claimOf(t, &answer); !ok || a != 3 || name != 7 {
		t.Errorf("answers %v: %d for %v", ok, a, name)
	}
	if n.Poll(449 * ms); n.State != j1939.Waiting {
		t.Errorf("249 ms after the contest it is %v", n.State)
	}
	if n.Poll(450 * ms); n.State != j1939.Held {
		t.Errorf("250 ms after the contest it is %v", n.State)
	}
	if _, ok := n.Receive(&rival, 500*ms); !ok || n.State != j1939.Held {
		t.Errorf("while it holds the address: defends %v, %v", ok, n.State)
	}
	elsewhere := claimFrame(4, 1)
	if _, ok := n.Receive(&elsewhere, 600*ms); ok || n.State != j1939.Held {
		t.Error("a claim for another address concerns it")
	}
}

func TestHigherNameLosesTheAddressAndSendsCannotClaim(t *testing.T) {
	for _, other := range []j1939.Name{6, 7} { // lower, and its own
		n := j1939.Node{Name: 7, Address: 3}
		n.Begin(0)
		n.Poll(250 * ms)
		rival := claimFrame(3, other)
		if _, ok := n.Receive(&rival, 300*ms); ok || n.State != j1939.Lost || n.Rival != other {
			t.Fatalf("answers %v, is %v, rival %v", ok, n.State, n.Rival)
		}
		if _, ok := n.Poll(300 * ms); ok {
			t.Error("says at once that it cannot claim")
		}
		f, ok := n.Poll(453 * ms)
		if a, name := claimOf(t, &f); !ok || a != j1939.Null || name != 7 {
			t.Errorf("153 ms later: %v, from %d as %v", ok, a, name)
		}
		if _, ok := n.Poll(900 * ms); ok {
			t.Error("says twice that it cannot claim")
		}
	}
}

func TestRequestsForClaimsAreAnswered(t *testing.T) {
	for _, c := range []struct {
		name    string
		frame   can.Frame
		answers bool
	}{
		{"to all", requestFrame(j1939.Global, j1939.PGNClaim), true},
		{"to it", requestFrame(3, j1939.PGNClaim), true},
		{"to another", requestFrame(4, j1939.PGNClaim), false},
		{"for another group", requestFrame(3, 61444), false},
	} {
		n := j1939.Node{Name: 7, Address: 3}
		if _, ok := n.Receive(&c.frame, 0); ok {
			t.Errorf("%s: it answers before it has begun", c.name)
		}
		n.Begin(0)
		f, ok := n.Receive(&c.frame, 100*ms)
		if ok != c.answers {
			t.Errorf("%s: answers %v", c.name, ok)
		}
		if a, name := uint8(3), j1939.Name(7); ok {
			if ga, gn := claimOf(t, &f); ga != a || gn != name {
				t.Errorf("%s: %d for %v", c.name, ga, gn)
			}
		}
	}
	n := j1939.Node{Name: 7, Address: 3}
	n.Begin(0)
	rival := claimFrame(3, 1)
	n.Receive(&rival, 10*ms)
	n.Poll(200 * ms) // has said that it cannot claim
	all, it := requestFrame(j1939.Global, j1939.PGNClaim), requestFrame(3, j1939.PGNClaim)
	n.Receive(&it, 300*ms)
	if _, ok := n.Poll(600 * ms); ok {
		t.Error("answers a request to an address that is no longer its own")
	}
	n.Receive(&all, 700*ms)
	if f, ok := n.Poll(900 * ms); !ok || j1939.ParseID(f.ID).Source != j1939.Null {
		t.Errorf("a request to all: answers %v, %08X", ok, f.ID)
	}
}

// wire is a bus whose nodes begin at different times. It carries one frame at a time to all
// other nodes that have begun; the next sender is drawn at random.
type wire struct {
	nodes  []j1939.Node
	begins []int64
	queue  []sent
	frames int
}

type sent struct {
	by int
	f  can.Frame
}

func (w *wire) run(t *rapid.T, until int64) {
	for now := int64(0); now < until; now += ms / 2 {
		for i := range w.nodes {
			n := &w.nodes[i]
			if n.State == j1939.Silent && now >= w.begins[i] {
				w.queue = append(w.queue, sent{i, n.Begin(now)})
			}
			if f, ok := n.Poll(now); ok {
				w.queue = append(w.queue, sent{i, f})
			}
		}
		if len(w.queue) == 0 {
			continue
		}
		k := rapid.IntRange(0, len(w.queue)-1).Draw(t, "next")
		// The frames of one node keep their order.
		k = slices.IndexFunc(w.queue, func(s sent) bool { return s.by == w.queue[k].by })
		s := w.queue[k]
		w.queue = slices.Delete(w.queue, k, k+1)
		w.frames++
		for i := range w.nodes {
			if i == s.by {
				continue
			}
			if f, ok := w.nodes[i].Receive(&s.f, now); ok {
				w.queue = append(w.queue, sent{i, f})
			}
		}
	}
}

// For all NAMEs, begin times and frame orders: the lowest NAME that claims an address holds
// it, no other node does, and the number of frames is bounded.
func TestLowestNameGetsEachAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(2, 12).Draw(t, "nodes")
		names := rapid.SliceOfNDistinct(rapid.Uint64(), count, count, rapid.ID).Draw(t, "names")
		w := &wire{}
		lowest := map[uint8]j1939.Name{}
		for _, name := range names {
			n := j1939.Node{Name: j1939.Name(name), Address: rapid.Uint8Range(0, 3).Draw(t, "address")}
			w.nodes = append(w.nodes, n)
			w.begins = append(w.begins, rapid.Int64Range(0, 600*ms).Draw(t, "begins"))
			if least, ok := lowest[n.Address]; !ok || n.Name < least {
				lowest[n.Address] = n.Name
			}
		}
		w.run(t, 2000*ms)
		if len(w.queue) != 0 {
			t.Fatalf("%d frames still wait", len(w.queue))
		}
		// A node claims once, defends itself once against each other one that is not
		// lower, and says once that it has lost.
		if most := count*(count+1) + count; w.frames > most {
			t.Fatalf("%d nodes needed %d frames, more than %d", count, w.frames, most)
		}
		for _, n := range w.nodes {
			want := j1939.Lost
			if lowest[n.Address] == n.Name {
				want = j1939.Held
			}
			if n.State != want {
				t.Fatalf("node %v at %d is %v, want %v", n.Name, n.Address, n.State, want)
			}
		}
	})
}
