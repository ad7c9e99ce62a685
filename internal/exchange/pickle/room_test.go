package pickle

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// What a pickle makes takes no more memory than there is for it, whatever it counts as.
func TestValuesHaveTheRoomThatThereIs(t *testing.T) {
	for what, op := range map[string]string{"lists": "]", "marks": "(", "dictionaries": "}"} {
		text := "\x80\x04" + strings.Repeat(op, 8*roomSteps)
		limits := DefaultLimits
		runtime.GC() // what the one before left would count as room when it is collected
		limits.Room = &Room{most: heapBytes() + 8<<20}
		if _, err := Read(bytes.NewReader([]byte(text)), limits); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s without end: %v", what, err)
		}
	}
	if most := NewRoom().most; most < 64<<20 {
		t.Errorf("%d bytes of room on this machine", most)
	}
}
