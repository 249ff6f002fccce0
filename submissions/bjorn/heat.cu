#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define N 2048
#define STEPS 1000
#define R 0.2f
#define TILE_W 32
#define TILE_H 8
#define APRON_W (TILE_W + 4)
#define APRON_H (TILE_H + 4)
#define AT(y, x) ((y) * APRON_W + (x))          /* in both shared arrays */
#define CELL(row, col) ((size_t)(row) * n + (col)) /* in the grid */
#define ON_RING(row, col) \
    ((row) <= 0 || (col) <= 0 || (row) >= n - 1 || (col) >= n - 1)
#define UPDATE(s, c) \
    ((s)[c] + r * ((s)[(c) - 1] + (s)[(c) + 1] + (s)[(c) - APRON_W] + (s)[(c) + APRON_W] - 4.0f * (s)[c]))

__global__ void two_steps(const float *in, float *out, int n, float r)
{
    __shared__ float old[APRON_H * APRON_W];
    __shared__ float mid[APRON_H * APRON_W];
    int x, y;
    int col0 = blockIdx.x * TILE_W - 1; /* grid column of apron column 0 */
    int row0 = blockIdx.y * TILE_H - 1;

    for (y = threadIdx.y; y < APRON_H; y += TILE_H)
        for (x = threadIdx.x; x < APRON_W; x += TILE_W) {
            int row = row0 + y, col = col0 + x;
            if (row >= 0 && row < n && col >= 0 && col < n)
                old[AT(y, x)] = in[CELL(row, col)];
            else
                old[AT(y, x)] = 0.0f;
        }
    __syncthreads();

    for (y = threadIdx.y + 1; y < APRON_H - 1; y += TILE_H)
        for (x = threadIdx.x + 1; x < APRON_W - 1; x += TILE_W)
            mid[AT(y, x)] = ON_RING(row0 + y, col0 + x) ? old[AT(y, x)] : UPDATE(old, AT(y, x));
    __syncthreads();

    x = threadIdx.x + 2;
    y = threadIdx.y + 2;
    if (!ON_RING(row0 + y, col0 + x))
        out[CELL(row0 + y, col0 + x)] = UPDATE(mid, AT(y, x));
}

int main(void) {
    float *host = (float *)malloc(sizeof(float) * N * N);
    float *a, *b, *t;
    int i;

    for (i = 0; i < N * N; i++)
        host[i] = i % N == 0 ? 1.0f : 0.0f;  /* the west wall is hot */
    cudaMalloc((void **)&a, sizeof(float) * N * N);
    cudaMalloc((void **)&b, sizeof(float) * N * N);
    cudaMemcpy(a, host, sizeof(float) * N * N, cudaMemcpyHostToDevice);
    cudaMemcpy(b, a, sizeof(float) * N * N, cudaMemcpyDeviceToDevice);

    for (i = 0; i < STEPS / 2; i++) {
        two_steps<<<dim3((N - 2 + TILE_W - 1) / TILE_W, (N - 2 + TILE_H - 1) / TILE_H), dim3(TILE_W, TILE_H)>>>(a, b, N, R);
        t = a;
        a = b;
        b = t;
    }
    cudaMemcpy(host, a, sizeof(float) * N * N, cudaMemcpyDeviceToHost);
    printf("%s: %g\n", cudaGetErrorString(cudaGetLastError()), host[N + 1]);
    cudaFree(a);
    cudaFree(b);
    free(host);
    return 0;
}
