package cli

import (
	"strings"
	"testing"
)

func TestALineIsReplacedAndClearedOnce(t *testing.T) {
	var screen strings.Builder
	line := Live{out: &screen, columns: func() int { return 10 }}
	for _, text := range []string{"", "reading: 5 %", "done", "", ""} {
		line.Show(text)
	}
	want := ClearLine + "reading: " + ClearLine + "done" + ClearLine
	if screen.String() != want {
		t.Errorf("the screen got %q, want %q", screen.String(), want)
	}
}

func TestNoLineIsShownWhereNoTerminalIs(t *testing.T) {
	var file strings.Builder
	line := NewLive(&file)
	line.Show("reading: 5 %")
	if line.Shows() || file.Len() > 0 {
		t.Errorf("%q was written", file.String())
	}
}
