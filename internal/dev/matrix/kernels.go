package main

import (
	"slices"
	"strings"
)

// kernel is one of Debian's, by the package that has its image. The cloud flavour is
// smaller than the others and has console, type information and all of BPF built in.
// Until 6.18 the image is in linux-image-* (-unsigned where there is one), since 6.19
// in linux-binary-*.
type kernel struct {
	name    string // version and architecture: what KERNELS chooses by
	arch    string // Debian's name of it
	Package string
	version string // of the package: another one is another kernel
	short   bool   // part of the short form
	ends    bool   // the oldest or the newest of its architecture
	// asCompiled: the tracer changes nothing of its programs for it, so that libbpf can load them.
	asCompiled bool
	// without are sets of features, by their keys with commas between them, that the long
	// form switches off: the kernels that cannot be had, from the side of newer ones.
	without []string
}

// kernels are pinned, so that a failure is the tracer's and not a new kernel's. Found
// on 2026-11-22 with `apt-cache search --names-only 'linux-(image|binary)-.*cloud'` in
// bookworm, its security archive and backports, trixie-backports and sid, of each
// version the last; Debian keeps none of 5.15 and 6.2 to 6.11.
var kernels = []kernel{
	{name: "6.1-amd64", arch: "amd64", Package: "linux-image-6.1.0-56-cloud-amd64-unsigned", version: "6.1.192-2", short: true, ends: true,
		without: []string{"bpf_loop", "dynamic_hash", "bpf_loop,dynamic_hash"}}, // the last is what 5.15 and 5.16 have
	{name: "6.12-amd64", arch: "amd64", Package: "linux-image-6.12.117+deb12-cloud-amd64-unsigned", version: "6.12.117-1~deb12u1",
		// Without its guard Debian's 6.12, which has private stacks, is refused; so 6.2 to 6.9 are not to be had from this side.
		without: []string{"uprobe_multi", "dynamic_hash", "uprobe_multi,dynamic_hash", "preempt_guard"}},
	{name: "6.18-amd64", arch: "amd64", Package: "linux-image-6.18.15+deb13-cloud-amd64", version: "6.18.15-1~bpo13+1", asCompiled: true},
	{name: "6.19-amd64", arch: "amd64", Package: "linux-binary-6.19.14+deb13-cloud-amd64", version: "6.19.14-1~bpo13+1", short: true,
		asCompiled: true},
	{name: "7.0-amd64", arch: "amd64", Package: "linux-binary-7.0.13+deb13-cloud-amd64", version: "7.0.13-1~bpo13+1", asCompiled: true},
	{name: "7.3-amd64", arch: "amd64", Package: "linux-binary-7.3.4+deb13-cloud-amd64", version: "7.3.4-1~bpo13+1", ends: true,
		asCompiled: true},
	{name: "6.1-arm64", arch: "arm64", Package: "linux-image-6.1.0-56-cloud-arm64-unsigned", version: "6.1.192-2", short: true, ends: true},
	{name: "6.12-arm64", arch: "arm64", Package: "linux-image-6.12.117+deb12-cloud-arm64-unsigned", version: "6.12.117-1~deb12u1"},
	{name: "7.3-arm64", arch: "arm64", Package: "linux-binary-7.3.4+deb13-cloud-arm64", version: "7.3.4-1~bpo13+1", short: true, ends: true},
}

// choose returns the kernels whose names begin with one of the words, in their order:
// 6.1 is both architectures', 6.1-arm64 one of them. Without a word it is all of the form.
func choose(words string, short bool) (chosen []kernel) {
	wanted := strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' })
	if len(wanted) == 0 {
		return slices.DeleteFunc(slices.Clone(kernels), func(k kernel) bool { return short && !k.short })
	}
	for _, w := range wanted {
		for _, k := range kernels {
			if k.name == w || strings.HasPrefix(k.name, w+"-") {
				chosen = append(chosen, k)
			}
		}
	}
	return chosen
}
