// A block for each row; every thread keeps the best eight of its elements in order, then the block
// takes the best first one of all lists eight times.
#define BLOCK 128
#define LOWEST __int_as_float(0xff800000) // minus infinity
//@ launch topk grid=(R) block=(BLOCK) args=(x, value, column, N)

extern "C" __global__ void __launch_bounds__(BLOCK)
    topk(const float *x, float *value, int *column, int N)
{
    __shared__ float list[8][BLOCK], part[BLOCK];
    __shared__ int list_at[8][BLOCK], part_at[BLOCK], part_thread[BLOCK];
    const float *row = x + (long long)blockIdx.x * N;
    int t = threadIdx.x, next = 0;
    float best[8];
    int at[8];

#pragma unroll
    for (int i = 0; i < 8; i++) {
        best[i] = LOWEST;
        at[i] = 0x7fffffff;
    }
    for (int i = t; i < N; i += BLOCK) {
        float v = row[i];
        int v_at = i;
        if (!(v > best[7]))
            continue;
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (v > best[k] || (v == best[k] && v_at < at[k])) {
                float other = best[k];
                int other_at = at[k];
                best[k] = v;
                at[k] = v_at;
                v = other;
                v_at = other_at;
            }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        list[i][t] = best[i];
        list_at[i][t] = at[i];
    }
    for (int rank = 0; rank < 8; rank++) {
        part[t] = next < 8 ? list[next][t] : LOWEST;
        part_at[t] = next < 8 ? list_at[next][t] : 0x7fffffff;
        part_thread[t] = t;
        __syncthreads();
        for (int step = BLOCK / 2; step > 0; step /= 2) {
            if (t < step && (part[t + step] > part[t] ||
                             (part[t + step] == part[t] && part_at[t + step] < part_at[t]))) {
                part[t] = part[t + step];
                part_at[t] = part_at[t + step];
                part_thread[t] = part_thread[t + step];
            }
            __syncthreads();
        }
        if (t == 0) {
            value[blockIdx.x * 8LL + rank] = part[0];
            column[blockIdx.x * 8LL + rank] = part_at[0];
        }
        if (part_thread[0] == t)
            next++;
        __syncthreads();
    }
}
