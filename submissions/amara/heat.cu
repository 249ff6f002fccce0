// heat.cu: the 2D heat equation on a GPU, and what its memory traffic costs.
//
//   build   nvcc -std=c++17 -O3 -arch=sm_75 -o heat heat.cu
//   run     ./heat
//   exit    0 every check held, 1 a check failed, 2 a CUDA call failed
//
// The kernels, all with the parameters (in, out, n, r):
//   copyGrid        copies every cell: no arithmetic, so no stencil can beat it
//   heatStepGlobal  one timestep, five words read from global memory a cell
//   heatStepTiled   one timestep, neighbours read from a tile in shared memory
//   yours           two timesteps a launch; see "Your two-step kernel", just
//                   above main
//
// The grid is n x n floats, row by row. Its outermost cells are the ring: walls
// that keep their temperature for ever. All other cells are the interior.

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

constexpr int kN = 2048;            // cells along one side of the grid
constexpr int kSteps = 1000;        // timesteps of a long run
constexpr int kCheckSteps = 4;      // timesteps compared with the CPU
constexpr int kStabilitySteps = 400;
constexpr float kR = 0.2f;          // alpha * dt / h^2; stable up to 1/4
constexpr int kWarmups = 3;
constexpr int kRuns = 10;

constexpr int kTileX = 32;          // one warp a row of the tile
constexpr int kTileY = 8;
constexpr int kHalo = 1;            // cells of apron on each side of the tile
constexpr int kSharedX = kTileX + 2 * kHalo;
constexpr int kSharedY = kTileY + 2 * kHalo;
constexpr int kSharedCells = kSharedX * kSharedY;
constexpr float kCold = 0.0f;       // stands in for cells outside the grid

// The scheme averages for r <= 1/4, so rounding errors add up and never grow:
// two forms of the same update may part by this much a step, times max |u|.
constexpr double kRoundingPerStep = 16.0 / 16777216.0;

#define CUDA_CHECK(call) checkCuda((call), #call, __LINE__)

void checkCuda(cudaError_t status, const char* call, int line) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "heat.cu:%d: %s: %s\n", line, call,
                 cudaGetErrorString(status));
    std::exit(2);
}

// ---------------------------------------------------------------------------
// The shipped kernels
// ---------------------------------------------------------------------------

__global__ void copyGrid(const float* __restrict__ in, float* __restrict__ out,
                         int n, float r) {
    const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    if (col < n && row < n) {
        const size_t c = static_cast<size_t>(row) * n + col;
        out[c] = in[c];
    }
}

__global__ void heatStepGlobal(const float* __restrict__ in,
                               float* __restrict__ out, int n, float r) {
    // The + 1 skips the ring, so the first block starts on an interior cell.
    const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
    const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) + 1;
    if (col >= n - 1 || row >= n - 1) return;  // no barrier below: safe

    const size_t stride = static_cast<size_t>(n);
    const size_t c = row * stride + col;
    const float centre = in[c];
    out[c] = centre + r * (in[c - 1] + in[c + 1] + in[c - stride] +
                           in[c + stride] - 4.0f * centre);
}

__global__ void heatStepTiled(const float* __restrict__ in,
                              float* __restrict__ out, int n, float r) {
    __shared__ float cells[kSharedY][kSharedX];

    const int firstCol = static_cast<int>(blockIdx.x) * kTileX + 1;
    const int firstRow = static_cast<int>(blockIdx.y) * kTileY + 1;

    // 256 threads fill 340 cells, so some threads load twice. Cells that lie
    // outside the grid must not be read; no result depends on them.
    const int threads = static_cast<int>(blockDim.x * blockDim.y);
    const int me = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    for (int s = me; s < kSharedCells; s += threads) {
        const int y = s / kSharedX;
        const int x = s % kSharedX;
        const int row = firstRow - kHalo + y;
        const int col = firstCol - kHalo + x;
        const bool inGrid = row >= 0 && row < n && col >= 0 && col < n;
        cells[y][x] = inGrid ? in[static_cast<size_t>(row) * n + col] : kCold;
    }
    __syncthreads();  // every thread gets here, whatever it owns

    const int col = firstCol + static_cast<int>(threadIdx.x);
    const int row = firstRow + static_cast<int>(threadIdx.y);
    if (col < n - 1 && row < n - 1) {
        const int x = static_cast<int>(threadIdx.x) + kHalo;
        const int y = static_cast<int>(threadIdx.y) + kHalo;
        const float centre = cells[y][x];
        out[static_cast<size_t>(row) * n + col] =
            centre + r * (cells[y][x - 1] + cells[y][x + 1] + cells[y - 1][x] +
                          cells[y + 1][x] - 4.0f * centre);
    }
}

