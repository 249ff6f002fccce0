// Stands for the toolkit's header where nvcc came without it.
#pragma once
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
