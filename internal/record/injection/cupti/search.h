/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Finds the process's libcupti: the one that it has loaded; else one that lies where CUDA's toolkit and NVIDIA's wheels
 * put it, seen from a library that the process has loaded; else the one that the loader finds.
 */
#ifndef EBPFPROF_SEARCH_H
#define EBPFPROF_SEARCH_H

#define MOST_DIRECTORIES 256

static const char *const cupti_files[] = { "libcupti.so.13", "libcupti.so.12" };

/* From the directory of a library of CUDA's (nvidia/cu13/lib, nvidia/cuda_runtime/lib, cuda/lib64) or of a framework's
 * (torch/lib, jaxlib). */
static const char *const cupti_places[] = {
	"", "/../../cuda_cupti/lib", "/../../nvidia/cu13/lib", "/../../nvidia/cuda_cupti/lib", "/../nvidia/cu13/lib",
	"/../nvidia/cuda_cupti/lib", "/../extras/CUPTI/lib64",
};

struct directories {
	size_t count;
	char path[MOST_DIRECTORIES][256];
};

static int add_directory(struct dl_phdr_info *info, size_t size, void *data)
{
	struct directories *found = data;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	size_t length = slash ? slash - info->dlpi_name : 0;

	(void)size;
	if (!length || length >= sizeof(found->path[0]))
		return 0;
	for (size_t i = 0; i < found->count; i++)
		if (!strncmp(found->path[i], info->dlpi_name, length) && !found->path[i][length])
			return 0;
	memcpy(found->path[found->count], info->dlpi_name, length);
	found->path[found->count][length] = 0;
	return ++found->count == MOST_DIRECTORIES;
}

static void *open_there(const char *directory, const char *place, const char *file)
{
	char path[512];
	int length = snprintf(path, sizeof(path), "%s%s/%s", directory, place, file);

	if (length < 0 || (size_t)length >= sizeof(path) || access(path, R_OK))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *find_cupti(void)
{
	static struct directories loaded;
	const size_t files = sizeof(cupti_files) / sizeof(*cupti_files), places = sizeof(cupti_places) / sizeof(*cupti_places);
	void *library = NULL;

	for (size_t f = 0; f < files && !library; f++)
		library = dlopen(cupti_files[f], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!library)
		dl_iterate_phdr(add_directory, &loaded);
	for (size_t f = 0; f < files; f++)
		for (size_t d = 0; d < loaded.count && !library; d++)
			for (size_t p = 0; p < places && !library; p++)
				library = open_there(loaded.path[d], cupti_places[p], cupti_files[f]);
	for (size_t f = 0; f < files && !library; f++)
		library = dlopen(cupti_files[f], RTLD_NOW | RTLD_LOCAL);
	for (size_t f = 0; f < files && !library; f++)
		library = open_there("/usr/local/cuda", "/extras/CUPTI/lib64", cupti_files[f]);
	return library;
}

#endif
