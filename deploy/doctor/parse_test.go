package doctor

import (
	"fmt"
	"testing"
)

// stat returns a line of /proc/PID/stat.
func stat(pid int, name string, priority, policy int) string {
	return fmt.Sprintf("%d (%s) S 2 0 0 0 -1 69238848 0 0 0 0 0 41 0 0 -51 0 1 0 60 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 %d %d 0 0 0 0 0 0 0 0 0 0 0",
		pid, name, priority, policy)
}

func TestParseInterruptsReadsX86AndARM(t *testing.T) {
	x86 := `            CPU0       CPU3
   8:          0          0  IO-APIC   8-edge      rtc0
 127:         12         99  PCI-MSIX-0000:02:00.0   1-edge      enp2s0-rx-0, enp2s0-tx-0
 NMI:          1          2   Non-maskable interrupts
 ERR:          0
`
	list := parseInterrupts(x86)
	if len(list) != 2 || list[1].number != "127" || list[1].counts[3] != 99 || list[1].counts[0] != 12 || list[1].actions != "enp2s0-rx-0, enp2s0-tx-0" {
		t.Errorf("x86: %+v", list)
	}
	arm := `           CPU0       CPU1
 11:         90         81     GICv2  30 Level     arch_timer
 39:         30          0     GICv2 189 Level     eth0
IPI0:        91         71       Rescheduling interrupts
Err:          0
`
	if list = parseInterrupts(arm); len(list) != 1 || list[0].number != "39" || list[0].actions != "eth0" {
		t.Errorf("ARM, without its timer: %+v", list)
	}
}

func FuzzInterrupts(f *testing.F) {
	f.Add("     CPU0 CPU1\n 24: 1 0 IO-APIC 5-edge ACPI:Ged\n 11: 1 2 GICv2 30 Level arch_timer\nLOC: 1 2 Local timer\n")
	f.Add("CPU0\n1:\n2: 1\n3: 1 \n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, i := range parseInterrupts(text) {
			if i.number == "" || len(i.counts) == 0 {
				t.Fatalf("%q: %+v", text, i)
			}
		}
	})
}
