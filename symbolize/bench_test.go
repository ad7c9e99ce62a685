package symbolize

import (
	"testing"
)

// probePrefixes is about what the catalog asks of libtorch_cpu.
var probePrefixes = []string{
	OperatorPrefix,
	"_ZN5torch8autograd8profiler25record_function_enter_new",
	"_ZN2at14RecordFunction3endEv",
	"_ZN5torch8autograd6Engine7executeE",
	"_ZN5torch8autograd6Engine23execute_with_graph_task",
	"_ZN5torch8autograd6Engine17evaluate_function",
	"_ZN2at15sequence_number17get_and_increment",
	"_ZN4c10d16ProcessGroupGloo",
}

func BenchmarkFunctionsWithPrefixes(b *testing.B) {
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			for b.Loop() {
				e, err := OpenELF(path)
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
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			for b.Loop() {
				e := open(b, path)
				if n := len(e.ExportedFunctions(probePrefixes)); n < 5000 {
					b.Fatalf("%d functions", n)
				}
			}
		})
	}
}

func BenchmarkOperatorNames(b *testing.B) {
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			e := open(b, path)
			for b.Loop() {
				if n := len(OperatorNames(e)); n < 2000 {
					b.Fatalf("%d operators", n)
				}
			}
		})
	}
}

func BenchmarkPLTTargetFirst(b *testing.B) {
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			for b.Loop() {
				e := open(b, path)
				e.GOTTarget(0)
			}
		})
	}
}

func BenchmarkExtent(b *testing.B) {
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			e := open(b, path)
			functions := e.FunctionsWithPrefixes([]string{OperatorPrefix})
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
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			e := open(b, path)
			for b.Loop() {
				x := e.IndexFunctions()
				b.ReportMetric(float64(len(x.places)*16)/1e6, "MB")
			}
		})
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, path := range libtorchs(b) {
		b.Run(shortName(path), func(b *testing.B) {
			e := open(b, path)
			starts := e.FunctionStarts()
			f := NewFile(e, path)
			f.Frame(starts[0])
			i := 0
			for b.Loop() {
				f.Frame(starts[i*7919%len(starts)] + uint64(i%4))
				i++
			}
		})
	}
}

func BenchmarkNewKernelNames(b *testing.B) {
	for b.Loop() {
		if k := NewKernelNames(); k.Err() != nil {
			b.Skip(k.Err())
		}
	}
}
