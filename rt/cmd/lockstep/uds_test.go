package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/rt/diagnosis"
)

// patientKeys are keys of a bench that goes on when this host is stalled: these tests judge answers, not times.
const patientKeys = "overrun: skip 1000\nwatchdog: 60 s"

// diagnosedBench starts automatic-bench on the pair, with a standing car, and returns its name.
func diagnosedBench(t *testing.T) (name string, s *session) {
	t.Helper()
	name = fmt.Sprintf("uds-%d-%s", os.Getpid(), t.Name())
	text, _, _ := lockstep(t, "plants", "automatic-bench")
	bench := write(t, "bench.yaml", strings.NewReplacer("bench: automatic-bench", "bench: "+name, "overrun: skip 200", patientKeys).Replace(text))
	stands := write(t, "stands.yaml", "scenario: stands\nfor: 10 min\nstimuli: {throttle: 0 %, lever: 0, brake.pressure: 30 bar}\n")
	s = begin(t, nil, "run", bench, "-besteffort", "-scenario", stands)
	s.running()
	return name, s
}

// sRecord returns an image at an address as S-records.
func sRecord(address uint32, data []byte) string {
	line := func(kind byte, fields []byte) string {
		sum := byte(len(fields) + 1)
		body := append([]byte{sum}, fields...)
		for _, b := range fields {
			sum += b
		}
		return fmt.Sprintf("S%c%s\n", kind, strings.ToUpper(hex.EncodeToString(append(body, ^sum))))
	}
	text := line('0', []byte{0, 0, 'd', 'a', 'y'})
	for len(data) > 0 {
		n := min(32, len(data))
		text += line('3', append([]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}, data[:n]...))
		address, data = address+uint32(n), data[n:]
	}
	return text + line('7', []byte{0, 0, 0, 0})
}

// The unit takes an image in the programming session, and its checksum is that of the image.
func TestVirtualUnitIsFlashedThroughTheRunningBench(t *testing.T) {
	t.Parallel()
	name, s := diagnosedBench(t)
	image := make([]byte, 3000)
	for i := range image {
		image[i] = byte(i * i >> 3)
	}
	file := write(t, "image.s19", sRecord(0x80000, image))
	if out, errs, code := lockstep(t, "uds", name, "flash", file); code != 1 || !strings.Contains(errs, "negative response 0x") {
		t.Errorf("flash from the default session: code %d, %s%s", code, out, errs)
	}
	out, errs, code := lockstep(t, "uds", name, "session", "extended", "then", "flash", file, "then",
		"routine", "checksum", "start", fmt.Sprintf("00080000%08X", len(image)), "then", "session", "default", "then", "read", "session")
	want := fmt.Sprintf("3000 bytes in 1 segments written\ndone 00 % X\nsession default\n", uint32Bytes(crc32.ChecksumIEEE(image)))
	if code != 0 || !strings.Contains(out, want) || !strings.HasSuffix(out, "session default\n") {
		t.Errorf("code %d, %s\n%swant\n%s", code, errs, out, want)
	}
	lockstep(t, "ctl", name, "stop")
	s.end()
}

func uint32Bytes(v uint32) []byte { return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

// EBC1 is missing: the unit of the truck says so on SAE J1939, through the running bench. Requests and answers are in the
// record and in its export.
func TestTruckTellsItsCodesToTheTester(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("dm-%d", os.Getpid())
	text, _, _ := lockstep(t, "plants", "truck-bench")
	record, log := filepath.Join(t.TempDir(), "t.rec"), filepath.Join(t.TempDir(), "t.mf4")
	s := begin(t, nil, "run", write(t, "bench.yaml", strings.NewReplacer("bench: truck-bench", "bench: "+name, "overrun: skip 100", patientKeys).Replace(text)), "-besteffort", "-record", record)
	s.running()
	asks := func(want string, words ...string) {
		t.Helper()
		if out, errs, code := lockstep(t, append([]string{"uds", name}, words...)...); code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%v: code %d, %s%s; want %s", words, code, out, errs, want)
		}
	}
	const code = "brake_message: SPN 639 FMI 9, 1 times (EBC1 missing)\n"
	asks("no trouble codes\n", "dm", "1")
	lockstep(t, "ctl", name, "fault", "name=lost", "frame=EBC1", "drop")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if out, _, _ := lockstep(t, "uds", name, "dm", "1"); strings.Contains(out, code) {
			break
		}
	}
	asks("amber warning lamp on\n"+code, "dm", "1")
	asks(strings.TrimSuffix(code, "\n")+": freeze frame FF ", "dm", "4") // of several frames
	lockstep(t, "ctl", name, "clear", "lost")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if out, _, _ := lockstep(t, "uds", name, "dm", "2"); strings.Contains(out, code) {
			break
		}
	}
	asks("cleared\nno trouble codes\n", "dm", "3", "then", "dm", "2")
	lockstep(t, "ctl", name, "stop")
	s.end()

	if _, errs, code := lockstep(t, "export", record, "-o", log); code != 0 {
		t.Errorf("export: code %d, %s", code, errs)
	}
	data, err := os.ReadFile(log)
	for _, want := range []string{"uds dm 1; request CA FE 00, answer ", "(EBC1 missing): freeze frame FF ", "uds dm 3; request CC FE 00, answer 00 FF FF FF F9 CC FE 00: cleared"} {
		if err != nil || !bytes.Contains(data, []byte(want)) {
			t.Errorf("MDF4 file: %v, no event %q", err, want)
		}
	}
}

