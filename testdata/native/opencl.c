/* An OpenCL program without Python: launches "square" a known number of times.
 *
 *   opencl [LAUNCHES] [wait] */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(status)                                                                         \
	do {                                                                                  \
		cl_int failed = (status);                                                     \
		if (failed != CL_SUCCESS) {                                                   \
			fprintf(stderr, "opencl: line %d: error %d\n", __LINE__, failed);     \
			return 1;                                                             \
		}                                                                             \
	} while (0)

static const char *source = "kernel void square(global float *x) {"
			    " size_t i = get_global_id(0); x[i] = x[i] * x[i]; }";

int main(int argc, char **argv)
{
	int wait = argc > 1 && strcmp(argv[argc - 1], "wait") == 0;
	long launches = argc - wait > 1 ? atol(argv[1]) : 100;
	size_t global = 1024, local = 32;
	static float x[1024];
	cl_platform_id platform;
	cl_device_id device;
	cl_int status;

	CHECK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
	CHECK(status);
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
	CHECK(status);
	CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (wait && getchar() == EOF)
		return 1;

	/* After "ready": a tracer attached by now sees the kernel's name. */
	cl_kernel kernel = clCreateKernel(program, "square", &status);
	CHECK(status);
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(x), NULL, &status);
	CHECK(status);
	for (int i = 0; i < 1024; i++)
		x[i] = 1.0f;
	CHECK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
	CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	for (long i = 0; i < launches; i++)
		CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
	CHECK(clFinish(queue));
	CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
	printf("{\"truth\": {\"pid\": %d, \"kernels\": {\"square\": {\"launches\": %ld, "
	       "\"global\": [1024], \"local\": [32]}}, \"writes\": {\"calls\": 1, \"bytes\": 4096}, "
	       "\"reads\": {\"calls\": 1, \"bytes\": 4096}, \"finishes\": 1}}\n",
	       (int)getpid(), launches);
	return x[7] == 1.0f ? 0 : 1;
}
