// The words of the kernels' source in CUDA C++, as names_opencl.cl has them for OpenCL. The build
// puts them before each program that it hands to nvcc.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define KERNEL extern "C" __global__
#define ITEMS_ARE(count) __launch_bounds__(count)
#define DEVICE static __device__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT static __constant__
#define GROUP(dimension) ((dimension) == 0 ? blockIdx.x : blockIdx.y)
#define ITEM threadIdx.x
#define WAIT_FOR_GROUP() __syncthreads()
#define FLOAT_OF(bits) __uint_as_float(bits)
#define BITS_OF(number) __float_as_uint(number)
#define NEAREST(x) rintf(x)
#define COUNT_OF_BITS(word) ((uint)__popc(word))
#define COUNT(counter) ((void)atomicAdd(counter, 1u))
#define LOCAL_OR(word, bits) ((void)atomicOr(word, bits))
#define LOCAL_SWAP(word, from, to) atomicCAS(word, from, to)
#define DOUBLE_OF(bits) __longlong_as_double((long long)(bits))
#define BITS_OF_DOUBLE(number) ((ulong)__double_as_longlong(number))

// In assembly, so that PTX tells those that were written from any that a compiler has contracted.
static __device__ float FusedMultiplyAdd(float a, float b, float c) {
  float sum;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(a), "f"(b), "f"(c));
  return sum;
}
#define FMA(a, b, c) FusedMultiplyAdd(a, b, c)

// No intrinsic of CUDA's takes unsigned codes and signed activations.
static __device__ int DotOfFour(uint codes, uint x) {
  int sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(codes), "r"(x), "r"(0));
  return sum;
}
#define DOT4(codes, x) DotOfFour(codes, x)
