// The words of OpenCL C that exact_kernels.cl uses, under names of our own: another language that
// compiles the kernels brings a file like this one. kernel_source.cc puts it before the kernels.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL __kernel
#define ITEMS_ARE(count) __attribute__((reqd_work_group_size(count, 1, 1)))
#define DEVICE  // a function that kernels call
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define GROUP(dimension) ((uint)get_group_id(dimension))
#define ITEM ((uint)get_local_id(0))
#define WAIT_FOR_GROUP() barrier(CLK_LOCAL_MEM_FENCE)
#define FLOAT_OF(bits) as_float(bits)
#define BITS_OF(number) as_uint(number)
#define FMA(a, b, c) fma(a, b, c)
#define NEAREST(x) rint(x)
