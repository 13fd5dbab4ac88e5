#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
void window(const float *x, float *y, int64_t N)
{
    int word = 0;
    (void)x, (void)y, (void)N;
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
}
