// Package bpf is the kernel side: the programs in C, their compiled objects for
// amd64 and arm64, and the Go bindings that bpf2go makes of both.
package bpf

// The compiler is pinned so that `make generate` gives the same bytes on every
// machine; CI compares them with the committed ones.
//
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" -type probe_spec -type probe_count -type capture -type target -type call_record -type call_record_few -type call_record_full -type text_record -type long_text_record -type capture_flag -type life_record -type action -type source -type text_kind -type tensor_argument -type tensor_outcome -type tensors_record -type tensor_slot -type spec_flag -type record_kind -type end_method -type call_status -type loss -type memo_count -type line_source Call call.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" Life life.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" -type task_entry Tasks tasks.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" -type python_runtime -type walk_start -type python_frame -type python_segment -type python_stack -type python_taken -type python_outcome -type python_anchor PythonWalk pythonwalk.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" -type native_taken -type native_outcome -type native_flag -type unwind_kind -type unwind_register -type unwind_ra -type unwind_fp -type unwind_state -type unwind_process_flag -type unwind_rule -type unwind_file -type unwind_process -type unwind_inode -type unwind_inode_file NativeWalk nativewalk.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" -type sample_state -type io_event -type io_class -type io_sums -type io_record -type io_call_record -type native_outcome -type native_flag -type python_outcome -type sample_record -type stack_record -type native_frame -type python_frame -type python_segment Sample sample.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -fdebug-compilation-dir=. -ffile-prefix-map=../=" Ability ability.bpf.c
