package port_test

import (
	"testing"

	"lockstep/io/can"
	"lockstep/rt/port"
)

// LongSpeeds goes to all every second. Address 0x21 requests it from the gearbox, 0x80: the answer goes to
// 0x21 by "request to send". A request to all is answered to all.
func TestDirectedRequestOfALongMessageIsAnsweredToItsRequester(t *testing.T) {
	for _, c := range []struct {
		name           string
		to             uint8
		toNode, toAll  int // announcements
		secondRequests int
	}{
		{"of one address", 0x80, 1, 0, 0}, {"of all", 0xFF, 0, 1, 0}, {"of one, twice before the answer", 0x80, 1, 0, 1},
		{"of another node", 0x03, 0, 0, 0},
	} {
		r := startRig(t, longBench(t))
		toNode, toAll, data := 0, 0, []byte{}
		for k := range 30 { // the cycle is due at tick 49
			if k == 5 {
				for range 1 + c.secondRequests {
					r.request(c.to, 0xFF11)
				}
			}
			for _, f := range r.tick() {
				switch {
				case f.ID == 0x1CEC2180|can.EFF && f.Data[0] == 16:
					if [8]byte(f.Data[:8]) != [8]byte{16, 23, 0, 4, 16, 0x11, 0xFF, 0} {
						t.Errorf("%s: requested by % X", c.name, f.Data[:8])
					}
					toNode++
					r.sendData(0x1CEC8021, 17, 4, 1, 255, 255, 0x11, 0xFF, 0)
				case f.ID == 0x1CEB2180|can.EFF:
					if data = append(data, f.Data[1:8]...); f.Data[0] == 4 {
						r.sendData(0x1CEC8021, 19, 23, 0, 4, 255, 0x11, 0xFF, 0)
					}
				case f.ID == 0x1CECFF80|can.EFF && f.Data[0] == 32:
					toAll++
				}
			}
		}
		if toNode != c.toNode || toAll != c.toAll || len(data) != 28*c.toNode {
			t.Errorf("%s: %d announced to the node and %d to all, %d bytes; want %d and %d", c.name, toNode, toAll, len(data), c.toNode, c.toAll)
		}
		if got := r.port.Counts().Messages; got.Broken != 0 || got.Sent != uint64(c.toNode) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// The request comes just before the cycle is due: the node gets the message, and all others too.
func TestRequestDoesNotReplaceTheMessageOfTheCycle(t *testing.T) {
	r := startRig(t, longBench(t))
	toNode, toAll := 0, 0
	for k := range 60 {
		if k == 49 { // LongSpeeds is due at tick 50
			r.request(0x80, 0xFF11)
		}
		for _, f := range r.tick() {
			switch {
			case f.ID == 0x1CEC2180|can.EFF && f.Data[0] == 16:
				toNode++
			case f.ID == 0x1CECFF80|can.EFF && f.Data[0] == 32:
				toAll++
			}
		}
	}
	if toNode != 1 || toAll != 1 {
		t.Errorf("%d announced to the node and %d to all", toNode, toAll)
	}
}

// LongAnswer is for address 3. Another node requests it: SAE J1939-21 has the answer go to the requester.
func TestDirectedGroupIsAnsweredToItsRequester(t *testing.T) {
	r := startRig(t, longBench(t))
	r.request(0x80, 0xEF00)
	toNode := 0
	for range 5 {
		toNode += count(r.tick(), 0x1CEC2180)
	}
	if toNode != 1 {
		t.Errorf("%d announced to the requester", toNode)
	}
}

// A bus that takes nothing, as while its interface is down, costs a bounded queue.
func TestFramesThatTheBusDoesNotTakeAreBoundedAndCounted(t *testing.T) {
	p, err := port.New(startRig(t, longBench(t)).h, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000
	for i := range n {
		p.Queue(can.Frame{}, int64(i))
	}
	queued := p.Queued()
	p.Flush(n, func(*can.Frame) bool { return false })
	if p.Queued() != queued || queued > 1<<10 || p.Counts().Dropped != uint64(n-queued) {
		t.Errorf("%d of %d frames wait, %+v", queued, n, p.Counts())
	}
}