// The door and Python read from the unit what the command reads.
func TestDoorAndPythonDiagnoseTheUnit(t *testing.T) {
	t.Parallel()
	name, s := diagnosedBench(t)
	const vin = `vin "WLS00000000000027"`
	if out, errs, code := lockstep(t, "uds", name, "read", "vin"); code != 0 || out != vin+"\n" {
		t.Errorf("command: code %d, %s%s", code, out, errs)
	}

	body, _ := json.Marshal(diagnosis.UnitRequest{Words: []string{"read", "vin"}})
	answer, err := door(t, name).Post("http://lockstep/uds", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Lines []string
		Error string
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || answer.StatusCode != http.StatusOK || len(got.Lines) != 1 || got.Lines[0] != vin {
		t.Errorf("POST /uds: %s, %+v, %v", answer.Status, got, err)
	}

	folder, _ := filepath.Abs("../../../deploy/python")
	python := exec.Command("python3", "-c", "import sys, lockstep\nbench = lockstep.Bench.attach(sys.argv[1])\nprint(bench.uds('read', 'vin')[0])\n"+
		"try:\n    bench.uds('write', 'vin', 'WLS00000000000028')\nexcept lockstep.BenchError as e:\n    print(e)\n", name)
	python.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
	python.WaitDelay = time.Second
	out, err := python.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), vin+"\n") || !strings.Contains(string(out), "negative response 0x") {
		t.Errorf("Python: %v\n%s", err, out)
	}
	lockstep(t, "ctl", name, "stop")
	s.end()
}

// A supervisor that takes a run over finds the program for keys in the folder of the bench.
func TestKeyProgramIsFoundAfterAttach(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("key-%d", os.Getpid())
	text, _, _ := lockstep(t, "plants", "automatic-bench")
	text = strings.NewReplacer("bench: automatic-bench", "bench: "+name, "overrun: skip 200", patientKeys,
		"diagnosis: automatic-diagnosis.yaml", "diagnosis: tcu.yaml", "supervisor_gone: stop after 1 s", "supervisor_gone: continue").Replace(text)
	bench := write(t, "bench.yaml", text)
	for file, text := range map[string]string{
		"tcu.yaml": "uds: {request: 0x7E1, response: 0x7E9, padding: 0xCC, security: {1: {exec: [./key.sh]}}}\n",
		"key.sh":   "#!/bin/sh\nk=$((0x$2 ^ 0x4C6F636B))\nprintf %08X $((((k << 7 | k >> 25) + 0x5EED) & 0xFFFFFFFF))\n",
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(bench), file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := begin(t, nil, "run", bench, "-besteffort")
	s.running()
	target := s.child("target")
	defer syscall.Kill(target, syscall.SIGKILL)
	unlock := func() {
		t.Helper()
		out, errs, code := lockstep(t, "uds", name, "session", "extended", "then", "unlock", "1")
		if code != 0 || !strings.HasSuffix(out, "unlocked\n") {
			t.Errorf("code %d, %s%s", code, out, errs)
		}
	}
	unlock()
	s.cmd.Process.Kill()
	s.end()
	again := begin(t, nil, "attach", name)
	again.running()
	unlock()
	lockstep(t, "ctl", name, "stop")
	again.end()
}
