package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatATerminalWouldObeyIsEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"at::native::addmm<float&>": "at::native::addmm<float&>",
		"größe_Ωμ_火":                "größe_Ωμ_火",
		"\x1b]0;title\x07":          `\x1b]0;title\x07`,
		"a\nb\tc\r":                 `a\x0ab\x09c\x0d`,
		"\x7f\u009b31m":             `\x7f\x9b31m`,
		"\xff\xc3(":                 `\xff\xc3(`,
		"a\u202eb\u2028":            `a\u202eb\u2028`,
		"\x00":                      `\x00`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := Lines("a\nb\x1b"); got != "a\nb\\x1b" {
		t.Errorf("lines become %q", got)
	}
}

func TestJSONStaysWhatItSays(t *testing.T) {
	const name = "\x1b[31m\u009b2J\x7f\n\u202eend größe"
	var b strings.Builder
	if err := json.NewEncoder(JSON(&b)).Encode(name); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got != name {
		t.Errorf("%q, %v", got, err)
	}
	if text := strings.TrimSuffix(b.String(), "\n"); Text(text) != text {
		t.Errorf("%q", text)
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\u009b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, hidden) {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

func TestShortNamesAreBounded(t *testing.T) {
	for name, want := range map[string]string{
		"":                                   "",
		"a\x1b[31m":                          `a\x1b[31m`,
		strings.Repeat("x", mostShort):       strings.Repeat("x", mostShort),
		strings.Repeat("x", mostShort+1):     strings.Repeat("x", mostShort) + "…",
		strings.Repeat("é", mostShort):       strings.Repeat("é", mostShort/2) + "…",
		"x" + strings.Repeat("é", mostShort): "x" + strings.Repeat("é", mostShort/2-1) + "…",
		strings.Repeat("\x80", 10<<20):       "",
	} {
		got := Short(name)
		if want != "" && got != want || len(got) > 4*mostShort+len("…") {
			t.Errorf("%d bytes: %q", len(name), got)
		}
	}
}
