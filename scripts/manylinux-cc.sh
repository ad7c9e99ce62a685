#!/bin/bash
# A C compiler for cgo whose programs run with glibc 2.28 and later: zig compiles against that
# version's headers; GNU ld links against zig's lists of its symbols. libstdc++ is linked in. manylinux.sh sets the variables.
set -eu
zig=("$MANYLINUX_ZIG" cc -target "$MANYLINUX_ARCH-linux-gnu.2.28")
link=
for argument in "$@"; do
	case $argument in
	-o) link=${link:-yes} ;;
	-c | -E | -S | -M | -MM | -v | --version | - | *.c | *.cc | *.S) link=no ;;
	esac
done
[ "$link" = yes ] || exec "${zig[@]}" "$@"

arguments=()
for argument in "$@"; do
	case $argument in
	-lstdc++ | -lm | -ldl | -lpthread | -lresolv | -lrt) ;; # below, in the versions wanted
	-Qunused-arguments) ;; # an option of the compiler alone, which GNU ld's driver refuses
	*) arguments+=("$argument") ;;
	esac
done
of() { "$MANYLINUX_LINKER" -print-file-name="$1"; }
stubs=$MANYLINUX_STUBS
exec "$MANYLINUX_LINKER" -no-pie -nostdlib -nostartfiles "$stubs/crt1.o" "${arguments[@]}" "$stubs/shim.o" \
	-Wl,--start-group "$(of libstdc++.a)" "$(of libgcc_eh.a)" "$(of libgcc.a)" "$stubs/libc_nonshared.a" -Wl,--end-group \
	-Wl,--as-needed "$stubs"/lib{c.so.6,m.so.6,dl.so.2,pthread.so.0,resolv.so.2,rt.so.1} ${MANYLINUX_LOADER:+"$stubs/$MANYLINUX_LOADER"}
