package snapshot

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
)

// A pickle of some hundred KB can name one dictionary of 60,000 keys a hundred million times.
func TestADictionaryThatIsNamedAgainAndAgainCostsItsKeysEachTime(t *testing.T) {
	entry := &pickle.Dict{Keys: []any{"action"}, Values: []any{"unknown"}}
	for range 200 {
		entry.Keys, entry.Values = append(entry.Keys, "key"), append(entry.Values, int64(1))
	}
	b := &builder{s: &Snapshot{Ignored: map[string]int64{}}}
	b.work = mostWork - 3*200
	for range 100_000 {
		err := b.event(0, entry, map[int64]bool{})
		if errors.Is(err, pickle.ErrTooLarge) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("it has no end")
}

func TestAnEntryOfManyKeysIsNoneOfPyTorchs(t *testing.T) {
	entry := &pickle.Dict{Keys: make([]any, 60_000), Values: make([]any, 60_000)}
	b := &builder{s: &Snapshot{Ignored: map[string]int64{}}}
	if err := b.event(0, entry, map[int64]bool{}); !errors.Is(err, pickle.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}
