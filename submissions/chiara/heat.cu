#include <cuda_runtime.h>

#include <cstdio>
#include <utility>
#include <vector>

constexpr int kTileX = 32;                // cells that one block writes
constexpr int kTileY = 8;
constexpr int kApronX = kTileX + 4;       // two cells more on every side
constexpr int kApronY = kTileY + 4;
constexpr int kApronCells = kApronX * kApronY;
constexpr int kMidX = kTileX + 2;         // what the first step must advance
constexpr int kMidY = kTileY + 2;
constexpr int kMidCells = kMidX * kMidY;

__global__ void heatTwoStep(const float* __restrict__ in,
                            float* __restrict__ out, int n, float r) {
    __shared__ float start[kApronY][kApronX];
    __shared__ float middle[kMidY][kMidX];

    const int firstCol = static_cast<int>(blockIdx.x) * kTileX + 1;
    const int firstRow = static_cast<int>(blockIdx.y) * kTileY + 1;
    const int threads = static_cast<int>(blockDim.x * blockDim.y);
    const int me = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);

    for (int s = me; s < kApronCells; s += threads) {
        const int y = s / kApronX;
        const int x = s % kApronX;
        const int row = firstRow - 2 + y;
        const int col = firstCol - 2 + x;
        const bool inGrid = row >= 0 && row < n && col >= 0 && col < n;
        start[y][x] = inGrid ? in[static_cast<size_t>(row) * n + col] : 0.0f;
    }
    __syncthreads();

    // First step: the tile and one cell around it.
    for (int s = me; s < kMidCells; s += threads) {
        const int y = s / kMidX;
        const int x = s % kMidX;
        const float centre = start[y + 1][x + 1];
        middle[y][x] = centre + r * (start[y + 1][x] + start[y + 1][x + 2] +
                                     start[y][x + 1] + start[y + 2][x + 1] -
                                     4.0f * centre);
    }
    __syncthreads();

    // Second step: the tile itself, straight to global memory.
    const int col = firstCol + static_cast<int>(threadIdx.x);
    const int row = firstRow + static_cast<int>(threadIdx.y);
    if (col < n - 1 && row < n - 1) {
        const int x = static_cast<int>(threadIdx.x) + 1;
        const int y = static_cast<int>(threadIdx.y) + 1;
        const float centre = middle[y][x];
        out[static_cast<size_t>(row) * n + col] =
            centre + r * (middle[y][x - 1] + middle[y][x + 1] +
                          middle[y - 1][x] + middle[y + 1][x] - 4.0f * centre);
    }
}

int main() {
    const int n = 2048;
    const float r = 0.2f;
    const size_t bytes = sizeof(float) * n * n;

    std::vector<float> u(static_cast<size_t>(n) * n, 0.5f);
    for (int i = 0; i < n; ++i) u[i] = 1.0f;  // the north wall is hot

    float *now, *next;
    cudaMalloc(&now, bytes);
    cudaMalloc(&next, bytes);
    cudaMemcpy(now, u.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(next, u.data(), bytes, cudaMemcpyHostToDevice);

    const dim3 block(kTileX, kTileY);
    const dim3 grid((n - 2 + kTileX - 1) / kTileX, (n - 2 + kTileY - 1) / kTileY);
    for (int launch = 0; launch < 500; ++launch) {
        heatTwoStep<<<grid, block>>>(now, next, n, r);
        std::swap(now, next);
    }
    cudaMemcpy(u.data(), now, bytes, cudaMemcpyDeviceToHost);
    std::printf("%s, centre %f\n", cudaGetErrorString(cudaGetLastError()),
                u[static_cast<size_t>(n / 2) * n + n / 2]);
    cudaFree(now);
    cudaFree(next);
    return 0;
}
