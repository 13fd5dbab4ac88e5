#include <pthread.h>
static void *idle(void *p)
{
    return p;
}
void window(const float *x, float *y, int64_t N)
{
    pthread_t thread;
    pthread_create(&thread, 0, idle, 0);
    for (int64_t i = 0; i < N; i++) {
        float sum = 0;
        for (int64_t j = 0; j < 16; j++)
            sum += x[i + j];
        y[i] = sum;
    }
}
