package diagnosis

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
)

// answerOn answers each frame with an identifier on the other end of a pair by further frames: identifier, then data.
func answerOn(other *os.File, id uint32, answer func(data []byte) [][]byte) {
	b := make([]byte, 72)
	for {
		n, err := other.Read(b)
		if err != nil {
			return
		}
		if n != 16 || binary.NativeEndian.Uint32(b) != id|can.EFF {
			continue
		}
		for _, a := range answer(slices.Clone(b[8 : 8+b[4]])) {
			f := make([]byte, 16)
			copy(f, a[:4])
			f[4] = byte(len(a) - 4)
			copy(f[8:], a[4:])
			_, _ = other.Write(f)
		}
	}
}

// Without a bench: a unit on SAE J1939 answers with a group of two packets, and acknowledges twice. The acknowledgement
// too many ends no command.
func TestAloneTheUnitOnJ1939Answers(t *testing.T) {
	s := parse(t, truckFile)
	ours, other, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	bus, err := can.Inherit(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	frame := func(id uint32, data ...byte) []byte {
		return append(binary.NativeEndian.AppendUint32(nil, id|can.EFF), data...)
	}
	ack := frame(0x18E8FF03, 0, 0xFF, 0xFF, 0xFF, 0xF9, 0xD3, 0xFE, 0)
	go answerOn(other, 0x18EA03F9, func(data []byte) [][]byte {
		if data[0] == 0xD3 {
			return [][]byte{ack, ack}
		}
		return [][]byte{frame(0x1CECF903, 16, 10, 0, 2, 0xFF, 0xCB, 0xFE, 0), frame(0x1CEBF903, 1, 4, 0xFF, 191, 0, 19, 2, 0xFF),
			frame(0x1CEBF903, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)}
	})

	st, err := NewStation(s)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, words := range [][]string{{"dm", "11"}, {"dm", "2"}} {
		j, err := s.ParseCommand(words, false)
		if err == nil {
			err = st.Add(j)
		}
		if err == nil {
			err = pump(st, bus, func(o Outcome) { shown = append(shown, fmt.Sprint(strings.Join(o.Lines, "; "), o.Err)) }, nil)
		}
		if err != nil {
			t.Errorf("%v: %v", words, err)
		}
	}
	slices.Sort(shown)
	want := []string{"amber warning lamp on; output_speed: SPN 191 FMI 19, 2 times (output shaft speed invalid)<nil>", "cleared<nil>",
		"the unit sent an acknowledgement of PGN 0xFED3, for which no request was open"}
	slices.Sort(want)
	if !slices.Equal(shown, want) {
		t.Errorf("%q\nwant %q", shown, want)
	}
}
