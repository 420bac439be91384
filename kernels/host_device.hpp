#pragma once

// Functions marked so are compiled for the host and, by a CUDA compiler, for the device too.
#if defined(__CUDACC__)
#define FT_HOST_DEVICE __host__ __device__
#else
#define FT_HOST_DEVICE
#endif
