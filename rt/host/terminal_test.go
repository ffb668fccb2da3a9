package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folded returns text as a terminal of width columns shows it.
func folded(width int, text string) string {
	var out strings.Builder
	fmt.Fprint(&lineFolder{to: &out, width: func() int { return width }}, text)
	return out.String()
}

func TestFoldBreaksLongLinesBetweenWordsAndBeforeColumns(t *testing.T) {
	for text, want := range map[string]string{
		"short\n\nlines\n": "short\n\nlines\n",
		"a prose line that is longer than the width of it\n": "a prose line that is longer than the\n  width of it\n",
		"  head   a text behind a head that is too long for it\n": "  head   a text behind a head that is\n" +
			"         too long for it\n",
		"  head   text\n  a head a text behind one blank that is aligned\n": "  head   text\n" +
			"  a head a text behind one blank that is\n         aligned\n",
		"  BENCH  FILE        TARGET  CPU\n  demo   demo.yaml   4711    1   drive=vcan0\n": "  BENCH  FILE        TARGET  CPU\n" +
			"  demo   demo.yaml   4711    1\n         drive=vcan0\n",
		"    Speeds.w1  0|15@1-  [-327.68|327.66]  -> w1[rad/s]\n": "    Speeds.w1  0|15@1-\n" +
			"               [-327.68|327.66]\n               -> w1[rad/s]\n",
		"https://example.org/a/word/that/is/too/long/for/it x\n": "https://example.org/a/word/that/is/too/long/for/it\n  x\n",
		"   -> sudo apt-get install linux-image-rt-amd64 x\n":    "   -> sudo apt-get install linux-image-rt-amd64 x\n",
		"unfinished": "",
	} {
		if got := folded(40, text); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", text, got, want)
		}
	}
}

func TestFoldDoesNotChangeFiles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := strings.Repeat("word ", 100) + "\nunfinished"
	fmt.Fprint(Fold(f), text)
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
}
