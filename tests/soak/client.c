// Design. Each step is a random choice among what can be done with the jobs that are open. A job is
// open until its ACK was answered. Until then the same key must give the same job, and the same end
// with the same content, however often the client asks.
#include "common/file.h"
#include "tests/soak/client_state.h"
#include "tests/soak/connect.h"
#include "tests/soak/journal.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

uint64_t client_below(struct client *client, uint64_t n)
{
    return stats_rng_below(&client->rng, n);
}

static void pause_ms(uint64_t ms)
{
    (void)usleep((useconds_t)(ms * 1000));
}

static bool stopping(const struct client *client)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", client->plan.dir, SOAK_STOP);
    return file_exists(path);
}

// ---- the journal ----

static struct item *add_item(struct client *client, unsigned index)
{
    client->item = xgrow(client->item, client->count, sizeof(*client->item));
    struct item *item = &client->item[client->count++];
    memset(item, 0, sizeof(*item));
    item->index = index;
    return item;
}

static void on_line(void *owner, const struct journal_line *line)
{
    struct client *client = owner;

    if (line->what == 's' && line->index == client->count) {
        (void)add_item(client, line->index);
        return;
    }
    if (line->index >= client->count) {
        return;
    }
    struct item *item = &client->item[line->index];
    switch (line->what) {
    case 'a':
        item->accepted = true;
        item->job = line->first;
        break;
    case 'c':
        item->cancelled = true;
        break;
    case 'C':
        item->cancel_answered = true;
        item->cancel_state = line->first;
        break;
    case 'r':
        item->delivered = true;
        item->state = line->first;
        item->hash = line->second;
        break;
    case 'k':
        item->acking = true;
        break;
    case 'b':
    case 'K':
        item->closed = true;
        break;
    default:
        break;
    }
}

// Reads the whole journal. Only open jobs get their content again.
static void load(struct client *client)
{
    journal_read(client->plan.dir, client->plan.number, on_line, client);
    for (size_t i = 0; i < client->count; i++) {
        if (!client->item[i].closed) {
            content_make(&client->item[i].content, client->plan.seed, client->plan.real,
                         client->plan.number, client->item[i].index);
        }
    }
}

static size_t open_items(struct client *client, struct item *open[OPEN_MAX_JOBS])
{
    size_t count = 0;

    for (size_t i = client->count; i > 0 && count < OPEN_MAX_JOBS; i--) {
        if (!client->item[i - 1].closed) {
            open[count++] = &client->item[i - 1];
        }
    }
    return count;
}

void client_close_item(struct item *item)
{
    item->closed = true;
    content_release(&item->content);
}

// ---- steps ----

static void begin(struct client *client)
{
    struct item *item = add_item(client, (unsigned)client->count);

    content_make(&item->content, client->plan.seed, client->plan.real, client->plan.number,
                 item->index);
    journal_add(client->journal, "s %u\n", item->index);
    client_put_source(client, item);
    client_submit(client, item);
    if (item->accepted && client_below(client, 20) == 0) {
        client_cancel(client, item); // while it is still at its beginning
    }
}

static void wait_step(struct client *client, struct item **open, size_t count)
{
    struct item *some[OPEN_MAX_JOBS];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        // A delivered job ends the WAIT at once, so it is asked for only now and then.
        if (open[i]->accepted && (!open[i]->delivered || client_below(client, 4) == 0)) {
            some[used++] = open[i];
        }
    }
    if (used > 0) {
        client_wait(client, some, used, 200 + client_below(client, 1800));
    }
}

static void step_with(struct client *client, struct item *item)
{
    uint64_t at = client_below(client, 100);

    if (!item->accepted) {
        client_submit(client, item);
    } else if (item->acking) {
        client_acknowledge(client, item);
    } else if (at < 8) {
        client_submit(client, item);
    } else if (at < 10) {
        client_reuse_key(client, item);
    } else if (at < 14 || (item->delivered && at < 16)) {
        client_cancel(client, item);
    } else if (item->delivered && at < 75) {
        client_acknowledge(client, item);
    }
}

// A job that was acknowledged must stay unknown.
static void check_acknowledged(struct client *client)
{
    struct item *item = &client->item[client_below(client, client->count)];

    if (item->closed && item->accepted) {
        client_expect_gone(client, item);
    }
}

static void step(struct client *client, bool stop)
{
    struct item *open[OPEN_MAX_JOBS];
    size_t count = open_items(client, open);

    if (!stop && count < OPEN_MAX_JOBS && client_below(client, 3) != 0) {
        begin(client);
        return;
    }
    if (count == 0) {
        return;
    }
    if (client_below(client, 50) == 0) {
        check_acknowledged(client);
    }
    for (size_t i = 0; i < count; i++) {
        step_with(client, open[i]);
    }
    wait_step(client, open, open_items(client, open));
}

static void set_up(struct client *client, const struct client_plan *plan)
{
    char *log = xasprintf("%s/%s", plan->dir, SOAK_LOG);

    memset(client, 0, sizeof(*client));
    client->plan = *plan;
    stats_rng_init(&client->rng, plan->seed, ((uint64_t)plan->life << 32) | plan->number);
    client->journal = journal_open(plan->dir, plan->number);
    client->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    free(log);
    if (client->log < 0 || uv_loop_init(&client->loop) != 0) {
        abort();
    }
    client->remote = soak_connect(&client->loop, plan->url, plan->dir, plan->number % SOAK_TENANTS);
    load(client);
}

static void tear_down(struct client *client)
{
    remote_close(client->remote);
    (void)uv_run(&client->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&client->loop);
    close(client->journal);
    close(client->log);
    free(client->item);
}

int client_run(const struct client_plan *plan)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct client client;
    set_up(&client, plan);
    struct item *open[OPEN_MAX_JOBS];
    bool stop;
    while (!(stop = stopping(&client)) || open_items(&client, open) > 0) {
        step(&client, stop);
        if (!stop && plan->think_ms > 0) {
            pause_ms(client_below(&client, plan->think_ms));
        }
    }
    tear_down(&client);
    return 0;
}
