package specialise

import (
	"errors"
	"go/types"
	"strings"
	"testing"
)

// Of package model the binary carries the files that the kernel refers to. What is missing would
// have no type, and the tick would be specialised without it.
func TestTheSourceHasEveryNameOfPackageModelThatTheKernelUses(t *testing.T) {
	p, err := loadTick()
	if err != nil {
		t.Fatal(err)
	}
	others := 0
	for _, err := range p.errors {
		var e types.Error
		switch {
		case !errors.As(err, &e) || strings.Contains(e.Msg, "model."):
			t.Errorf("%v: is its file in the go:embed lines of model/text.go?", err)
		default:
			others++
		}
	}
	if others == 0 {
		t.Error("the type checker knows all: it should not know the packages beyond")
	}
}
