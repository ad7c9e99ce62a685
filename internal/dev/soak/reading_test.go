package main

import (
	"io"
	"testing"
)

func TestWhatGrowsIsNotFlat(t *testing.T) {
	readings := func(of func(i int) float64) (all []reading) {
		for i := range 100 {
			all = append(all, reading{"descriptors": of(i)})
		}
		return all
	}
	for name, c := range map[string]struct {
		of   func(i int) float64
		flat bool
	}{
		"the same":            {func(int) float64 { return 200 }, true},
		"up and down":         {func(i int) float64 { return 200 + float64(i%7)*10 }, true},
		"a moment's burst":    {func(i int) float64 { return 200 + float64(i/98)*1000 }, true},
		"up at the beginning": {func(i int) float64 { return min(float64(i)*20, 400) }, true},
		"up and up":           {func(i int) float64 { return 200 + float64(i)*4 }, false},
	} {
		if err := judge(io.Discard, readings(c.of)); (err == nil) != c.flat {
			t.Errorf("%s: %v", name, err)
		}
	}
	for until, flat := range map[float64]bool{500: true, 700: false} {
		filling := readings(func(i int) float64 { return 300 + float64(i)*(until-300)/100 })
		for _, r := range filling {
			r["rss_mib"] = r["descriptors"]
			r["descriptors"] = 200
		}
		if err := judge(io.Discard, filling); (err == nil) != flat {
			t.Errorf("memory up to %.0f MiB: %v", until, err)
		}
	}
	if judge(io.Discard, nil) == nil {
		t.Error("nothing was read, and is flat")
	}
}
