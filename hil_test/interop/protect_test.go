package interop

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
)

// checksums runs checksums.py. It skips the test if crccheck is missing.
func checksums(t *testing.T, in []byte, args ...string) []byte {
	t.Helper()
	if exec.Command("/usr/bin/python3", "-c", "import crccheck").Run() != nil {
		lab.Skip(t, "python3-crccheck is missing: apt-get install python3-crccheck")
	}
	cmd := exec.Command("/usr/bin/python3", append([]string{"checksums.py"}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("checksums.py: %v\n%s", err, out)
	}
	return out
}

// checkedFrame is a frame with the checksum that lockstep computes.
type checkedFrame struct {
	name, data string
	checksum   uint64
	request    map[string]any // input of checksums.py
}

// compareChecksums compares the checksums of all frames with checksums.py.
func compareChecksums(t *testing.T, frames []checkedFrame) {
	t.Helper()
	var in bytes.Buffer
	for _, f := range frames {
		if err := json.NewEncoder(&in).Encode(f.request); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Fields(string(checksums(t, in.Bytes())))
	if len(lines) != len(frames) {
		t.Fatalf("%d checksums of %d frames", len(lines), len(frames))
	}
	for i, f := range frames {
		if want := fmt.Sprint(f.checksum); lines[i] != want {
			t.Fatalf("%s: %s: checksum %s by crccheck, %s by lockstep", f.name, f.data, lines[i], want)
		}
	}
	t.Logf("%d frames agree", len(frames))
}

// number returns the little-endian number of the first n bytes.
func number(data []byte, n int) (v uint64) {
	for i := range n {
		v |= uint64(data[i]) << (8 * i)
	}
	return v
}

// noise returns a frame with n random bytes.
func noise(r *rand.Rand, n int) (data [64]byte) {
	for i := range n {
		data[i] = byte(r.Uint32())
	}
	return data
}

func TestCRCsAgreeWithCRCCheckOnItsWholeCatalogue(t *testing.T) {
	var list []struct {
		Name       string
		Width      int
		Poly, Init uint64
		XOR        uint64 `json:"xor"`
		Reflect    bool
	}
	if err := json.Unmarshal(checksums(t, nil, "catalogue"), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("%d CRCs in the catalogue, want at least 50", len(list))
	}
	r := rand.New(rand.NewPCG(1, 1))
	var frames []checkedFrame
	for _, c := range list {
		for range 150 {
			n := []int{4, 8, 12, 32, 64}[r.IntN(5)]
			size := c.Width / 8
			if n <= size {
				n = 12
			}
			p, err := sigmap.NewProtection(sigmap.ProtectionSpec{
				Profile: fmt.Sprint("crc", c.Width), Poly: c.Poly, Init: c.Init, XorOut: c.XOR, Reflect: c.Reflect,
				Checksum: []string{fmt.Sprintf("%d|%d", 8*(n-size), c.Width)},
			}, &messages.Message{Name: c.Name, Len: n})
			if err != nil {
				t.Fatal(err)
			}
			data := noise(r, n)
			p.Protect(&data, n, 0)
			text := hex.EncodeToString(data[:n-size])
			frames = append(frames, checkedFrame{c.Name, text, number(data[n-size:], size), map[string]any{"crc": c.Name, "data": text}})
		}
	}
	compareChecksums(t, frames)
}

func TestProfilesAgreeWithCRCCheck(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var frames []checkedFrame
	for _, name := range sigmap.Profiles() {
		if !strings.HasPrefix(name, "e2e-") {
			continue
		}
		// at, header: place of the checksum and length of all numbers, bytes
		size, at, header, many, limit, values := 1, 0, 2, 1, uint64(0x10000), uint64(15)
		switch name {
		case "e2e-4", "e2e-44":
			size, at, header, limit, values = 4, 8, 12, 1<<32, 1<<16
		case "e2e-6":
			size, header, values = 2, 5, 256
		case "e2e-7":
			size, header, limit, values = 8, 20, 1<<32, 1<<32
		case "e2e-8":
			size, header, limit, values = 4, 16, 1<<32, 1<<32
		case "e2e-5":
			size, header, values = 2, 3, 256
		case "e2e-2", "e2e-22":
			many, limit, values = 16, 0x100, 16
		case "e2e-1c", "e2e-11c":
			limit = 0x1000
		}
		for range 400 {
			n := []int{4, 8, 12, 16, 24, 32, 64}[r.IntN(7)]
			if n < header {
				continue
			}
			spec := sigmap.ProtectionSpec{Profile: name, Offset: r.IntN(n - header + 1)}
			for range many {
				spec.DataIDs = append(spec.DataIDs, uint32(r.Uint64N(limit)))
			}
			p, err := sigmap.NewProtection(spec, &messages.Message{Name: name, Len: n})
			if err != nil {
				t.Fatal(err)
			}
			p.Next = r.Uint64N(values)
			counter := p.Next
			data := noise(r, n)
			p.Protect(&data, n, 0)
			text := hex.EncodeToString(data[:n])
			place := data[spec.Offset+at : spec.Offset+at+size]
			if p.Checksum.Part[0].Big {
				slices.Reverse(place)
			}
			frames = append(frames, checkedFrame{name, text, number(place, size),
				map[string]any{"profile": name, "ids": spec.DataIDs, "counter": counter, "offset": spec.Offset, "data": text}})
		}
	}
	compareChecksums(t, frames)
}
