package main

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlyProseIsMeasured(t *testing.T) {
	long := strings.Repeat("ü", 121)
	for text, want := range map[string][]int{
		strings.Repeat("ü", 120):                    nil,
		"short\n" + long:                            {2},
		"| " + long + " |":                          nil,
		"```\n" + long + "\n```\n" + long:           {4},
		"<!-- Made by x; do not edit. -->\n" + long: nil,
	} {
		if got := tooLong(text); !slices.Equal(got, want) {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
}
