// Command tickprotect does to protected frames what a tick does to them, for
// tick_protect_test.go.
package main

import (
	"os"

	"lockstep/io/sigmap"
)

//go:noinline
//go:nosplit
func sends(p *sigmap.Protection, data *[64]byte) {
	p.Protect(data, len(os.Args), 0x100)
}

//go:noinline
//go:nosplit
func judges(p *sigmap.Protection, data *[64]byte) sigmap.Status {
	p.CheckMissing()
	return p.Check(data, len(os.Args), 0x100)
}

func main() {
	var p sigmap.Protection
	var data [64]byte
	sends(&p, &data)
	os.Exit(int(judges(&p, &data).Frame))
}
