package terminal

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

func TestALineIsCutToTheTerminal(t *testing.T) {
	for width, want := range map[int]string{3: "aµ", 4: "aµc", 80: "aµc", 0: ""} {
		if got := Truncate("aµc", width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
