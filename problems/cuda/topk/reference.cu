// A block for each row takes the largest element that comes after the one before, eight times: the
// order is by value, largest first, and by column among equals. Both results are exact.
//@ launch reference grid=(R) block=(256) args=(x, value, value_scale, column, column_scale, N)

extern "C" __global__ void reference(const float *x, double *value, double *value_scale,
                                     double *column, double *column_scale, int N)
{
    __shared__ float part[256];
    __shared__ int where[256];
    const float *row = x + (long long)blockIdx.x * N;
    int t = threadIdx.x, last_at = -1;
    float last = 0;

    for (int rank = 0; rank < 8; rank++) {
        float best = 0;
        int at = -1;

        for (int i = t; i < N; i += 256) {
            bool after = rank == 0 || row[i] < last || (row[i] == last && i > last_at);
            if (after && (at < 0 || row[i] > best)) {
                best = row[i];
                at = i;
            }
        }
        part[t] = best;
        where[t] = at;
        __syncthreads();
        for (int step = 128; step > 0; step /= 2) {
            if (t < step && where[t + step] >= 0) {
                bool better = where[t] < 0 || part[t + step] > part[t] ||
                              (part[t + step] == part[t] && where[t + step] < where[t]);
                if (better) {
                    part[t] = part[t + step];
                    where[t] = where[t + step];
                }
            }
            __syncthreads();
        }
        last = part[0];
        last_at = where[0];
        __syncthreads();
        if (t == 0) {
            long long out = blockIdx.x * 8LL + rank;
            value[out] = last;
            value_scale[out] = fabs((double)last);
            column[out] = last_at;
            column_scale[out] = 0;
        }
    }
}
