package asked

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

func TestNamesAreFoundAsCompilersWriteThem(t *testing.T) {
	for symbol, want := range map[string][]string{
		"foo_step":               {"foo_step", "_Z8foo_step"},
		"at::_ops::addmm::call":  {"_ZN2at4_ops5addmm4callE", "_ZNK2at4_ops5addmm4callE", "_ZN2at4_ops5addmm4callI", "_ZNK2at4_ops5addmm4callI"},
		"_ZN4work4Pool3runEi":    {"_ZN4work4Pool3runEi"},
		"work::Pool::run(_,n:i8": nil,
	} {
		functions, err := Symbol("libfoo.so:" + symbol)
		var got []string
		for _, f := range functions {
			got = append(got, f.Symbol)
		}
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", symbol, got, err, want)
		}
	}
}

func TestArgumentsAreWhereTheirPlacesSay(t *testing.T) {
	f, err := Symbol("libfoo.so:foo(n:int, _, path:str, at:*u16)->bool")
	if err != nil {
		t.Fatal(err)
	}
	a, v := f[0].Asked, f[0].Values
	if len(a.Arguments) != 3 || len(v) != 3 || v[1].Index != 2 || v[2].Index != 3 || v[2].Derefs != 1 || v[2].Bits != 16 || !v[0].Signed {
		t.Errorf("%+v %+v", a.Arguments, v)
	}
	if a.Strings() != 1<<1 || a.Returned == nil || a.Returned.Kind != spec.Boolean || a.File != "libfoo.so" {
		t.Errorf("%+v", a)
	}
	for file, want := range map[string]bool{"libfoo.so": true, "libfoo.so.1.2": true, "libfoo.so-old": true, "libfoo.sox": false,
		"libfo": false} {
		if f[0].In(file) != want {
			t.Errorf("%s: %v", file, f[0].In(file))
		}
	}
}

func TestWhatCannotBeReadIsRefusedWithAReason(t *testing.T) {
	for text, want := range map[string]string{
		"foo":                       "write LIB:SYMBOL",
		"/usr/lib/libfoo.so:foo":    "base name",
		"libfoo.so:foo(x:double)":   "floating-point",
		"libfoo.so:foo(x:vec)":      "is no type",
		"libfoo.so:foo(x)":          "write NAME:TYPE",
		"libfoo.so:foo(x:int":       "not closed",
		"libfoo.so:foo(x:int)>int":  "behind the arguments",
		"libfoo.so:foo()->str":      "->ptr",
		"libfoo.so:foo(x:i8,x:i8)":  "two arguments",
		"libfoo.so:foo(return:i32)": "write NAME:TYPE",
		"libfoo.so:foo(a:u8,b:u8,c:u8,d:u8,e:u8,f:u8,g:u8,h:u8,i:u8,j:u8,k:u8,l:u8)": "room for 11",
	} {
		if _, err := Symbol(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"python", "python:", ":x", "a:b(x:*int)", "a:b(x:foo)"} {
		if _, err := Note(text); err == nil {
			t.Errorf("--usdt %s is taken", text)
		}
	}
}

func TestListsAreNotPartedWithinParentheses(t *testing.T) {
	group, err := Group([]string{"a:f(x:int", "y:int)", "b:g"}, []string{"p:n(_", "z:u8)"})
	if err != nil || group.Functions[0].Asked.Text != "a:f(x:int,y:int)" || group.Functions[2].Asked.Text != "b:g" ||
		group.Functions[4].Asked.Text != "p:n(_,z:u8)" {
		t.Errorf("%+v, %v", group, err)
	}
	if group, err := Group(nil, nil); group != nil || err != nil {
		t.Errorf("%v, %v", group, err)
	}
}
