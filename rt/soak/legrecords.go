package soak

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/rt/report"
)

// recordOf is the file of a leg's record; "" there is none.
func (k *legs) recordOf(l *leg) string {
	if k.o.Record == "" || k.records != "" {
		return ""
	}
	file := filepath.Join(k.o.Record, fmt.Sprintf("leg-%06d.rec", l.number))
	f, err := os.Create(file)
	if err != nil {
		k.noRecords(err.Error())
		return ""
	}
	f.Close()
	return file
}

// noRecords ends recording: a soak does not end for want of room.
func (k *legs) noRecords(why string) {
	k.records = why
	k.say("soak: record: %s; it goes on without records\n", why)
}

// recorded keeps the latest records and, under another name, those of broken legs.
func (k *legs) recorded(v *report.Report) {
	if v.Record == "" {
		return
	}
	if v.Trouble != "" {
		k.noRecords(v.Trouble)
		_ = os.Remove(v.Record) // it is incomplete, and takes room
		return
	}
	if !v.Soak.Pass {
		_ = os.Rename(v.Record, strings.TrimSuffix(v.Record, ".rec")+"-broken.rec")
	}
	for _, pattern := range []string{"leg-[0-9][0-9][0-9][0-9][0-9][0-9].rec", "leg-*-broken.rec"} {
		list, _ := filepath.Glob(filepath.Join(k.o.Record, pattern))
		oldestFirst(list) // a soak before this one may have left some of higher numbers
		for len(list) > max(1, k.soak.Keep) {
			_ = os.Remove(list[0])
			list = list[1:]
		}
	}
}

// oldestFirst sorts files by the time at which they were last written.
func oldestFirst(files []string) {
	when := map[string]int64{}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			when[file] = info.ModTime().UnixNano()
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(when[a], when[b]), cmp.Compare(a, b)) })
}
