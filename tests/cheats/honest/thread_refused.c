// Starts a thread. A candidate has one core, and is told so by the name of the call or without it.
//@ refused a system call that candidates may not use
#include <pthread.h>
KIT void *other(void *unused)
{
    return unused;
}

static void cheat(const struct call *c)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, other, NULL) == 0)
        (void)pthread_join(thread, NULL);
    honest(c);
}
