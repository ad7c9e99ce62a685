package elf

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// probePrefixes is about what the catalog asks of libtorch_cpu.
var probePrefixes = []string{
	"_ZN2at4_ops",
	"_ZN5torch8autograd8profiler25record_function_enter_new",
	"_ZN2at14RecordFunction3endEv",
	"_ZN5torch8autograd6Engine7executeE",
	"_ZN5torch8autograd6Engine23execute_with_graph_task",
	"_ZN5torch8autograd6Engine17evaluate_function",
	"_ZN2at15sequence_number17get_and_increment",
	"_ZN4c10d16ProcessGroupGloo",
}

func BenchmarkFunctionsWithPrefixes(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			for b.Loop() {
				e, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if n := len(e.FunctionsWithPrefixes(probePrefixes)); n < 5000 {
					b.Fatalf("%d functions", n)
				}
				e.Close()
			}
		})
	}
}

func BenchmarkExportedFunctions(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			for b.Loop() {
				e := open(b, path)
				if n := len(e.ExportedFunctions(probePrefixes)); n < 5000 {
					b.Fatalf("%d functions", n)
				}
			}
		})
	}
}

func BenchmarkPLTTargetFirst(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			for b.Loop() {
				e := open(b, path)
				e.GOTTarget(0)
			}
		})
	}
}

func BenchmarkExtent(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			e := open(b, path)
			functions := e.FunctionsWithPrefixes([]string{"_ZN2at4_ops"})
			i := 0
			for b.Loop() {
				if _, _, ok := e.Extent(functions[i%len(functions)].Address); !ok {
					b.Fatal(functions[i%len(functions)])
				}
				i++
			}
		})
	}
}

func BenchmarkIndexFunctions(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			e := open(b, path)
			for b.Loop() {
				x := e.IndexFunctions()
				b.ReportMetric(float64(len(x.entries)*16)/1e6, "MB")
			}
		})
	}
}
