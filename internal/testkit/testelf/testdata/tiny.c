// The file that the fuzz targets start from: an import, an export, a local
// function, data, a stack protector and frame descriptions, in 2 KB.
//
//	cc -O1 -fPIC -shared -nostdlib -fstack-protector-all -Wl,-z,norelro,-z,noseparate-code \
//	   -Wl,--build-id=0x0123456789abcdef,--hash-style=both,-soname,tiny.so -o tiny.so tiny.c
//	cc … -Wl,-s for tiny-stripped.so
//
// gcc 12.2, ld 2.40, Debian 12, x86-64.
extern int imported(int *);
const char schema[] = "add.Tensor(Tensor self) -> Tensor";

__attribute__((noinline)) static int local(int a) { int b = a; return imported(&b) + 1; }
int exported(int a) { int b[8] = {a}; return imported(b) + local(a); }
int _ZN2at4_ops10add_Tensor4callEv(void) { return exported(3); }
