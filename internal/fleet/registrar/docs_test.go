package registrar

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Who reads docs/fleet.md knows for how long what is kept, and what a pass does by default.
func TestTheDocsHaveTheDefaultsOfRetention(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### The registrar\n")
	section, _, ends := strings.Cut(section, "\n### ")
	if !found || !ends {
		t.Fatal("docs/fleet.md has no section of the registrar")
	}
	section = strings.Join(strings.Fields(section), " ")
	for _, want := range []string{
		fmt.Sprintf("From %d files of a table, a job and a day on (`--least`)", DefaultLeast),
		fmt.Sprintf("smaller than %d MiB into files of up to %d MiB", DefaultTarget/2>>20, DefaultTarget>>20),
		fmt.Sprintf("removed %d minutes later (`--grace`)", DefaultGrace/time.Minute),
		fmt.Sprintf("Patterns, steps, uploads, hangs and failures are kept for %d days (`--keep-days`; 0 for ever), requests for windows for "+
			"%d, feedback for ever", DefaultDays, requestDays),
		"are removed after a day", // unfinishedFor
	} {
		if !strings.Contains(section, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if unfinishedFor != 24*time.Hour {
		t.Errorf("what a killed writer left is removed after %s", unfinishedFor)
	}
	// The tables that it names are those that are kept so long, and no others.
	p := &pass{Options: Options{Days: DefaultDays}}
	days := map[string]int{"pattern": DefaultDays, "worker_step": DefaultDays, "upload": DefaultDays, store.HangTable: DefaultDays,
		store.FailureTable: DefaultDays, requests: requestDays, store.FeedbackTable: 0}
	for table, want := range days {
		if got := p.daysOfTable(table); got != want {
			t.Errorf("%s is kept for %d days, not %d", table, got, want)
		}
	}
	for table := range tables {
		if _, told := days[table]; !told {
			t.Errorf("%s is kept for %d days, which the docs do not say", table, p.daysOfTable(table))
		}
	}
}
