// Package pjrt has the table of PJRT: what JAX, and whatever else speaks it, drives an accelerator
// through. A plugin's functions are found by its function table (tracer/pjrt), whatever the file
// is called. Each takes one pointer to a struct of its own, whose members keep their places from
// version to version; those used here are in every version since 0.23 (2023). The offsets are
// those of xla/pjrt/c/pjrt_c_api.h, version 0.114, on a 64-bit machine:
//
//	struct_size 0, extension_start 8, then the members of the call from 16 on
//
// They are C functions, but C++ inside, which may throw as far as anyone can tell from here: no
// return probes, so that what they return, an error or null, is not seen. A caller that gets an
// error asks for its code.
//
// https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h
//
// The package is no part of the public API: it may change with any version.
package pjrt

import . "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{executeGroup, transferGroup}
}

// executeGroup is what a loop's steps are found by, and what names it.
var executeGroup = Group{
	Name:     "pjrt-execute",
	Anchor:   true,
	Help:     "PJRT plugins (JAX on GPU, TPU, Neuron): executions, compilations, errors",
	Tier:     Anchor,
	Launches: true,
	Functions: []Function{
		// executable 16, options 24 {…, launch_id i32 48}, argument_lists 32,
		// num_devices 40, num_args 48
		pjrt("PJRT_LoadedExecutable_Execute", "launch", func(f *Function) {
			f.Name = FromExecutable
			launch := Mem2(FieldSerial, 0, 24, 48)
			launch.Bits, launch.Signed = 32, true
			f.Values = []Value{
				Mem(FieldKernel, 0, 16), launch,
				Mem(FieldDevices, 0, 40), Mem(FieldArguments, 0, 48),
			}
		}),
		// client 16, program 24 {…, code 16, code_size 24}, executable (out) 48
		pjrt("PJRT_Client_Compile", "module", func(f *Function) {
			f.Effect, f.Text, f.TextArg = EndsCompile, Bytes, 1
			f.Values = []Value{Mem(FieldContext, 0, 16), Mem2(FieldAddress, 0, 24, 16), Mem2(FieldBytes, 0, 24, 24), OutAt(FieldHandle, 0, 48)}
		}),
		// The same at its beginning: of a program whose name does not come that
		// early, more is read while it is compiled.
		pjrt("PJRT_Client_Compile", "module", func(f *Function) {
			f.Action, f.End, f.Effect = Urgent, NoEnd, BeginsCompile
			f.Values = []Value{Mem2(FieldAddress, 0, 24, 16), Mem2(FieldBytes, 0, 24, 24)}
		}),
		// client 16, serialized_executable 24, its size 32, loaded_executable (out) 40
		pjrt("PJRT_Executable_DeserializeAndLoad", "module", func(f *Function) {
			f.Values = []Value{Mem(FieldContext, 0, 16), Mem(FieldBytes, 0, 32), OutAt(FieldHandle, 0, 40)}
		}),
		// executable 16, executable_name (out) 24, its size (out) 32
		pjrt("PJRT_Executable_Name", "module", func(f *Function) {
			f.Effect, f.Text, f.TextArg = NamesExecutable, CStringOut, 1
			f.Values = []Value{Mem(FieldHandle, 0, 16), OutAt(FieldNamePointer, 0, 24), OutAt(FieldNameBytes, 0, 32)}
		}),
		// loaded_executable 16, executable (out) 24
		pjrt("PJRT_LoadedExecutable_GetExecutable", "module", func(f *Function) {
			f.Effect = LinksExecutable
			f.Values = []Value{Mem(FieldHandle, 0, 16), OutAt(FieldKernel, 0, 24)}
		}),
		// executable 16: its address may be that of another one from now on.
		pjrt("PJRT_LoadedExecutable_Destroy", "module", func(f *Function) {
			f.Effect = ForgetsExecutable
			f.Values = []Value{Mem(FieldHandle, 0, 16)}
		}),
		pjrt("PJRT_Executable_Destroy", "module", func(f *Function) {
			f.Effect = ForgetsExecutable
			f.Values = []Value{Mem(FieldHandle, 0, 16)}
		}),
		// error 16, code i32 (out) 24: absl's status codes.
		pjrt("PJRT_Error_GetCode", "error", func(f *Function) {
			code := OutAt(FieldErrorCode, 0, 24)
			code.Bits = 32
			f.Values = []Value{code}
		}),
		pjrt("PJRT_Client_Create", "init", func(*Function) {}),
		pjrt("PJRT_Client_Destroy", "init", func(*Function) {}),
	},
}

