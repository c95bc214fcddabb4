// The words of OpenCL C that the kernels use, under names of our own; names_cuda.cuh has those of
// another language. kernel_source.cc puts them before the kernels.
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
#define COUNT_OF_BITS(word) popcount(word)
#define COUNT(counter) ((void)atomic_inc((volatile __global uint*)(counter)))
#define LOCAL_OR(word, bits) ((void)atomic_or((volatile __local uint*)(word), bits))
// What was there; it is `to` now if that was `from`.
#define LOCAL_SWAP(word, from, to) atomic_cmpxchg((volatile __local uint*)(word), from, to)

#ifdef WITH_DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define DOUBLE_OF(bits) as_double(bits)
#define BITS_OF_DOUBLE(number) as_ulong(number)
#endif
