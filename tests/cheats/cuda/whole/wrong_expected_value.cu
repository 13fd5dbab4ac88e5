// expect: wrong
// problem: softmax
// Gives the value that is to be expected on average, without looking.
//@ launch guess grid=(R) block=(256) args=(y, N)
extern "C" __global__ void guess(float *y, int N)
{
    for (int i = threadIdx.x; i < N; i += 256) {
        y[(long long)blockIdx.x * N + i] = 1.0f / N;
    }
}
