package main

import "strings"

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
}

// kernels are pinned, so that a failure is the tracer's and not a new kernel's. Found
// on 2026-11-22 with `apt-cache search --names-only 'linux-(image|binary)-.*cloud'` in
// bookworm, its security archive and backports, trixie-backports and sid, of each
// version the last; Debian keeps none of 5.15 and 6.2 to 6.11.
var kernels = []kernel{
	{"6.1-amd64", "amd64", "linux-image-6.1.0-56-cloud-amd64-unsigned", "6.1.192-2", true},
	{"6.12-amd64", "amd64", "linux-image-6.12.117+deb12-cloud-amd64-unsigned", "6.12.117-1~deb12u1", false},
	{"6.18-amd64", "amd64", "linux-image-6.18.15+deb13-cloud-amd64", "6.18.15-1~bpo13+1", false},
	{"6.19-amd64", "amd64", "linux-binary-6.19.14+deb13-cloud-amd64", "6.19.14-1~bpo13+1", true},
	{"7.0-amd64", "amd64", "linux-binary-7.0.13+deb13-cloud-amd64", "7.0.13-1~bpo13+1", false},
	{"7.3-amd64", "amd64", "linux-binary-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1", false},
	{"6.1-arm64", "arm64", "linux-image-6.1.0-56-cloud-arm64-unsigned", "6.1.192-2", true},
	{"6.12-arm64", "arm64", "linux-image-6.12.117+deb12-cloud-arm64-unsigned", "6.12.117-1~deb12u1", false},
	{"7.3-arm64", "arm64", "linux-binary-7.3.4+deb13-cloud-arm64", "7.3.4-1~bpo13+1", true},
}

// choose returns the kernels whose names begin with one of the words: 6.1 is both
// architectures', 6.1-arm64 one of them.
func choose(words string, short bool) (chosen []kernel) {
	for _, k := range kernels {
		wanted := words == "" && (k.short || !short)
		for _, w := range strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' }) {
			wanted = wanted || k.name == w || strings.HasPrefix(k.name, w+"-")
		}
		if wanted {
			chosen = append(chosen, k)
		}
	}
	return chosen
}