// ---------------------------------------------------------------------------
// Launches: one host function a kernel, so that the harness need not know
// which block or grid a kernel wants.
// ---------------------------------------------------------------------------

using Launch = void (*)(const float* in, float* out, int n, float r);

int divUp(int cells, int tile) { return (cells + tile - 1) / tile; }

void launchCopy(const float* in, float* out, int n, float r) {
    const dim3 block(kTileX, kTileY);
    const dim3 grid(divUp(n, kTileX), divUp(n, kTileY));  // ring included
    copyGrid<<<grid, block>>>(in, out, n, r);
}

void launchGlobal(const float* in, float* out, int n, float r) {
    const dim3 block(kTileX, kTileY);
    const dim3 grid(divUp(n - 2, kTileX), divUp(n - 2, kTileY));
    heatStepGlobal<<<grid, block>>>(in, out, n, r);
}

void launchTiled(const float* in, float* out, int n, float r) {
    const dim3 block(kTileX, kTileY);
    const dim3 grid(divUp(n - 2, kTileX), divUp(n - 2, kTileY));
    heatStepTiled<<<grid, block>>>(in, out, n, r);
}

// ---------------------------------------------------------------------------
// The grids
// ---------------------------------------------------------------------------

size_t cellCount(int n) { return static_cast<size_t>(n) * n; }

// Four walls of different temperature and one warm patch off the centre: with
// no symmetry in the data, a kernel that mixes up directions cannot look right.
std::vector<float> initialGrid(int n) {
    std::vector<float> u(cellCount(n), kCold);
    for (int row = n / 8; row < n / 4; ++row) {
        for (int col = n / 3; col < n / 2; ++col) {
            u[static_cast<size_t>(row) * n + col] = 0.9f;
        }
    }
    for (int i = 0; i < n; ++i) {
        u[static_cast<size_t>(i) * n] = 0.75f;          // west
        u[static_cast<size_t>(i) * n + n - 1] = 0.5f;   // east
        u[static_cast<size_t>(n - 1) * n + i] = 0.25f;  // south
        u[i] = 1.0f;                                    // north
    }
    return u;
}

// The two device buffers of one simulation. A step reads `now` and writes
// `next`; then the two pointers change places and no data moves.
struct Buffers {
    float* now = nullptr;
    float* next = nullptr;
    int n = 0;

