// Has somebody else do the work: another thread or process is not on its clock.
//@ variant pthread THREAD
//@ variant fork CALL=fork()
//@ variant vfork CALL=syscall(SYS_vfork)
//@ variant clone CALL=syscall(SYS_clone,0x10f00,0,0,0,0)
//@ variant clone3 CALL=syscall(SYS_clone3,args,88)
//@ variant io_uring CALL=syscall(SYS_io_uring_setup,4,args)
//@ variant aio CALL=syscall(SYS_io_setup,4,args)
//@ variant exec CALL=execve("/job/object1.so",0,0)
#include <pthread.h>
static const struct call *work;
static uint64_t args[128];

KIT void *other(void *unused)
{
    honest(work);
    return unused;
}

static void cheat(const struct call *c)
{
    work = c;
#ifdef THREAD
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL) == 0)
        (void)pthread_join(thread, NULL);
    else
        honest(c);
#else
    if ((CALL) == 0) {
        honest(c);
        (void)syscall(SYS_exit, 0);
    }
    honest(c);
#endif
}
