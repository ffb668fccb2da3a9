package j1939

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"lockstep/io/can"
)

// asked is a tester with the address 0xF9 that has asked the node 0x03 for a group at 0 s.
func asked(t *testing.T, pgn uint32, clears bool) *Inquirer {
	t.Helper()
	q := &Inquirer{Address: 0xF9, Node: 3}
	q.Request(pgn, clears, 0)
	f, ok := q.Next(0)
	if want := (can.Frame{ID: 0x18EA03F9 | can.EFF, Len: 3, Data: f.Data}); !ok || f != want || pgnAt(f.Data[:]) != pgn {
		t.Fatalf("request %+v, %v", f, ok)
	}
	q.Sent(0)
	return q
}

func frameOf(id uint32, data ...byte) *can.Frame {
	f := &can.Frame{ID: id | can.EFF, Len: uint8(len(data))}
	copy(f.Data[:], data)
	return f
}

func TestInquirerTakesTheAnswerOfItsNode(t *testing.T) {
	none := []byte{0, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF}
	q := asked(t, PGNDM1, false)
	for _, f := range []*can.Frame{
		frameOf(0x18FECA04, none...),                                  // of another node
		frameOf(0x18FECB03, none...),                                  // another group
		frameOf(0x18E8FF03, 1, 0xFF, 0xFF, 0xFF, 0x80, 0xCA, 0xFE, 0), // meant for another tester
	} {
		q.Receive(f, 1e6)
		if a, done := q.Done(); done {
			t.Fatalf("%+v ends the request: %+v", f, a)
		}
	}
	q.Receive(frameOf(0x18FECA03, none...), 2e6)
	if a, done := q.Done(); !done || a.Err != nil || !bytes.Equal(a.Data, none) || a.At != 2e6 {
		t.Errorf("%+v, %v", a, done)
	}
	q.Receive(frameOf(0x18FECA03, 4, 0xFF, 1, 0, 0, 1, 0xFF, 0xFF), 3e6) // the next DM1 changes no answer
	if a, _ := q.Done(); a.At != 2e6 {
		t.Errorf("%+v", a)
	}
}

// Twelve bytes to all, and to the tester alone after its "clear to send".
func TestInquirerTakesAnswersOfSeveralFrames(t *testing.T) {
	want := []byte{0, 0xFF, 0xB8, 4, 3, 10, 0xB9, 4, 3, 10}
	for _, to := range []uint32{0xFF, 0xF9} {
		q := asked(t, PGNDM2, false)
		control := byte(controlBAM)
		if to != 0xFF {
			control = controlRTS
		}
		q.Receive(frameOf(0x1CEC0003|to<<8, control, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0), 10e6)
		if f, ok := q.Next(10e6); ok != (to != 0xFF) || ok && f.Data[0] != controlCTS {
			t.Errorf("%02X: %+v, %v", to, f, ok)
		}
		q.Receive(frameOf(0x1CEB0003|to<<8, append([]byte{1}, want[:7]...)...), 700e6)
		q.Poll(1270e6) // the time begins again with each packet
		q.Receive(frameOf(0x1CEB0003|to<<8, append([]byte{2}, append(want[7:10:10], 0xFF, 0xFF, 0xFF, 0xFF)...)...), 1300e6)
		if a, done := q.Done(); !done || a.Err != nil || !bytes.Equal(a.Data, want) {
			t.Errorf("%02X: %+v, %v", to, a, done)
		}
	}
}

func TestInquirerEndsEveryRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		clears bool
		frames []*can.Frame
		want   string // "": no error
	}{
		{"acknowledged", true, []*can.Frame{frameOf(0x18E8FF03, 0, 0xFF, 0xFF, 0xFF, 0xF9, 0xCA, 0xFE, 0)}, ""},
		{"refused", true, []*can.Frame{frameOf(0x18E8FF03, 1, 0xFF, 0xFF, 0xFF, 0xF9, 0xCA, 0xFE, 0)}, "the unit refuses it: negative acknowledgement"},
		{"busy", false, []*can.Frame{frameOf(0x18E8F903, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0xCA, 0xFE, 0)}, "the unit refuses it: cannot respond"},
		{"silent", false, nil, "the unit does not answer within 1250 ms"},
		{"the group for a clear", true, []*can.Frame{frameOf(0x18FECA03, 0, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF)}, "the unit does not answer within 1250 ms"},
		{"a packet is missing", false, []*can.Frame{frameOf(0x1CECFF03, controlBAM, 10, 0, 2, 0xFF, 0xCA, 0xFE, 0), frameOf(0x1CEBFF03, 2, 0, 0, 0, 0, 0, 0, 0)},
			"the answer was not complete: a packet did not come, or came out of its order"},
		{"the answer is aborted", false, []*can.Frame{frameOf(0x1CECF903, controlRTS, 10, 0, 2, 0xFF, 0xCA, 0xFE, 0), frameOf(0x1CECF903, controlAbort, 3, 0xFF, 0xFF, 0xFF, 0xCA, 0xFE, 0)},
			"the unit aborts its answer: reason 3"},
		{"too many packets", false, []*can.Frame{frameOf(0x1CECFF03, controlBAM, 10, 0, 5, 0xFF, 0xCA, 0xFE, 0)},
			"the unit announces 10 bytes in 5 packets; a message has 9 to 1785 bytes, 7 in each packet"},
		{"a short acknowledgement", true, []*can.Frame{frameOf(0x18E8FF03, 0, 0xFF, 0xFF)}, "the unit sends an acknowledgement of 3 bytes, want 8"},
		{"another control byte", true, []*can.Frame{frameOf(0x18E8FF03, 9, 0xFF, 0xFF, 0xFF, 0xF9, 0xCA, 0xFE, 0)},
			"the unit sends an acknowledgement with the control byte 9, want 0 to 3"},
	} {
		q := asked(t, PGNDM1, c.clears)
		for _, f := range c.frames {
			q.Receive(f, 1e6)
		}
		at, open := q.Deadline()
		if open {
			q.Poll(at - 1)
			if a, done := q.Done(); done {
				t.Errorf("%s: %+v before its time", c.name, a)
			}
			q.Poll(at)
		}
		a, done := q.Done()
		if !done || (a.Err == nil) != (c.want == "") || a.Err != nil && a.Err.Error() != c.want {
			t.Errorf("%s: %+v, %v", c.name, a, done)
		}
		if silent := strings.HasPrefix(c.want, "the unit does not answer"); errors.Is(a.Err, ErrSilent) != silent {
			t.Errorf("%s: %v", c.name, a.Err)
		}
	}
}

// A unit that announces its answer every second and sends no packet ends after a minute.
func TestEndlessAnnouncementEndsTheRequest(t *testing.T) {
	q := asked(t, PGNDM2, false)
	for now := int64(0); now < 70e9; now += 1e9 {
		q.Receive(frameOf(0x1CECF903, controlRTS, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0), now)
		q.Poll(now)
		for _, ok := q.Next(now); ok; _, ok = q.Next(now) {
			q.Sent(now)
		}
	}
	if a, done := q.Done(); !done || a.At != 60e9 || a.Err == nil || !strings.Contains(a.Err.Error(), "not complete within 60 s") {
		t.Errorf("%+v, %v", a, done)
	}
}

// A packet of the answer is lost, and the node then goes on with other messages: the request ends nevertheless.
func TestInquirerEndsARequestWhileItsNodeSendsOtherMessages(t *testing.T) {
	q := asked(t, PGNDM2, false)
	q.Receive(frameOf(0x1CECFF03, controlBAM, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0), 10e6)
	q.Receive(frameOf(0x1CEBFF03, 1, 0, 0, 0, 0, 0, 0, 0), 70e6) // the second packet is lost
	for at := int64(500e6); at <= 5000e6; at += 500e6 {
		q.Receive(frameOf(0x1CECFF03, controlBAM, 10, 0, 2, 0xFF, 0xCA, 0xFE, 0), at)
		q.Receive(frameOf(0x1CEBFF03, 1, 0, 0, 0, 0, 0, 0, 0), at+60e6)
		q.Receive(frameOf(0x1CEBFF03, 2, 0, 0, 0, 0, 0, 0, 0), at+120e6)
		q.Poll(at + 200e6)
	}
	if a, done := q.Done(); !done || a.Err == nil || a.At > 2000e6 {
		t.Errorf("%+v, %v", a, done)
	}
}

