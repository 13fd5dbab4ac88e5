// What a candidate may try in a runner, for tests/executor/cpu/test_runner_process.c. The first integer of a call says what, the
// first pointer is where the answer goes. -DACTS_CONSTRUCTOR=N also tries something while the object is loaded.
#include "tests/data/exec/runner/acts.h"
#include "executor/cpu/control.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACE ((void *)0x200000000000) // where nothing else is mapped

static int64_t in_data = 1, in_bss;
static __thread int64_t in_tls;
static int64_t *heap;
static void *last_break;
static int calls;
int64_t acts_constructed; // what the constructor found

static int wait_on(_Atomic uint32_t *word, uint32_t value, const struct timespec *limit)
{
    return (int)syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void say_done(struct control *control)
{
    atomic_store(&control->done, atomic_load(&control->go));
    wake(&control->done);
}

static int64_t used_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void work(int64_t ns)
{
    for (int64_t end = used_ns() + ns; used_ns() < end;)
        ;
}

// Counts up in every place where a process can keep something.
static void keep_state(struct control *control, int64_t *answer)
{
    volatile int64_t *below = (volatile int64_t *)((char *)__builtin_frame_address(0) - (1 << 20));
    int64_t *mapped = mmap(PLACE, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    answer[ACTS_DATA] = in_data++ - 1;
    answer[ACTS_BSS] = in_bss++;
    answer[ACTS_TLS] = in_tls++;
    heap = heap ? heap : calloc(1, 64);
    answer[ACTS_HEAP] = heap[0]++;
    answer[ACTS_STACK] = *below == 4711;
    *below = 4711;
    answer[ACTS_MMAP] = mapped == MAP_FAILED;
    answer[ACTS_BREAK] = last_break && sbrk(0) == last_break;
    last_break = (char *)sbrk(4096) + 4096;
    answer[ACTS_PAGE] = control->trap_value != 0;
    control->trap_value = 1;
}

void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar)
{
    struct control *control =
        (struct control *)(void *)((char *)integer - offsetof(struct control, integer));
    int64_t *answer = pointer[0];
    struct timespec millisecond = {.tv_nsec = 1000000};
    struct rusage before, after;
    _Atomic uint32_t own = 0;

    (void)scalar;
    calls++;
    switch ((enum act)integer[0]) {
    case ACT_STATE:
        keep_state(control, answer);
        break;
    case ACT_ANSWER:
        answer[0] = 42;
        answer[1] = acts_constructed;
        break;
    case ACT_WORK:
        work(ACTS_WORK_NS);
        break;
    case ACT_WORK_AFTER_DONE:
        say_done(control);
        work(ACTS_WORK_NS);
        break;
    case ACT_WORK_FOR_EVER:
        for (;;)
            ;
    case ACT_WORK_FOR_EVER_AFTER_DONE:
        say_done(control);
        for (;;)
            ;
    case ACT_SLEEP_ELSEWHERE:
        say_done(control);
        wait_on(&own, 0, NULL);
        break;
    case ACT_SLEEP_ON_PARK:
        say_done(control);
        wait_on(&control->park, atomic_load(&control->park), NULL);
        break;
    case ACT_SLEEP_UNDONE:
        wait_on(&control->go, atomic_load(&control->go), NULL);
        break;
    case ACT_CHANGE_GO: // the next launch returns from here, and is then served
        say_done(control);
        atomic_store(&control->go, 12345);
        wait_on(&control->go, 12345, NULL);
        break;
    case ACT_CHANGE_GO_AND_RETURN: // is called again at once, as if by a launch
        if (calls == 1) {
            atomic_store(&control->go, 12345);
            work(ACTS_WORK_NS);
        } else if (calls == 2) {
            work(ACTS_WORK_NS);
        }
        break;
    case ACT_SERVE_NOTHING:
        for (;;) {
            uint32_t go = atomic_load(&control->go);
            say_done(control);
            wait_on(&control->go, go, NULL);
        }
    case ACT_WAKE_ITSELF: // needs a wait with a time limit, which the filter refuses
        say_done(control);
        wait_on(&control->go, atomic_load(&control->go), &millisecond);
        work(ACTS_WORK_NS);
        break;
    case ACT_FORGE_SETUP:
        for (int i = 0; i < 64; i++)
            ((uint32_t *)control)[offsetof(struct control, trap) / 4] = 4;
        _exit(1);
    case ACT_SEGV:
        *(volatile int *)8 = 1;
        break;
    case ACT_EXIT:
        exit(7);
    case ACT_ABORT:
        abort();
    case ACT_STOP_PARENT:
        for (int pid = 1; pid < 8; pid++)
            syscall(SYS_tgkill, pid, pid, SIGSTOP);
        break;
    case ACT_REMOVE_MEMORY:
        madvise((void *)((uintptr_t)answer & ~(uintptr_t)4095), 4096, MADV_REMOVE);
        break;
    case ACT_FORK:
        syscall(SYS_clone, SANDBOX_FORK_FLAGS, 0, 0, 0, 0);
        break;
    case ACT_MEMBARRIER:
        syscall(SYS_membarrier, 1, 0, 0);
        break;
    case ACT_DESCRIPTORS:
        for (int fd = 0; fd < 64; fd++)
            answer[0] |= fcntl(fd, F_GETFD) >= 0 ? (int64_t)1 << fd : 0;
        break;
    case ACT_FAULTS:
        getrusage(RUSAGE_SELF, &before);
        for (int64_t page = 0; page < ACTS_PAGES; page++)
            answer[page * 512] = page + ((const volatile int64_t *)pointer[1])[page * 512];
        getrusage(RUSAGE_SELF, &after);
        answer[0] = after.ru_minflt - before.ru_minflt;
        break;
    case ACT_SLEEP_AND_RETURN:
        nanosleep(&(struct timespec){.tv_nsec = ACTS_WORK_NS}, NULL);
        break;
    }
}

#ifdef ACTS_CONSTRUCTOR
__attribute__((constructor)) static void construct(void)
{
    static const char *const path[] = {"/job/left", "left", "../job/left", "/job/object0.so",
                                       "object0.so"};
    struct runner_message forged = {.kind = MESSAGE_SETUP_FAILED, .text = "forged"};

    switch ((enum acts_constructor)ACTS_CONSTRUCTOR) {
    case ACTS_LOAD_LEAVES_FILES:
        for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++)
            acts_constructed += open(path[i], O_RDONLY) >= 0;
        for (size_t i = 0; i < 3; i++)
            open(path[i], O_WRONLY | O_CREAT, 0666);
        break;
    case ACTS_LOAD_FORGES:
        (void)!write(SANDBOX_SOCKET, &forged, sizeof(forged));
        _exit(1);
    case ACTS_LOAD_CALLS_SOCKET:
        syscall(SYS_socket, 1, 1, 0);
        break;
    case ACTS_LOAD_SEGV:
        *(volatile int *)8 = 1;
        break;
    case ACTS_LOAD_ABORTS:
        abort();
    case ACTS_LOAD_EXITS:
        exit(0);
    case ACTS_LOAD_HANGS:
        for (;;)
            ;
    }
}
#endif