var transferGroup = Group{
	Name:     "pjrt",
	Help:     "PJRT plugins: transfers, buffers, waits",
	Tier:     Detail,
	Launches: true,
	With:     []string{"pjrt-execute"},
	Functions: []Function{
		// client 16, data 24, type i32 32, dims 40, num_dims 48
		pjrt("PJRT_Client_BufferFromHostBuffer", "copy", func(f *Function) {
			f.Direction, f.Dtypes = "host_to_device", types
			f.Values = []Value{
				Mem(FieldContext, 0, 16), Mem32(FieldDtype, 0, 32), Mem(FieldShapes, 0, 48),
				Mem2(FieldShape0, 0, 40, 0), Mem2(FieldShape1, 0, 40, 8), Mem2(FieldShape2, 0, 40, 16),
				Mem2(FieldShape3, 0, 40, 24), Mem2(FieldShape4, 0, 40, 32), Mem2(FieldShape5, 0, 40, 40),
			}
		}),
		// src 16, host_layout 24, dst 32, dst_size 40. Without dst it only asks for
		// the size.
		pjrt("PJRT_Buffer_ToHostBuffer", "copy", func(f *Function) {
			f.Direction = "device_to_host"
			f.Values = []Value{Mem(FieldTarget, 0, 32), Mem(FieldBytes, 0, 40)}
		}),
		// buffer 16, dst 24, offset 32, transfer_size 40
		pjrt("PJRT_Buffer_CopyRawToHost", "copy", func(f *Function) {
			f.Direction = "device_to_host"
			f.Values = []Value{Mem(FieldBytes, 0, 40)}
		}),
		// transfer_manager 16, buffer_index 24, data 32, offset 40, transfer_size 48
		pjrt("PJRT_AsyncHostToDeviceTransferManager_TransferData", "copy", func(f *Function) {
			f.Direction = "host_to_device"
			f.Values = []Value{Mem(FieldBytes, 0, 48)}
		}),
		pjrt("PJRT_Buffer_CopyToDevice", "copy", func(f *Function) { f.Direction = "device_to_device" }),
		pjrt("PJRT_Buffer_CopyToMemory", "copy", func(*Function) {}),
		pjrt("PJRT_Buffer_Destroy", "free", func(*Function) {}),
		pjrt("PJRT_Buffer_Delete", "free", func(*Function) {}),
		// event 16
		pjrt("PJRT_Event_Await", "sync", func(f *Function) {
			f.ExpensiveEnd = true
			f.Values = []Value{Mem(FieldEvent, 0, 16)}
		}),
	},
}

// pjrt is one function of the table.
func pjrt(name, category string, with func(*Function)) Function {
	f := Function{
		Table: PJRTTable, Symbol: name, Exact: true,
		Layer: "runtime", Category: category, Runtime: "pjrt", Label: name,
		Action: Span, End: ExitSites,
	}
	with(&f)
	return f
}

// types are PJRT_Buffer_Type, with XLA's names. Those of less than a byte
// have no size here: how they are packed is the layout's business.
var types = []Dtype{
	Element("", 0),
	Element("pred", 1), Element("s8", 1), Element("s16", 2), Element("s32", 4), Element("s64", 8),
	Element("u8", 1), Element("u16", 2), Element("u32", 4), Element("u64", 8),
	Element("f16", 2), Element("f32", 4), Element("f64", 8), Element("bf16", 2), Element("c64", 8), Element("c128", 16),
	Element("f8e5m2", 1), Element("f8e4m3fn", 1), Element("f8e4m3b11fnuz", 1), Element("f8e5m2fnuz", 1), Element("f8e4m3fnuz", 1),
	Element("s4", 0), Element("u4", 0), Element("token", 0), Element("s2", 0), Element("u2", 0),
	Element("f8e4m3", 1), Element("f8e3m4", 1), Element("f8e8m0fnu", 1), Element("f4e2m1fn", 0), Element("s1", 0), Element("u1", 0),
	Element("f6e2m3fn", 0), Element("f6e3m2fn", 0),
}
