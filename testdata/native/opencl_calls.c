/* Calls every OpenCL function that the tracer's catalog has, once or a few
 * times, and prints what each was asked and what it answered, in order.
 *
 *   opencl_calls [wait] */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *separator = "";

/* One call: bytes is -1 where the call says none. */
static cl_int tell(const char *name, cl_int status, long long bytes, const char *direction)
{
	printf("%s{\"name\": \"%s\", \"status\": %d, \"bytes\": %lld, \"direction\": \"%s\"}", separator,
	       name, status, bytes, direction);
	separator = ", ";
	return status;
}

#define PLAIN(name, ...) tell(#name, name(__VA_ARGS__), -1, "")
#define COPY(name, bytes, direction, ...) tell(#name, name(__VA_ARGS__), bytes, direction)
/* A call that returns something, and its status behind its last argument. */
#define MAKE(what, name, bytes, ...)                                                               \
	do {                                                                                       \
		what = name(__VA_ARGS__, &status);                                                 \
		tell(#name, status, bytes, "");                                                    \
	} while (0)

static const char *source = "kernel void square(global float *x) { x[get_global_id(0)] *= x[get_global_id(0)]; }"
			    "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }";

static void CL_CALLBACK native(void *arguments) { **(int **)arguments = 7; }

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_program program;
static cl_kernel square, twice;
static cl_mem first, second;
static cl_int status;
static char host[4096];

static void kernels(void)
{
	size_t global = 1024, local = 32;
	cl_kernel both[2], clone;
	cl_event event;
	char name[64];

	MAKE(square, clCreateKernel, -1, program, "square");
	MAKE(clone, clCreateKernel, -1, program, "absent");
	PLAIN(clCreateKernelsInProgram, program, 2, both, NULL);
	for (int i = 0; i < 2; i++) {
		cl_uint arguments;

		PLAIN(clGetKernelInfo, both[i], CL_KERNEL_NUM_ARGS, sizeof(arguments), &arguments, NULL);
		PLAIN(clGetKernelInfo, both[i], CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
		if (strcmp(name, "twice") == 0)
			twice = both[i];
	}
	clSetKernelArg(square, 0, sizeof(first), &first);
	clSetKernelArg(twice, 0, sizeof(first), &first);
	MAKE(clone, clCloneKernel, -1, twice);
	tell("square", clEnqueueNDRangeKernel(queue, square, 1, NULL, &global, &local, 0, NULL, NULL), -1, "");
	tell("twice", clEnqueueNDRangeKernel(queue, twice, 1, NULL, &global, NULL, 0, NULL, &event), -1, "");
	if (clone)
		tell("twice", clEnqueueTask(queue, clone, 0, NULL, NULL), -1, "");
	PLAIN(clWaitForEvents, 1, &event);
	clReleaseEvent(event);
	int done = 0, *argument = &done;
	tell("clEnqueueNativeKernel", clEnqueueNativeKernel(queue, native, &argument, sizeof(argument), 0, NULL, NULL, 0, NULL, NULL), -1, "");
}

static void copies(void)
{
	size_t origin[3] = {0, 0, 0}, region[3] = {16, 8, 4};
	int pattern = 5;

	COPY(clEnqueueWriteBuffer, 4096, "host_to_device", queue, first, CL_TRUE, 0, 4096, host, 0, NULL, NULL);
	COPY(clEnqueueReadBuffer, 100, "device_to_host", queue, first, CL_FALSE, 8, 100, host, 0, NULL, NULL);
	COPY(clEnqueueReadBuffer, 9999, "device_to_host", queue, first, CL_TRUE, 0, 9999, host, 0, NULL, NULL);
	COPY(clEnqueueWriteBufferRect, 512, "host_to_device", queue, first, CL_TRUE, origin, origin, region, 32, 256, 32, 256, host, 0, NULL, NULL);
	COPY(clEnqueueReadBufferRect, 512, "device_to_host", queue, first, CL_TRUE, origin, origin, region, 32, 256, 32, 256, host, 0, NULL, NULL);
	COPY(clEnqueueCopyBuffer, 1024, "device_to_device", queue, first, second, 0, 0, 1024, 0, NULL, NULL);
	COPY(clEnqueueCopyBufferRect, 512, "device_to_device", queue, first, second, origin, origin, region, 32, 256, 32, 256, 0, NULL, NULL);
	COPY(clEnqueueFillBuffer, 2048, "", queue, second, &pattern, sizeof(pattern), 0, 2048, 0, NULL, NULL);
	PLAIN(clEnqueueMigrateMemObjects, queue, 1, &first, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL);
	void *mapped;
	MAKE(mapped, clEnqueueMapBuffer, 256, queue, first, CL_TRUE, CL_MAP_READ, 0, 256, 0, NULL, NULL);
	PLAIN(clEnqueueUnmapMemObject, queue, first, mapped, 0, NULL, NULL);
	MAKE(mapped, clEnqueueMapBuffer, 5000, queue, first, CL_TRUE, CL_MAP_READ, 0, 5000, 0, NULL, NULL);
}

static void images(void)
{
	cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
	cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
	size_t origin[3] = {0, 0, 0}, region[3] = {8, 8, 1}, row = 0;
	float colour[4] = {1, 0, 0, 1};
	cl_mem a, b;

	MAKE(a, clCreateImage, -1, context, CL_MEM_READ_WRITE, &format, &description, NULL);
	MAKE(b, clCreateImage2D, -1, context, CL_MEM_READ_WRITE, &format, 8, 8, 0, NULL);
	if (!a || !b)
		return;
	PLAIN(clEnqueueFillImage, queue, a, colour, origin, region, 0, NULL, NULL);
	COPY(clEnqueueWriteImage, -1, "host_to_device", queue, a, CL_TRUE, origin, region, 0, 0, host, 0, NULL, NULL);
	COPY(clEnqueueReadImage, -1, "device_to_host", queue, a, CL_TRUE, origin, region, 0, 0, host, 0, NULL, NULL);
	COPY(clEnqueueCopyImage, -1, "device_to_device", queue, a, b, origin, origin, region, 0, NULL, NULL);
	COPY(clEnqueueCopyImageToBuffer, -1, "device_to_device", queue, a, first, origin, region, 0, 0, NULL, NULL);
	COPY(clEnqueueCopyBufferToImage, -1, "device_to_device", queue, first, a, 0, origin, region, 0, NULL, NULL);
	void *mapped;
	MAKE(mapped, clEnqueueMapImage, -1, queue, a, CL_TRUE, CL_MAP_READ, origin, region, &row, NULL, 0, NULL, NULL);
	PLAIN(clEnqueueUnmapMemObject, queue, a, mapped, 0, NULL, NULL);
	PLAIN(clFinish, queue);
	PLAIN(clReleaseMemObject, a);
	PLAIN(clReleaseMemObject, b);
	MAKE(a, clCreateImage3D, -1, context, CL_MEM_READ_ONLY, &format, 4, 4, 4, 0, 0, NULL);
	if (a)
		PLAIN(clReleaseMemObject, a);
}

static void shared(void)
{
	int pattern = 3;
	char *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 8192, 0);

	tell("clSVMAlloc", memory ? 0 : -1, 8192, "");
	void *none = clSVMAlloc(context, CL_MEM_READ_WRITE, 0, 0);
	tell("clSVMAlloc", none ? 0 : -1, 0, "");
	if (!memory)
		return;
	COPY(clEnqueueSVMMap, 8192, "", queue, CL_TRUE, CL_MAP_WRITE, memory, 8192, 0, NULL, NULL);
	PLAIN(clEnqueueSVMUnmap, queue, memory, 0, NULL, NULL);
	COPY(clEnqueueSVMMemFill, 4096, "", queue, memory, &pattern, sizeof(pattern), 4096, 0, NULL, NULL);
	COPY(clEnqueueSVMMemcpy, 1000, "", queue, CL_TRUE, memory, host, 1000, 0, NULL, NULL);
	PLAIN(clEnqueueSVMMigrateMem, queue, 1, (const void **)&memory, NULL, 0, 0, NULL, NULL);
	PLAIN(clFinish, queue);
	clSVMFree(context, memory);
	tell("clSVMFree", 0, -1, "");
	memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
	tell("clSVMAlloc", memory ? 0 : -1, 64, "");
	PLAIN(clEnqueueSVMFree, queue, 1, (void **)&memory, NULL, NULL, 0, NULL, NULL);
}

static void waits(void)
{
	cl_event events[3], marker;
	cl_int state;
	cl_ulong time;
	int pattern = 1;

	for (int i = 0; i < 3; i++)
		COPY(clEnqueueFillBuffer, 64, "", queue, second, &pattern, sizeof(pattern), 0, 64, 0, NULL, &events[i]);
	PLAIN(clFlush, queue);
	PLAIN(clGetEventInfo, events[0], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL);
	PLAIN(clWaitForEvents, 3, events);
	PLAIN(clGetEventProfilingInfo, events[1], CL_PROFILING_COMMAND_START, sizeof(time), &time, NULL);
	PLAIN(clGetEventProfilingInfo, events[1], CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL);
	PLAIN(clEnqueueMarker, queue, &marker);
	PLAIN(clEnqueueMarkerWithWaitList, queue, 1, events, NULL);
	PLAIN(clEnqueueBarrier, queue);
	PLAIN(clEnqueueBarrierWithWaitList, queue, 0, NULL, NULL);
	PLAIN(clWaitForEvents, 1, &marker);
	PLAIN(clFinish, queue);
	MAKE(marker, clCreateUserEvent, -1, context);
	PLAIN(clWaitForEvents, 0, NULL);
}

static void memory(void)
{
	cl_mem pinned, hosts, part, pipe;
	cl_buffer_region region = {0, 256};

	MAKE(pinned, clCreateBuffer, 512, context, CL_MEM_ALLOC_HOST_PTR, 512, NULL);
	MAKE(hosts, clCreateBuffer, 4096, context, CL_MEM_USE_HOST_PTR, 4096, host);
	MAKE(part, clCreateBuffer, 0, context, CL_MEM_READ_WRITE, 0, NULL);
	MAKE(part, clCreateSubBuffer, 256, first, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
	MAKE(pipe, clCreatePipe, 160, context, CL_MEM_READ_WRITE, 16, 10, NULL);
	if (pipe)
		PLAIN(clReleaseMemObject, pipe);
	if (part)
		PLAIN(clReleaseMemObject, part);
	PLAIN(clRetainMemObject, pinned);
	PLAIN(clReleaseMemObject, pinned);
	PLAIN(clReleaseMemObject, pinned);
	PLAIN(clReleaseMemObject, hosts);
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_context typed;
	cl_command_queue other;
	cl_program from;
	cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
	const unsigned char *binary = (const unsigned char *)"x";
	size_t length = 1;

	if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "wait") == 0 && getchar() == EOF)
		return 1;

	printf("{\"truth\": {\"pid\": %d, \"calls\": [", (int)getpid());
	PLAIN(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	tell("clCreateContext", status, -1, "");
	typed = clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, NULL, NULL, &status);
	tell("clCreateContextFromType", status, -1, "");
	MAKE(queue, clCreateCommandQueue, -1, context, device, CL_QUEUE_PROFILING_ENABLE);
	MAKE(other, clCreateCommandQueueWithProperties, -1, context, device, properties);
	MAKE(program, clCreateProgramWithSource, -1, context, 1, &source, NULL);
	MAKE(from, clCreateProgramWithBinary, -1, context, 1, &device, &length, &binary, NULL);
	MAKE(from, clCreateProgramWithIL, -1, context, "x", 1);
	MAKE(from, clCreateProgramWithBuiltInKernels, -1, context, 1, &device, "absent");
	PLAIN(clCompileProgram, program, 1, &device, "", 0, NULL, NULL, NULL, NULL);
	from = clLinkProgram(context, 1, &device, "", 1, &program, NULL, NULL, &status);
	tell("clLinkProgram", 0, -1, "");
	(void)from;
	MAKE(program, clCreateProgramWithSource, -1, context, 1, &source, NULL);
	PLAIN(clBuildProgram, program, 1, &device, "", NULL, NULL);
	MAKE(first, clCreateBuffer, 4096, context, CL_MEM_READ_WRITE, 4096, NULL);
	MAKE(second, clCreateBufferWithProperties, 4096, context, NULL, CL_MEM_READ_WRITE, 4096, NULL);
	copies();
	kernels();
	images();
	shared();
	waits();
	memory();
	PLAIN(clReleaseMemObject, first);
	PLAIN(clReleaseMemObject, second);
	PLAIN(clReleaseCommandQueue, other);
	PLAIN(clReleaseCommandQueue, queue);
	PLAIN(clReleaseProgram, program);
	PLAIN(clReleaseContext, typed);
	printf("]}}\n");
	return 0;
}
