// What Debian's libstdc++.a and libgcc_eh.a want of a C library newer than manylinux_2_28 has.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

// crtbegin.o has it where the compiler's own start files are linked. A program's is null.
__attribute__((visibility("hidden"))) void *__dso_handle = 0;

// glibc 2.32: never said to be single-threaded, libstdc++ uses atomics.
char __libc_single_threaded = 0;

// glibc 2.36.
uint32_t arc4random(void) {
	uint32_t random;
	while (getrandom(&random, sizeof random, 0) != sizeof random) {
	}
	return random;
}

// glibc 2.35. An exception in C++ finds the tables of its frames with it; without, the first one would end the program.
struct search {
	uintptr_t address;
	struct dl_find_object *found;
};

static int visit(struct dl_phdr_info *info, size_t size, void *context) {
	(void)size;
	struct search *search = context;
	const ElfW(Phdr) *code = 0, *frames = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && search->address - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
			code = h;
		if (h->p_type == PT_GNU_EH_FRAME)
			frames = h;
	}
	if (!code || !frames)
		return 0;
	memset(search->found, 0, sizeof *search->found);
	search->found->dlfo_map_start = (void *)(info->dlpi_addr + code->p_vaddr);
	search->found->dlfo_map_end = (char *)search->found->dlfo_map_start + code->p_memsz;
	search->found->dlfo_eh_frame = (void *)(info->dlpi_addr + frames->p_vaddr);
	return 1;
}

__attribute__((visibility("hidden"))) int _dl_find_object(void *address, struct dl_find_object *found) {
	struct search search = {(uintptr_t)address, found};
	return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
