// The host side of the CUDA runtime, just enough to compile: none of it ever runs.
#pragma once

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoDevice = 100,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
};
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100, cudaSharedmemCarveoutMaxL1 = 0 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitPersistingL2CacheSize = 6 };
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct CUmemPoolHandle_st* cudaMemPool_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef unsigned long long cudaTextureObject_t;

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaHostRegisterReadOnly 0x08
#define cudaEventInterprocess 0x04
#define cudaDeviceScheduleAuto 0x00
#define cudaDeviceScheduleSpin 0x01
#define cudaDeviceScheduleYield 0x02
#define cudaDeviceScheduleBlockingSync 0x04
#define cudaDeviceMapHost 0x08
#define cudaMemAttachGlobal 0x01
#define cudaMemAttachHost 0x02
#define cudaMemAttachSingle 0x04
#define cudaOccupancyDefault 0x00
#define cudaPeerAccessDefault 0x00
#define cudaCpuDeviceId ((int)-1)
#define cudaInvalidDeviceId ((int)-2)
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, totalConstMem, memPitch;
    int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor;
    int maxThreadsDim[3], maxGridSize[3];
    int clockRate, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, major, minor, multiProcessorCount;
    int integrated, canMapHostMemory, concurrentKernels, asyncEngineCount, unifiedAddressing, managedMemory, cooperativeLaunch;
    int ECCEnabled, pciBusID, pciDeviceID, pciDomainID, concurrentManagedAccess, pageableMemoryAccess, computeMode;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
struct cudaExtent { size_t width, height, depth; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
struct cudaPointerAttributes { int type, device; void *devicePointer, *hostPointer; };
struct cudaChannelFormatDesc { int x, y, z, w, f; };
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore, cudaLaunchAttributeCooperative = 2, cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeProgrammaticStreamSerialization = 6, cudaLaunchAttributePriority = 8 };
union cudaLaunchAttributeValue {
    int cooperative, priority, programmaticStreamSerializationAllowed;
    struct { unsigned x, y, z; } clusterDim;
};
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; };
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute* attrs = nullptr;
    unsigned int numAttrs = 0;
};
typedef cudaLaunchConfig_t cudaLaunchConfig_st;

// Any arguments, any order: nvcc has already checked the types.
#define HG_API(name)                                                                                                 \
    template <class... Any>                                                                                          \
    inline cudaError_t name(const Any&...) { return cudaSuccess; }
HG_API(cudaMalloc) HG_API(cudaMallocHost) HG_API(cudaMallocManaged) HG_API(cudaMallocPitch) HG_API(cudaMallocAsync)
HG_API(cudaHostAlloc) HG_API(cudaHostRegister) HG_API(cudaHostUnregister) HG_API(cudaHostGetDevicePointer)
HG_API(cudaFree) HG_API(cudaFreeHost) HG_API(cudaFreeAsync) HG_API(cudaMemGetInfo)
HG_API(cudaMemcpy) HG_API(cudaMemcpyAsync) HG_API(cudaMemcpy2D) HG_API(cudaMemcpy2DAsync) HG_API(cudaMemset)
HG_API(cudaMemsetAsync) HG_API(cudaMemset2D) HG_API(cudaMemcpyToSymbol) HG_API(cudaMemcpyFromSymbol)
HG_API(cudaMemcpyToSymbolAsync) HG_API(cudaMemcpyFromSymbolAsync) HG_API(cudaGetSymbolAddress) HG_API(cudaGetSymbolSize)
HG_API(cudaMemPrefetchAsync) HG_API(cudaMemAdvise) HG_API(cudaPointerGetAttributes)
HG_API(cudaEventCreate) HG_API(cudaEventCreateWithFlags) HG_API(cudaEventRecord) HG_API(cudaEventSynchronize)
HG_API(cudaEventElapsedTime) HG_API(cudaEventDestroy) HG_API(cudaEventQuery)
HG_API(cudaStreamCreate) HG_API(cudaStreamCreateWithFlags) HG_API(cudaStreamCreateWithPriority)
HG_API(cudaStreamSynchronize) HG_API(cudaStreamDestroy) HG_API(cudaStreamWaitEvent) HG_API(cudaStreamQuery)
HG_API(cudaStreamBeginCapture) HG_API(cudaStreamEndCapture) HG_API(cudaStreamSetAttribute)
HG_API(cudaGraphInstantiate) HG_API(cudaGraphLaunch) HG_API(cudaGraphDestroy) HG_API(cudaGraphExecDestroy) HG_API(cudaGraphCreate)
HG_API(cudaGraphUpload)
HG_API(cudaGetDevice) HG_API(cudaSetDevice) HG_API(cudaGetDeviceCount) HG_API(cudaGetDeviceProperties)
HG_API(cudaDeviceGetAttribute) HG_API(cudaDeviceSetLimit) HG_API(cudaDeviceGetLimit) HG_API(cudaDeviceSetCacheConfig)
HG_API(cudaDeviceSetSharedMemConfig) HG_API(cudaSetDeviceFlags) HG_API(cudaDriverGetVersion) HG_API(cudaRuntimeGetVersion)
HG_API(cudaFuncSetAttribute) HG_API(cudaFuncGetAttributes) HG_API(cudaFuncSetCacheConfig) HG_API(cudaFuncSetSharedMemConfig)
HG_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor) HG_API(cudaOccupancyMaxPotentialBlockSize)
HG_API(cudaOccupancyAvailableDynamicSMemPerBlock)
HG_API(cudaProfilerStart) HG_API(cudaProfilerStop)
// These are handed kernels by name, which only decay to pointers when taken by value.
#define HG_API_BY_VALUE(name)                                                                                        \
    template <class... Any>                                                                                          \
    inline cudaError_t name(Any...) { return cudaSuccess; }
HG_API_BY_VALUE(cudaLaunchKernel) HG_API_BY_VALUE(cudaLaunchCooperativeKernel)
template <class... Expected, class... Actual>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t*, void (*)(Expected...), Actual&&...) { return cudaSuccess; }
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaThreadSynchronize() { return cudaSuccess; }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return ""; }
inline const char* cudaGetErrorName(cudaError_t) { return ""; }
inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) { return {p, pitch, x, y}; }
template <class T> inline cudaChannelFormatDesc cudaCreateChannelDesc() { return {}; }
#undef HG_API
#undef HG_API_BY_VALUE
