// variables.cubin is this file: nvcc -std=c++17 -arch=sm_90a -cubin -o variables.cubin variables.cu
__device__ int counter;
__device__ float table[7];
__device__ int first = 3;
__constant__ int coefficients[4] = {1, 2, 3, 4};

extern "C" __global__ void fk_axpy_state(const float *x, float *y, int n, float a)
{
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    s[threadIdx.x & 63] = a;
    __syncthreads();
    if (i < n) {
        y[i] += s[i & 63] * x[i] + coefficients[n & 3];
    }
    if (i == 0) {
        counter++;
        table[n & 1] = first++;
    }
}

template <int N> __global__ void fk_copy(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        y[i] = x[i];
    }
}
template __global__ void fk_copy<4>(const float *, float *, int);
