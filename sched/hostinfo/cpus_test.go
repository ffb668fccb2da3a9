package hostinfo

import (
	"slices"
	"testing"
)

func TestParseCPUsReadsTheListsOfTheKernel(t *testing.T) {
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
		got, err := ParseCPUs(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestParseMaskReadsTheMasksOfTheKernel(t *testing.T) {
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
		got, err := ParseMask(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestParseMaskReadsTheOutputOfFormatMask(t *testing.T) {
	for _, list := range [][]int{{0}, {0, 2}, {3, 31}, {0, 32}, {5, 63, 64, 127}} {
		if got, err := ParseMask(FormatMask(list)); err != nil || !slices.Equal(got, list) {
			t.Errorf("%v is written %s and read %v, %v", list, FormatMask(list), got, err)
		}
	}
	if got := FormatMask([]int{0, 32}); got != "1,00000001" {
		t.Errorf("two words: %s", got)
	}
}

func FuzzCPUs(f *testing.F) {
	for _, seed := range []string{"0-3", "0-2,5", "(null)", "0-8191", "1,1-3,2", "-", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseCPUs(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(list) || len(list) > MaxCPUs || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Fatalf("%q: %v", text, list)
		}
		again, err := ParseCPUs(FormatCPUs(list))
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
		list, err := ParseMask(text)
		if err == nil && (!slices.IsSorted(list) || len(list) > 0 && slices.Max(list) >= MaxCPUs) {
			t.Fatalf("%q: %v", text, list)
		}
	})
}
