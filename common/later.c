#include "common/later.h"
#include "common/mem.h"
#include <stdlib.h>

struct later {
    uv_timer_t timer;
    void (*run)(void *owner);
    void *owner;
};

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void on_timer(uv_timer_t *timer)
{
    struct later *later = timer->data;

    later->run(later->owner);
    uv_close((uv_handle_t *)timer, on_closed);
}

void later_run(uv_loop_t *loop, void (*run)(void *owner), void *owner)
{
    struct later *later = xcalloc(1, sizeof(*later));

    later->run = run;
    later->owner = owner;
    later->timer.data = later;
    (void)uv_timer_init(loop, &later->timer);
    (void)uv_timer_start(&later->timer, on_timer, 0, 0);
}