    explicit Buffers(int side) : n(side) {
        CUDA_CHECK(cudaMalloc(&now, bytes()));
        CUDA_CHECK(cudaMalloc(&next, bytes()));
    }
    ~Buffers() {
        CUDA_CHECK(cudaFree(now));
        CUDA_CHECK(cudaFree(next));
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

    size_t bytes() const { return cellCount(n) * sizeof(float); }

    // Both buffers need the ring: the kernels never write it.
    void fill(const std::vector<float>& u) {
        CUDA_CHECK(cudaMemcpy(now, u.data(), bytes(), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(next, u.data(), bytes(), cudaMemcpyHostToDevice));
    }
    void copyTo(std::vector<float>& u) const {
        CUDA_CHECK(cudaMemcpy(u.data(), now, bytes(), cudaMemcpyDeviceToHost));
    }
    void advance(Launch launch, float r) {
        launch(now, next, n, r);
        CUDA_CHECK(cudaGetLastError());  // a refused launch says so only here
        std::swap(now, next);
    }
};

// Time between two points of the default stream, as the GPU saw it.
struct Stopwatch {
    cudaEvent_t start{};
    cudaEvent_t stop{};

    Stopwatch() {
        CUDA_CHECK(cudaEventCreate(&start));
        CUDA_CHECK(cudaEventCreate(&stop));
    }
    ~Stopwatch() {
        CUDA_CHECK(cudaEventDestroy(start));
        CUDA_CHECK(cudaEventDestroy(stop));
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    void begin() { CUDA_CHECK(cudaEventRecord(start)); }
    float endMs() {
        float ms = 0.0f;
        CUDA_CHECK(cudaEventRecord(stop));
        CUDA_CHECK(cudaEventSynchronize(stop));
        CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
        return ms;
    }
};

// ---------------------------------------------------------------------------
// Checks
// ---------------------------------------------------------------------------

double maxAbs(const std::vector<float>& u) {
    double largest = 0.0;
    for (float v : u) {
        if (std::fabs(v) > largest) largest = std::fabs(v);
    }
    return largest;
}

bool allFinite(const std::vector<float>& u) {
    for (float v : u) {
        if (!std::isfinite(v)) return false;
    }
    return true;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Names the first cell, in row order, that is further than `tolerance` from
// what it should be. Written as !(d <= t) so that NaN counts as a mismatch.
template <typename Real>
bool sameGrid(const char* name, const std::vector<float>& got,
              const std::vector<Real>& expected, int n, double tolerance) {
    for (size_t c = 0; c < got.size(); ++c) {
        const double difference = std::fabs(got[c] - static_cast<double>(expected[c]));
        if (!(difference <= tolerance)) {
            std::printf("FAILED %s: row %zu, column %zu is %.9g, should be %.9g\n",
                        name, c / n, c % n, got[c], static_cast<double>(expected[c]));
            return false;
        }
    }
    return true;
}

// No tolerance here: nothing may touch a wall.
bool sameRing(const char* name, const std::vector<float>& got,
              const std::vector<float>& initial, int n) {
    for (size_t c = 0; c < got.size(); ++c) {
        const size_t row = c / n, col = c % n, last = static_cast<size_t>(n) - 1;
        const bool ring = row == 0 || col == 0 || row == last || col == last;
        if (ring && std::memcmp(&got[c], &initial[c], sizeof(float)) != 0) {
            std::printf("FAILED %s: ring cell at row %zu, column %zu is %.9g, was %.9g\n",
                        name, row, col, got[c], initial[c]);
            return false;
        }
    }
    return true;
}

std::vector<double> cpuSteps(const std::vector<float>& initial, int n, int steps,
                             float r) {
    std::vector<double> now(initial.begin(), initial.end());
    std::vector<double> next = now;
    const size_t stride = static_cast<size_t>(n);
    for (int step = 0; step < steps; ++step) {
        for (int row = 1; row < n - 1; ++row) {
            for (int col = 1; col < n - 1; ++col) {
                const size_t c = row * stride + col;
                next[c] = now[c] + r * (now[c - 1] + now[c + 1] + now[c - stride] +
                                        now[c + stride] - 4.0 * now[c]);
            }
        }
        std::swap(now, next);
    }
    return now;
}

// Before anything is timed: a few steps against double precision.
bool checkAgainstCpu(Buffers& buffers, const std::vector<float>& initial) {
    const int n = buffers.n;
    const std::vector<double> expected = cpuSteps(initial, n, kCheckSteps, kR);
    const double tolerance = kCheckSteps * kRoundingPerStep * maxAbs(initial);

    const std::pair<const char*, Launch> kernels[] = {
        {"heatStepGlobal", launchGlobal}, {"heatStepTiled", launchTiled}};
    std::vector<float> got(initial.size());
    bool ok = true;
    for (const auto& [name, launch] : kernels) {
        buffers.fill(initial);
        for (int step = 0; step < kCheckSteps; ++step) buffers.advance(launch, kR);
        buffers.copyTo(got);
        ok &= sameGrid(name, got, expected, n, tolerance);
        ok &= sameRing(name, got, initial, n);
    }
    return ok;
}

// ---------------------------------------------------------------------------
// The three parts
// ---------------------------------------------------------------------------

void printReadsRow(const char* name, double words, double cellSteps) {
    std::printf("%-22s %8.3f\n", name, words / cellSteps);
}

void printReads() {
    std::printf("\nWords read from global memory per updated cell, from the constants\n");
    printReadsRow("heatStepGlobal", 5, 1);
    printReadsRow("heatStepTiled", kSharedCells, kTileX * kTileY);
}

double meanStepMs(Buffers& buffers, Launch launch) {
    Stopwatch watch;
    for (int run = 0; run < kWarmups; ++run) buffers.advance(launch, kR);
    watch.begin();
    for (int run = 0; run < kRuns; ++run) buffers.advance(launch, kR);
    return watch.endMs() / kRuns;
}

void partOne(Buffers& buffers, const std::vector<float>& initial) {
    const std::pair<const char*, Launch> kernels[] = {
        {"copyGrid", launchCopy},
        {"heatStepGlobal", launchGlobal},
        {"heatStepTiled", launchTiled}};

    std::printf("\nPart 1: one step, mean of %d after %d warm-ups\n", kRuns, kWarmups);
    std::printf("%-22s %10s %9s %10s\n", "kernel", "time (ms)", "GB/s", "% of copy");
    double copyMs = 0.0;
    for (const auto& [name, launch] : kernels) {
        buffers.fill(initial);
        const double ms = meanStepMs(buffers, launch);
        if (launch == launchCopy) copyMs = ms;
        // One read and one write a cell is the least that any kernel can move.
        const double gbPerSecond = 2.0 * buffers.bytes() / (ms * 1e6);
        std::printf("%-22s %10.3f %9.1f %10.1f\n", name, ms, gbPerSecond,
                    100.0 * copyMs / ms);
    }
}

// Runs heatStepTiled for kSteps and copies the grid to the host after every
// `every` steps (0: never). The final grid is fetched after the clock stops.
double timedRunMs(Buffers& buffers, const std::vector<float>& initial, int every,
                  std::vector<float>& last) {
    Stopwatch watch;
    buffers.fill(initial);
    watch.begin();
    for (int step = 1; step <= kSteps; ++step) {
        buffers.advance(launchTiled, kR);
        if (every > 0 && step % every == 0) buffers.copyTo(last);
    }
    const double ms = watch.endMs();
    buffers.copyTo(last);
    return ms;
}

bool partTwo(Buffers& buffers, const std::vector<float>& initial) {
    struct Policy {
        const char* name;
        int every;
    };
    const Policy policies[] = {{"never copied back", 0},
                               {"copied every 100 steps", 100},
                               {"copied every step", 1}};

    std::printf("\nPart 2: %d steps of heatStepTiled, three copy policies\n", kSteps);
    std::printf("%-24s %10s %14s %14s %9s\n", "policy", "total (ms)", "per step (ms)",
                "to host (GiB)", "vs row 1");

    std::vector<float> first(initial.size()), last(initial.size());
    timedRunMs(buffers, initial, 0, first);  // discarded: clocks and caches settle
    bool ok = true;
    double firstMs = 0.0;
    for (const Policy& policy : policies) {
        const double ms = timedRunMs(buffers, initial, policy.every, last);
        if (policy.every == 0) {
            firstMs = ms;
            first = last;
        }
        const double copies = policy.every > 0 ? kSteps / policy.every : 0;
        const double gib = copies * buffers.bytes() / (1024.0 * 1024.0 * 1024.0);
        std::printf("%-24s %10.3f %14.3f %14.1f %9.1f\n", policy.name, ms,
                    ms / kSteps, gib, ms / firstMs);
        if (!sameBits(first, last)) {
            std::printf("FAILED: the copy policy changed the final grid\n");
            ok = false;
        }
    }
    if (ok) std::printf("The three final grids agree bit for bit.\n");
    return ok;
}

bool partThree(Buffers& buffers, const std::vector<float>& initial) {
    std::printf("\nPart 3: %d steps at three timesteps, starting from max |u| = %.3f\n",
                kStabilitySteps, maxAbs(initial));
    std::printf("%8s %9s %11s %14s %8s\n", "r", "1 - 4r", "|1 - 8r|", "max |u|",
                "finite");

    bool ok = true;
    std::vector<float> last(initial.size());
    for (float r : {0.24f, 0.25f, 0.26f}) {
        buffers.fill(initial);
        for (int step = 0; step < kStabilitySteps; ++step) {
            buffers.advance(launchTiled, r);
        }
        buffers.copyTo(last);
        const bool finite = allFinite(last);
        std::printf("%8.3f %9.3f %11.3f %14.6g %8s\n", r, 1.0 - 4.0 * r,
                    std::fabs(1.0 - 8.0 * r), maxAbs(last), finite ? "yes" : "no");
        // Up to 1/4 every new value is an average of old ones. Past it, growth
        // is what the part is there to show, and no failure.
        if (r <= 0.25f && !finite) {
            std::printf("FAILED: not finite at a stable r\n");
            ok = false;
        }
    }
    return ok;
}

// ---------------------------------------------------------------------------
// Your two rows. Nothing to change here: it runs once kTwoStepLaunch is set.
// ---------------------------------------------------------------------------

double longRunMs(Buffers& buffers, const std::vector<float>& initial, Launch launch,
                 int launches, std::vector<float>& last) {
    Stopwatch watch;
    double ms = 0.0;
    for (int pass = 0; pass < 2; ++pass) {  // the first pass only warms up
        buffers.fill(initial);
        watch.begin();
        for (int i = 0; i < launches; ++i) buffers.advance(launch, kR);
        ms = watch.endMs();
    }
    buffers.copyTo(last);
    return ms;
}

bool reportTwoStep(Buffers& buffers, const std::vector<float>& initial,
                   const char* name, Launch launch, int wordsRead, int cellsWritten) {
    if (launch == nullptr) {
        std::printf("\nNo two-step kernel yet.\n");
        return true;
    }
    std::vector<float> expected(initial.size()), got(initial.size());
    const double tiledMs =
        longRunMs(buffers, initial, launchTiled, kSteps, expected) / kSteps;
    const double twoStepMs =
        longRunMs(buffers, initial, launch, kSteps / 2, got) / kSteps;

    std::printf("\nYour two rows: words read a cell-step, then time a timestep and its\n"
                "ratio to heatStepTiled (above 1: slower)\n");
    printReadsRow(name, wordsRead, 2.0 * cellsWritten);
    std::printf("%-22s %8.3f ms %7.2fx\n", name, twoStepMs, twoStepMs / tiledMs);

    const double tolerance = kSteps * kRoundingPerStep * maxAbs(initial);
    bool ok = sameGrid(name, got, expected, buffers.n, tolerance);
    ok &= sameRing(name, got, initial, buffers.n);
    return ok;
}

// ===========================================================================
// Your two-step kernel
//
// 1. Write it below. The parameters stay as they are; the name is yours. It
//    advances the grid from `in` to `out` by two timesteps, for any n and r.
//
//        __global__ void heatTwoStep(const float* __restrict__ in,
//                                    float* __restrict__ out, int n, float r) {
//            ...
//        }
//
// 2. Write its launch. The grader reads the block, the grid and the shared
//    memory from this statement.
//
//        void launchTwoStep(const float* in, float* out, int n, float r) {
//            const dim3 block(kTileX, kTileY);
//            const dim3 grid(divUp(n - 2, kTileX), divUp(n - 2, kTileY));
//            heatTwoStep<<<grid, block>>>(in, out, n, r);
//        }
//
//    Only if the grader says that it cannot work your launch out: put a comment
//    of this form, without the dash, anywhere in the file. Every key is optional.
//
//        -grader: kernel=heatTwoStep block=32x8 tile=32x8 shared=0
// ---------------------------------------------------------------------------

// The tile is a template parameter, so that other shapes can be tried by editing
// the two figures of kWideX and kWideY.
template <int TX, int TY>
__global__ void heatTwice(const float* __restrict__ in, float* __restrict__ out, int n,
                          float r) {
    constexpr int AX = TX + 4, AY = TY + 4;  // apron
    constexpr int MX = TX + 2, MY = TY + 2;  // first step
    __shared__ float start[AY][AX];
    __shared__ float middle[MY][MX];

    const int left = static_cast<int>(blockIdx.x) * TX + 1;
    const int top = static_cast<int>(blockIdx.y) * TY + 1;
    const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
    const int stepX = static_cast<int>(blockDim.x), stepY = static_cast<int>(blockDim.y);

    for (int y = ty; y < AY; y += stepY) {
        for (int x = tx; x < AX; x += stepX) {
            const int row = top - 2 + y, col = left - 2 + x;
            const bool inGrid = row >= 0 && row < n && col >= 0 && col < n;
            start[y][x] = inGrid ? in[static_cast<size_t>(row) * n + col] : 0.0f;
        }
    }
    __syncthreads();
    for (int y = ty; y < MY; y += stepY) {
        for (int x = tx; x < MX; x += stepX) {
            const int row = top - 1 + y, col = left - 1 + x;
            const float u = start[y + 1][x + 1];
            const bool interior = row > 0 && row < n - 1 && col > 0 && col < n - 1;
            middle[y][x] = !interior ? u
                                     : u + r * (start[y + 1][x] + start[y + 1][x + 2] +
                                                start[y][x + 1] + start[y + 2][x + 1] - 4.0f * u);
        }
    }
    __syncthreads();
    for (int y = ty; y < TY; y += stepY) {
        for (int x = tx; x < TX; x += stepX) {
            const int row = top + y, col = left + x;
            if (row >= n - 1 || col >= n - 1) continue;
            const float u = middle[y + 1][x + 1];
            out[static_cast<size_t>(row) * n + col] =
                u + r * (middle[y + 1][x] + middle[y + 1][x + 2] + middle[y][x + 1] +
                         middle[y + 2][x + 1] - 4.0f * u);
        }
    }
}

constexpr int kWideX = 64;
constexpr int kWideY = 16;

void launchTwoStep(const float* in, float* out, int n, float r) {
    const dim3 block(kWideX, kWideY / 2);
    const dim3 grid(divUp(n - 2, kWideX), divUp(n - 2, kWideY));
    heatTwice<kWideX, kWideY><<<grid, block>>>(in, out, n, r);
}

// 3. Tell main about it: the launch, and the two numbers of your reads row.

constexpr Launch kTwoStepLaunch = launchTwoStep;
constexpr const char* kTwoStepName = "heatTwice";
constexpr int kTwoStepWordsRead = (kWideX + 4) * (kWideY + 4);  // by one block, from `in`
constexpr int kTwoStepCells = kWideX * kWideY;  // that one block writes

// 4. Run the program, copy your two rows into the block below, and say in one
//    sentence when you would ship this kernel.
/*
rows:

ship:
*/
// ===========================================================================

int main() {
    cudaDeviceProp device{};
    CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
    std::printf("GPU: %s (compute capability %d.%d)\n", device.name, device.major,
                device.minor);
    std::printf("Grid: %d x %d cells; tile %d x %d from an apron of %d x %d\n", kN, kN,
                kTileX, kTileY, kSharedX, kSharedY);

    const std::vector<float> initial = initialGrid(kN);
    Buffers buffers(kN);

    if (!checkAgainstCpu(buffers, initial)) return 1;  // no point in timing it
    printReads();
    partOne(buffers, initial);
    bool ok = partTwo(buffers, initial);
    ok &= partThree(buffers, initial);

    ok &= reportTwoStep(buffers, initial, kTwoStepName, kTwoStepLaunch,
                        kTwoStepWordsRead, kTwoStepCells);

    std::printf("\n%s\n", ok ? "All checks held." : "A check FAILED.");
    return ok ? 0 : 1;
}
