#include "tests/support/until.h"

#include "common/clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define DEADLINE_NS (120000 * NS_PER_MS)
#define PAUSE_LEAST_NS UINT64_C(100000)
#define PAUSE_MOST_NS (10 * NS_PER_MS)

void until_look_again(struct until *until, const char *condition, const char *file, int line)
{
    uint64_t now_ns = clock_now_ns(&clock_system);

    if (until->began_ns == 0) {
        *until = (struct until){.began_ns = now_ns, .pause_ns = PAUSE_LEAST_NS / 2};
    }
    if (now_ns - until->began_ns > DEADLINE_NS) {
        print_error("waited in vain for: %s\n", condition);
        _fail(file, line);
    }
    until->pause_ns = 2 * until->pause_ns < PAUSE_MOST_NS ? 2 * until->pause_ns : PAUSE_MOST_NS;
    struct timespec pause = {0};
    pause.tv_nsec = (long)until->pause_ns;
    (void)nanosleep(&pause, NULL);
}
