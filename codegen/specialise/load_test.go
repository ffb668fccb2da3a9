package specialise

import (
	"errors"
	"go/types"
	"strings"
	"testing"
)

// The binary embeds the files of package model to which the kernel refers. A name from another file
// would have no type, and the tick would be specialised without it.
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
		t.Error("no error of the type checker: it must not know packages other than model")
	}
}