// A request that the bus has not taken is dropped: it does not go out later.
func TestRequestThatWasNotSentIsDropped(t *testing.T) {
	q := &Inquirer{Address: 0xF9, Node: 3}
	q.Request(PGNDM11, true, 0)
	q.Poll(AnswerTime)
	if a, done := q.Done(); !done || a.Err == nil || a.Err.Error() != "the request was not sent: the bus takes no frame within 1250 ms" {
		t.Errorf("%+v, %v", a, done)
	}
	if f, ok := q.Next(AnswerTime); ok {
		t.Errorf("%+v still waits", f)
	}
}

// The second of two acknowledgements has no request.
func TestSecondAcknowledgementIsAStray(t *testing.T) {
	q := asked(t, PGNDM11, true)
	for range 2 {
		q.Receive(frameOf(0x18E8FF03, 0, 0xFF, 0xFF, 0xFF, 0xF9, 0xD3, 0xFE, 0), 1e6)
	}
	if a, done := q.Done(); !done || a.Err != nil {
		t.Errorf("%+v, %v", a, done)
	}
	const want = "the unit sent an acknowledgement of PGN 0xFED3, for which no request was open"
	if list := q.Strays(); len(list) != 1 || list[0].Err.Error() != want || len(q.Strays()) != 0 {
		t.Errorf("%+v", list)
	}
}

// The node begins an answer and falls silent; its answer to the next request is not refused as a second session.
func TestInquirerAbortsAnUnfinishedAnswerBeforeTheNextRequest(t *testing.T) {
	q := asked(t, PGNDM4, false)
	q.Receive(frameOf(0x1CECF903, controlRTS, 10, 0, 2, 0xFF, 0xCD, 0xFE, 0), 1e6)
	q.Poll(1300e6)
	if a, done := q.Done(); !done || a.Err == nil {
		t.Fatalf("%+v, %v", a, done)
	}
	for _, ok := q.Next(0); ok; _, ok = q.Next(0) {
		q.Sent(1300e6)
	}
	q.Request(PGNDM2, false, 1400e6)
	q.Receive(frameOf(0x1CECF903, controlRTS, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0), 1410e6)
	var controls []byte
	for f, ok := q.Next(0); ok; f, ok = q.Next(0) {
		controls = append(controls, f.Data[0])
		q.Sent(1410e6)
	}
	if want := []byte{controlAbort, 0xCB, controlCTS}; !bytes.Equal(controls, want) {
		t.Errorf("sent % X, want % X", controls, want)
	}
	q.Receive(frameOf(0x1CECF903, controlAbort, 1, 0xFF, 0xFF, 0xFF, 0xCB, 0xFE, 0), 1420e6)
	if a, done := q.Done(); !done || a.Err == nil || a.At != 1420e6 {
		t.Errorf("%+v, %v", a, done)
	}
}

// A group of many codes to all takes longer than the time for an answer; a request may come in its midst.
func TestInquirerWaitsForAGroupThatIsOnItsWay(t *testing.T) {
	q := &Inquirer{Address: 0xF9, Node: 3}
	q.Receive(frameOf(0x1CECFF03, controlBAM, 14, 0, 2, 0xFF, 0xCA, 0xFE, 0), 0)
	q.Request(PGNDM1, false, 100e6)
	for _, at := range []int64{700e6, 1400e6} {
		q.Poll(at)
		q.Receive(frameOf(0x1CEBFF03, byte(at/700e6), 0, 0, 0, 0, 0, 0, 0), at)
	}
	if a, done := q.Done(); !done || a.Err != nil || len(a.Data) != 14 {
		t.Errorf("%+v, %v", a, done)
	}
}
