#include <cuda_runtime.h>

#include <cstdio>
#include <utility>
#include <vector>

constexpr int kBlockX = 32;
constexpr int kBlockY = 8;

// One cell after one timestep. Walls stay what they are.
__device__ __forceinline__ float once(const float* __restrict__ in, int row, int col, int n,
                                      float r) {
    const size_t c = static_cast<size_t>(row) * n + col;
    const float u = in[c];
    if (row == 0 || col == 0 || row == n - 1 || col == n - 1) return u;
    return u + r * (in[c - 1] + in[c + 1] + in[c - n] + in[c + n] - 4.0f * u);
}

__global__ void heatRecompute(const float* __restrict__ in, float* __restrict__ out, int n,
                              float r) {
    const int col = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
    const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) + 1;
    if (col >= n - 1 || row >= n - 1) return;
    const float centre = once(in, row, col, n, r);
    const float west = once(in, row, col - 1, n, r);
    const float east = once(in, row, col + 1, n, r);
    const float north = once(in, row - 1, col, n, r);
    const float south = once(in, row + 1, col, n, r);
    out[static_cast<size_t>(row) * n + col] =
        centre + r * (west + east + north + south - 4.0f * centre);
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

    const dim3 block(kBlockX, kBlockY);
    const dim3 grid((n - 2 + kBlockX - 1) / kBlockX, (n - 2 + kBlockY - 1) / kBlockY);
    for (int launch = 0; launch < 500; ++launch) {
        heatRecompute<<<grid, block>>>(now, next, n, r);
        std::swap(now, next);
    }
    cudaMemcpy(u.data(), now, bytes, cudaMemcpyDeviceToHost);
    std::printf("%s, centre %f\n", cudaGetErrorString(cudaGetLastError()),
                u[static_cast<size_t>(n / 2) * n + n / 2]);
    cudaFree(now);
    cudaFree(next);
    return 0;
}
