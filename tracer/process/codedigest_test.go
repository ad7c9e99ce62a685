package process

import "testing"

const digested = `55d0c0000000-55d0c0001000 r--p 00000000 fe:00 1001    /usr/bin/python3.11
55d0c0001000-55d0c0002000 r-xp 00001000 fe:00 1001    /usr/bin/python3.11
55d0c2000000-55d0c2021000 rw-p 00000000 00:00 0       [heap]
7f0000000000-7f0000001000 r-xp 00000000 fe:00 1002    /usr/lib/libc.so.6
`

// TestCodeDigestChangesWithWhatCanBeExecuted, and with nothing else: a heap that
// grows is no news.
func TestCodeDigestChangesWithWhatCanBeExecuted(t *testing.T) {
	heap := "55d0c2000000-55d0c2099000 rw-p 00000000 00:00 0       [heap]\n"
	for name, c := range map[string]struct {
		maps string
		same bool
	}{
		"itself":            {digested, true},
		"another heap":      {digested + heap, true},
		"another library":   {digested + "7f1000000000-7f1000001000 r-xp 00000000 fe:00 1003 /usr/lib/libm.so.6\n", false},
		"generated code":    {digested + "7f2000000000-7f2000001000 rwxp 00000000 00:00 0\n", false},
		"nothing":           {"", false},
		"a line cut short":  {digested + "7f30", true},
		"the last cut away": {digested[:len(digested)-20], false},
	} {
		if got := codeDigest([]byte(c.maps)) == codeDigest([]byte(digested)); got != c.same {
			t.Errorf("%s: the same is %v, want %v", name, got, c.same)
		}
	}
}
