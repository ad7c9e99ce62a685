package benchmark

import "strings"

// split is what a flag lists with commas between.
func split(s string) (names []string) {
	for _, name := range strings.Split(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
