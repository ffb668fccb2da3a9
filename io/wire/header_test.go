package wire

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// C fills the last field of each part; Go must read the values from the same places.
func TestHeaderHasTheLayout(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler cc")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "image.c"), filepath.Join(dir, "image")
	const text = `#include <stdio.h>
#include "wire.h"
int main(void) {
	struct wire_image m = {.magic = WIRE_MAGIC, .version = WIRE_VERSION, .size = WIRE_SIZE,
		.counter = 1, .tick = -2, .age = 3, .digital = 4};
	m.analog[31] = 5;
	m.pwm[15] = (struct wire_pwm){6, 7};
	m.wheel[7] = (struct wire_wheel){8, 9, 10, 11, 12, 13, 14, 15, -1, 0x101, WIRE_SHORT_TO_SUPPLY, 0};
	return fwrite(&m, sizeof m, 1, stdout) != 1;
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-Wall", "-Werror", "-Ic", "-o", program, source, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := Image{Counter: 1, Tick: -2, Age: 3, Digital: 4}
	m.Analog[31], m.PWM[15], m.Wheel[7] = 5, PWM{6, 7}, Wheel{8, 9, 10, 11, 12, 13, 14, 15, -1, 0x101, ShortToSupply}
	var want [Size]byte
	if m.Encode(&want); !bytes.Equal(got, want[:]) {
		t.Error("the image of C differs from the image of Go")
	}
}

func TestTheDriverOfLinuxPartsCompiles(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler cc")
	}
	out, err := exec.Command(cc, "-O1", "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(t.TempDir(), "box"), "c/linux_box.c", "-lm").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
