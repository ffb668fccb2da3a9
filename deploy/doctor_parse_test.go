package deploy

import (
	"fmt"
	"slices"
	"testing"
)

// stat is a line of /proc/PID/stat.
func stat(pid int, name string, priority, policy int) string {
	return fmt.Sprintf("%d (%s) S 2 0 0 0 -1 69238848 0 0 0 0 0 41 0 0 -51 0 1 0 60 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 %d %d 0 0 0 0 0 0 0 0 0 0 0",
		pid, name, priority, policy)
}

func TestListsOfCPUsAreReadAsTheKernelWritesThem(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
		ok   bool
	}{
		{"0-3\n", []int{0, 1, 2, 3}, true},
		{"0-2,5", []int{0, 1, 2, 5}, true},
		{"7", []int{7}, true},
		{"", nil, true},
		{" \n", nil, true},
		{"(null)", nil, true},
		{"5,0-1,5", []int{0, 1, 5}, true},
		{"3-1", nil, false},
		{"0-4294967295", nil, false},
		{"8192", nil, false},
		{"a", nil, false},
		{"-1", nil, false},
		{"0,,1", nil, false},
	} {
		got, err := parseCPUs(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestMasksOfCPUsAreReadAsTheKernelWritesThem(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
		ok   bool
	}{
		{"f\n", []int{0, 1, 2, 3}, true},
		{"00000001,00000000", []int{32}, true},
		{"80000001", []int{0, 31}, true},
		{"0", nil, true},
		{"", nil, false},
		{"0x3", nil, false},
	} {
		got, err := parseMask(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestTheNameInAStatLineMayHoldAnything(t *testing.T) {
	for _, name := range []string{"ktimers/3", "a) S 1 (b", "", " ", "((", "irq/129-kvaser_"} {
		got, err := parseStat(stat(42, name, 50, schedFIFO))
		if err != nil || got.name != name || got.pid != 42 || got.priority != 50 || got.policy != schedFIFO {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

func TestInterruptsAreReadOfX86AndARM(t *testing.T) {
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

func TestVersionsOfKernelsAreCompared(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-40-rt-amd64": false, "6.11.9": false, "6.12.0": true, "6.12.47+rpt-rpi-v8-rt": true, "6.12-rc1": true, "7.0.1": true, "5.15": false, "": false, "x.y": false,
	} {
		if got := (&host{release: release}).atLeast(6, 12); got != want {
			t.Errorf("%q at least 6.12: %t", release, got)
		}
	}
}

func FuzzCPUs(f *testing.F) {
	for _, seed := range []string{"0-3", "0-2,5", "(null)", "0-8191", "1,1-3,2", "-", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseCPUs(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(list) || len(list) > maxCPUs || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Fatalf("%q: %v", text, list)
		}
		again, err := parseCPUs(formatCPUs(list))
		if err != nil || !slices.Equal(list, again) {
			t.Fatalf("%q: %v, written and read again %v, %v", text, list, again, err)
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{"f", "00000001,00000000", "ff,ffffffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseMask(text)
		if err == nil && (!slices.IsSorted(list) || len(list) > 0 && slices.Max(list) >= maxCPUs) {
			t.Fatalf("%q: %v", text, list)
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add(stat(42, "ktimers/3", 1, 1))
	f.Add(stat(1, "a) (b", 0, 0))
	f.Add("1 (")
	f.Add(") 1 (")
	f.Fuzz(func(t *testing.T, text string) {
		if thread, err := parseStat(text); err != nil && thread.name != "" {
			t.Fatalf("%q: %+v with error %v", text, thread, err)
		}
	})
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
