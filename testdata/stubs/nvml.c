/* A stub of NVIDIA's management library, libnvidia-ml.so.1: two made-up GPUs
 * whose answers tracer/counter/nvml_test.go knows. Signatures, structs and
 * constants follow NVML's public manual (API 12). GPU 0 has every counter; GPU 1
 * is an older one, which says "not supported" to the rest.
 *
 * A file named in STUB_NVML_HANG makes every reading wait for as long as the
 * file exists, as a wedged driver does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

struct device { int index; } devices[2] = {{0}, {1}};
typedef struct device *nvmlDevice_t;

static unsigned readings[2]; /* of the memory, which every reading asks for */

static void hang(void)
{
	const char *file = getenv("STUB_NVML_HANG");
	while (file && access(file, F_OK) == 0)
		usleep(1000);
}

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlInit(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int result) { return result == GPU_IS_LOST ? "GPU is lost (stub)" : "an error of the stub"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *device)
{
	if (i > 1)
		return INVALID_ARGUMENT;
	*device = &devices[i];
	return SUCCESS;
}

int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	snprintf(uuid, length, "GPU-stub-%d", device->index);
	return SUCCESS;
}

struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *m)
{
	hang();
	unsigned n = readings[device->index]++;
	if (getenv("STUB_NVML_LOST"))
		return GPU_IS_LOST;
	m->total = 80ull << 30;
	m->used = (10ull + n) << 30;
	m->free = m->total - m->used;
	return SUCCESS;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
	*milliwatts = 350500 + 1000 * device->index;
	return SUCCESS;
}

int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius)
{
	if (sensor != 0)
		return INVALID_ARGUMENT;
	*celsius = 61 + device->index;
	return SUCCESS;
}

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *megahertz)
{
	(void)device;
	*megahertz = type == 1 ? 1980 : type == 2 ? 2619 : 0;
	return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, unsigned rates[2])
{
	rates[0] = 40 + device->index;
	rates[1] = 20 + device->index;
	return SUCCESS;
}

/* Software power cap and hardware slowdown on GPU 0, idle on GPU 1. */
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
	*reasons = device->index == 0 ? 0x4 | 0x8 : 0x1;
	return SUCCESS;
}

int nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter, unsigned *kilobytes)
{
	(void)device;
	*kilobytes = counter == 0 ? 1111 : 2222;
	return SUCCESS;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
	if (device->index)
		return NOT_SUPPORTED;
	*millijoules = 5000000ull + 350000ull * readings[0];
	return SUCCESS;
}

struct violation { unsigned long long reference, violation; };
int nvmlDeviceGetViolationStatus(nvmlDevice_t device, int policy, struct violation *v)
{
	if (device->index || policy > 1)
		return NOT_SUPPORTED;
	v->reference = readings[0] * 1000000ull;
	v->violation = readings[0] * (policy == 0 ? 7000000ull : 3000000ull);
	return SUCCESS;
}

/* Six samples a reading, a sixth of a second apart: 50, 51, … 55 percent. */
struct sample { unsigned long long timestamp; union { unsigned u; unsigned long long ull; } value; };
int nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since, int *value_type, unsigned *count, struct sample *samples)
{
	if (device->index || (type != 1 && type != 2))
		return NOT_SUPPORTED;
	*value_type = 1;
	if (!samples) {
		*count = 6;
		return SUCCESS;
	}
	if (!since)
		since = 1000000000;
	for (unsigned i = 0; i < 6; i++) {
		memset(&samples[i], 0xff, sizeof samples[i]); /* what is beyond the value is not 0 */
		samples[i].timestamp = since + 166667 * (i + 1);
		samples[i].value.u = (type == 1 ? 50 : 30) + i;
	}
	*count = 6;
	return SUCCESS;
}

struct field { unsigned id, scope; long long timestamp, latency; unsigned value_type, result; unsigned long long value; };
int nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, struct field *fields)
{
	for (int i = 0; i < count; i++) {
		struct field *f = &fields[i];
		f->value_type = 3;
		f->result = device->index ? NOT_SUPPORTED : SUCCESS;
		switch (f->id) {
		case 138: f->value = 1000ull * readings[0]; break; /* NVLink sent, KiB */
		case 139: f->value = 3000ull * readings[0]; break;
		case 197: f->value = 5000000ull * readings[0]; break; /* PCIe sent, bytes */
		case 198: f->value = 9000000ull * readings[0]; break;
		default: f->result = INVALID_ARGUMENT;
		}
		if (f->id <= 139 && f->scope != ~0u)
			f->result = INVALID_ARGUMENT;
	}
	return SUCCESS;
}

struct process { unsigned pid; unsigned long long timestamp; unsigned sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct process *processes, unsigned *count, unsigned long long since)
{
	if (device->index)
		return NOT_FOUND; /* nothing ran */
	if (!processes) {
		*count = 2;
		return INSUFFICIENT_SIZE;
	}
	*count = 2;
	processes[0] = (struct process){4242, since + 500000, 33, 12, 0, 0};
	processes[1] = (struct process){0, 0, 99, 99, 99, 99}; /* an empty slot */
	return SUCCESS;
}

struct gpm_support { unsigned version, supported; };
int nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct gpm_support *s)
{
	s->supported = device->index == 0;
	return SUCCESS;
}

struct gpm_sample { unsigned number; };
int nvmlGpmSampleAlloc(struct gpm_sample **s) { return *s = calloc(1, sizeof **s), SUCCESS; }
int nvmlGpmSampleFree(struct gpm_sample *s) { return free(s), SUCCESS; }
int nvmlGpmSampleGet(nvmlDevice_t device, struct gpm_sample *s)
{
	(void)device;
	static unsigned taken;
	s->number = ++taken;
	return SUCCESS;
}

struct gpm_metric { unsigned id, result; double value; char *name, *unit, *label; };
struct gpm_metrics { unsigned version, count; struct gpm_sample *older, *newer; struct gpm_metric metric[]; };
/* A metric's value is its id and a tenth of how many samples lie between. */
int nvmlGpmMetricsGet(struct gpm_metrics *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		m->metric[i].result = m->metric[i].id == 9 ? NOT_SUPPORTED : SUCCESS;
		m->metric[i].value = m->metric[i].id + 0.1 * ((int)m->newer->number - (int)m->older->number);
	}
	return SUCCESS;
}
#endif
