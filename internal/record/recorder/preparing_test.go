package recorder

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestSamplingWaitsLessThanASecondForUnwindTables and says what is missing.
func TestSamplingWaitsLessThanASecondForUnwindTables(t *testing.T) {
	var out strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	p := newPreparing(ctx, false)
	p.out, p.began = &out, time.Now().Add(time.Hour)
	if !p.goOn(3, 49) || out.Len() > 0 {
		t.Errorf("it does not wait: %s", out.String())
	}
	p.began = time.Now().Add(-patience)
	if p.goOn(12, 49) || !strings.Contains(out.String(), "37 of 49 libraries") {
		t.Errorf("it waits, or says %q", out.String())
	}
	out.Reset()
	cancel()
	p.began = time.Now().Add(time.Hour)
	if p.goOn(12, 49) || out.Len() > 0 {
		t.Errorf("a signal does not end it, or it says %q", out.String())
	}
}
