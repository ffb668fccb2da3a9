//go:build long

package interop

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/isotp"
	"lockstep/sched"
)

// isotpPeer is the program isotp_peer.py.
type isotpPeer struct {
	t     *testing.T
	in    *json.Encoder
	lines chan map[string]json.RawMessage
}

// peerFrame is a frame as the program prints it: identifier, data, FD.
type peerFrame [3]any

func startISOTPPeer(t *testing.T) *isotpPeer {
	t.Helper()
	folder := filepath.Join(peersFolder(t), "python-can-isotp")
	if commit, err := exec.Command("git", "-C", folder, "log", "-1", "--format=%H of %cs").Output(); err == nil {
		t.Logf("can-isotp: commit %s", bytes.TrimSpace(commit))
	}
	cmd := exec.Command("/usr/bin/python3", "isotp_peer.py")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+folder)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := &isotpPeer{t: t, in: json.NewEncoder(in), lines: make(chan map[string]json.RawMessage, 1<<12)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			var line map[string]json.RawMessage
			if json.Unmarshal(s.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
		close(p.lines)
	}()
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	return p
}

func (p *isotpPeer) write(key string, value any) {
	if err := p.in.Encode(map[string]any{key: value}); err != nil {
		p.t.Fatal(err)
	}
}

// exchange serves a link until both messages have arrived, and returns the message received and how the program
// ended: its errors, its messages received.
func (p *isotpPeer) exchange(l *isotp.Link) (received []byte, theirs []string) {
	sent, ourSent := false, false
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		now := sched.Now()
		for f, ok := l.Next(now); ok; f, ok = l.Next(now) {
			p.write("frame", peerFrame{f.ID, hex.EncodeToString(f.Data[:f.Len]), f.FD()})
			l.Sent(now)
		}
		for _, e := range l.Take() {
			switch e.Kind {
			case isotp.Received:
				received = e.Data
			case isotp.Sent:
				ourSent = true
			case isotp.ReceiveFailed, isotp.SendFailed:
				return received, append(theirs, "ours: "+e.Result.String())
			}
		}
		if received != nil && ourSent && sent && len(theirs) > 0 {
			return received, theirs
		}
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatal("the program has ended")
			}
			p.take(line, l, &sent, &theirs)
		case <-time.After(time.Duration(max(0, min(l.Deadline()-now, 1e6)))):
		}
	}
	return received, append(theirs, "ours: no end")
}

// take processes a line of the program.
func (p *isotpPeer) take(line map[string]json.RawMessage, l *isotp.Link, sent *bool, theirs *[]string) {
	switch {
	case line["frame"] != nil:
		var v struct {
			ID   uint32
			Data string
			FD   bool
		}
		if err := json.Unmarshal(line["frame"], &[]any{&v.ID, &v.Data, &v.FD}); err != nil {
			p.t.Fatal(err)
		}
		data, err := hex.DecodeString(v.Data)
		if err != nil {
			p.t.Fatal(err)
		}
		f := can.Frame{ID: v.ID, Len: uint8(len(data))}
		if v.FD {
			f.Flags = can.FlagFDF
		}
		copy(f.Data[:], data)
		l.Receive(&f, sched.Now())
	case line["sent"] != nil:
		*sent = true
	case line["received"] != nil:
		*theirs = append(*theirs, string(bytes.Trim(line["received"], `"`)))
	default:
		*theirs = append(*theirs, string(line["error"]))
	}
}

// Both ends send a message at once, in each addressing, classic and CAN FD, with blocks, separation times and
// padding on either side.
func TestMessagesAreExchangedWithCanIsotp(t *testing.T) {
	p := startISOTPPeer(t)
	random := rand.New(rand.NewPCG(2, 7))
	cases := 0
	for _, a := range []struct {
		mode    string
		ours    isotp.Address
		address map[string]any
	}{
		{"Normal_11bits", isotp.Normal(0x7E1, 0x7E9), map[string]any{"txid": 0x7E9, "rxid": 0x7E1}},
		{"Normal_29bits", isotp.Normal(0x1ABCDEF0|can.EFF, 0x1ABCDEF1|can.EFF), map[string]any{"txid": 0x1ABCDEF1, "rxid": 0x1ABCDEF0}},
		{"NormalFixed_29bits", isotp.NormalFixed(0x10, 0xF1), map[string]any{"target_address": 0xF1, "source_address": 0x10}},
		{"Extended_11bits", isotp.Extended(0x6F1, 0x612, 0x12, 0xF1), map[string]any{"txid": 0x612, "rxid": 0x6F1, "target_address": 0xF1, "source_address": 0x12}},
		{"Extended_29bits", isotp.Extended(0x1A0006F1|can.EFF, 0x1A000612|can.EFF, 0x12, 0xF1), map[string]any{"txid": 0x1A000612, "rxid": 0x1A0006F1, "target_address": 0xF1, "source_address": 0x12}},
		{"Mixed_11bits", isotp.Mixed(0x700, 0x701, 0x55), map[string]any{"txid": 0x701, "rxid": 0x700, "address_extension": 0x55}},
		{"Mixed_29bits", isotp.MixedFixed(0x10, 0xF1, 0x55), map[string]any{"target_address": 0xF1, "source_address": 0x10, "address_extension": 0x55}},
	} {
		for _, length := range []uint8{8, 12, 64} {
			for _, size := range []int{1, 6, 7, 8, 11, 62, 63, 400, 4095, 5000} {
				c := isotp.Config{Address: a.ours, FD: length > 8 || random.IntN(2) == 0, Length: length, Pad: random.IntN(2) == 0, PadByte: 0xAA,
					BlockSize: uint8(random.IntN(10)), STmin: []uint8{0, 1, 0xF5}[random.IntN(3)], MaxMessage: 10000}
				params := map[string]any{"can_fd": c.FD, "tx_data_length": int(length), "blocksize": random.IntN(10), "stmin": []int{0, 1, 0xF4}[random.IntN(3)],
					"max_frame_size": 10000, "rx_flowcontrol_timeout": 10000, "rx_consecutive_frame_timeout": 10000}
				c.Bs, c.Cr = 10e9, 10e9
				if random.IntN(2) == 0 {
					params["tx_padding"] = 0x55
				}
				l, err := isotp.NewLink(c)
				if err != nil {
					t.Fatal(err)
				}
				ours, theirs := make([]byte, size), make([]byte, 1+random.IntN(5000))
				for _, data := range [][]byte{ours, theirs} {
					for i := range data {
						data[i] = byte(random.Uint32())
					}
				}
				p.write("case", map[string]any{"mode": a.mode, "address": a.address, "params": params})
				p.write("send", hex.EncodeToString(theirs))
				if err := l.Send(ours, sched.Now()); err != nil {
					t.Fatal(err)
				}
				received, said := p.exchange(l)
				name := fmt.Sprintf("%s, frames of %d, FD %t, %d and %d bytes, %+v", a.mode, length, c.FD, len(ours), len(theirs), params)
				if !bytes.Equal(received, theirs) {
					t.Fatalf("%s: received %d bytes that are not those sent; %.200q", name, len(received), said)
				}
				if len(said) != 1 || said[0] != hex.EncodeToString(ours) {
					t.Fatalf("%s: can-isotp says %.200q", name, said)
				}
				cases++
			}
		}
	}
	t.Logf("%d exchanges", cases)
}
