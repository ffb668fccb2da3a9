package hostinfo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxCPUs is the largest number of CPUs that a kernel can be built for (NR_CPUS).
const MaxCPUs = 8192

// ParseCPUs parses a list of CPUs as the kernel writes it, "0-2,5", sorted and without repetition.
// An empty text, and "(null)", which some kernels print for it, give no CPUs.
func ParseCPUs(text string) ([]int, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "(null)" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, span := strings.Cut(part, "-")
		first, err := strconv.ParseUint(lo, 10, 31)
		last := first
		if err == nil && span {
			last, err = strconv.ParseUint(hi, 10, 31)
		}
		if err != nil || last < first || last >= MaxCPUs {
			return nil, fmt.Errorf("hostinfo: invalid list of CPUs %q: use numbers below %d, like 0-2,5", text, MaxCPUs)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, int(cpu))
		}
		if len(list) > 2*MaxCPUs {
			return nil, fmt.Errorf("hostinfo: invalid list of CPUs: too many repetitions")
		}
	}

	slices.Sort(list)
	return slices.Compact(list), nil
}

// ParseMask parses a hexadecimal set of CPUs as the kernel writes it: words of 32 bits, separated
// by commas, the highest first.
func ParseMask(text string) ([]int, error) {
	digits := strings.ReplaceAll(strings.TrimSpace(text), ",", "")
	if digits == "" || len(digits) > MaxCPUs/4 {
		return nil, fmt.Errorf("hostinfo: invalid mask of CPUs %q: use 1 to %d hexadecimal digits", text, MaxCPUs/4)
	}
	var list []int
	for i := range len(digits) {
		value, err := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 4)
		if err != nil {
			return nil, fmt.Errorf("hostinfo: invalid mask of CPUs %q: use hexadecimal digits", text)
		}
		for bit := range 4 {
			if value&(1<<bit) != 0 {
				list = append(list, 4*i+bit)
			}
		}
	}

	return list, nil
}

// FormatCPUs writes sorted CPUs as the kernel does: "0-2,5".
func FormatCPUs(list []int) string {
	var text strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(list[i]))
		if j > i {
			text.WriteString("-" + strconv.Itoa(list[j]))
		}
		i = j + 1
	}

	return text.String()
}

// FormatMask writes sorted CPUs in the form that ParseMask reads.
func FormatMask(list []int) string {
	words := make([]uint32, slices.Max(append(list, 0))/32+1)
	for _, cpu := range list {
		words[cpu/32] |= 1 << (cpu % 32)
	}
	text := strconv.FormatUint(uint64(words[len(words)-1]), 16)
	for _, word := range slices.Backward(words[:len(words)-1]) {
		text += fmt.Sprintf(",%08x", word)
	}
	return text
}

// CommonCPUs returns the elements of a that are also in b.
func CommonCPUs(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return !slices.Contains(b, c) })
}

// CPUsWithout returns the elements of a that are not in b.
func CPUsWithout(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return slices.Contains(b, c) })
}
