#pragma once

// The device as kernels see it, and the only header of device things they include. Under nvcc it is CUDA and
// some PTX, otherwise the SIMT emulator, with the same names:
//
//   FT_LAUNCH(kernel, grid, block, dynamic_smem_bytes, stream, arguments...)
//   FT_LAUNCH_DEPENDENT(...)  the same, but the kernel may start before its predecessor has ended; everything
//   that it
//                             reads of others it must read after ft::grid_dependency_wait()
//   FT_DYN_SMEM(name)         unsigned char name[], dynamic shared memory aligned to 128 bytes
//   FT_SHARED(type, name, n)  type name[n], static shared memory; plain __shared__ exists only under nvcc
//
// CUDA's own: threadIdx and its like, __syncthreads, __syncwarp, __shfl*_sync, __ballot_sync, __any_sync,
// __all_sync,
// __ldg, vector types, and the arithmetic named in simt/builtins.hpp. In namespace ft: bf16, fp8 and int8
// conversions, exp2_fast, log2_fast, cp_async*, ldmatrix*, mma_bf16, grid_dependency_*.
#if defined(__CUDACC__)
#include "kernels/cuda/device_ptx.hpp"
#else
#include "kernels/cuda/simt/builtins.hpp"
#include "kernels/cuda/simt/tensor.hpp"
#endif
