// Design note. A list takes memory from its first part to its last, so the long ones stand in a
// line: one of each caller at a time, and LISTS_AT_ONCE altogether.
#include "daemon/list_reply.h"
#include "daemon/jobs/listing.h"
#include "daemon/status.h"
#include "daemon/store/line.h"
#include <stdlib.h>

#define LISTS_AT_ONCE 8

struct list_replies {
    const struct daemon_parts *parts;
    struct line *line;
    size_t pending;
};

struct list_reply {
    struct list_replies *replies;
    struct exchange *exchange;
    struct listing *listing;
    bool status;   // the answer to STATUS, else to CANCEL
    bool searches; // of STATUS: with searches, because it was not asked about some jobs alone
    bool in_line;  // it is a long list
    struct line_place place;
};

struct list_replies *list_replies_create(const struct daemon_parts *parts)
{
    struct list_replies *replies = xcalloc(1, sizeof(*replies));

    replies->parts = parts;
    replies->line = line_create(LISTS_AT_ONCE, 1);
    return replies;
}

void list_replies_free(struct list_replies *replies)
{
    if (replies) {
        line_free(replies->line);
        free(replies);
    }
}

size_t list_replies_pending(const struct list_replies *replies)
{
    return replies->pending;
}

static void send_list(struct list_reply *reply)
{
    struct job_infos infos;
    struct status status;

    if (reply->status) {
        status_fill(&status, reply->replies->parts, exchange_caller(reply->exchange),
                    reply->searches);
        listing_take(reply->listing, &status.jobs, &status.jobs_count);
        exchange_reply(reply->exchange, &status_message, &status);
        message_clear(&status_message, &status);
    } else {
        message_init(&job_infos_message, &infos);
        listing_take(reply->listing, &infos.jobs, &infos.jobs_count);
        exchange_reply(reply->exchange, &job_infos_message, &infos);
        message_clear(&job_infos_message, &infos);
    }
}

// Does one part of the list in each turn.
static void go_on(void *owner)
{
    struct list_reply *reply = owner;

    if (!listing_step(reply->listing)) {
        exchange_later(reply->exchange, go_on, reply);
        return;
    }
    send_list(reply);
    reply->replies->pending--;
    listing_free(reply->listing);
    if (reply->in_line) {
        line_leave(&reply->place);
    }
    free(reply);
}

static void on_turn(void *owner)
{
    struct list_reply *reply = owner;

    exchange_later(reply->exchange, go_on, reply);
}

static void begin(struct list_replies *replies, struct exchange *exchange,
                  const struct status_request *request, bool status)
{
    struct list_reply *reply = xcalloc(1, sizeof(*reply));

    *reply = (struct list_reply){.replies = replies,
                                 .exchange = exchange,
                                 .status = status,
                                 .searches = request->all ||
                                             (request->jobs_count == 0 && !request->search)};
    reply->listing = listing_create(replies->parts, exchange_caller(exchange), request);
    reply->in_line = !listing_is_short(reply->listing);
    replies->pending++;
    if (reply->in_line) {
        line_enter(replies->line, &reply->place, exchange_turn_name(exchange), on_turn, reply);
    } else {
        go_on(reply);
    }
}

void list_reply_status(struct list_replies *replies, struct exchange *exchange,
                       const struct status_request *request)
{
    begin(replies, exchange, request, true);
}

void list_reply_jobs(struct list_replies *replies, struct exchange *exchange, const uint64_t *jobs,
                     size_t count)
{
    const struct status_request request = {.jobs = (uint64_t *)(uintptr_t)jobs,
                                           .jobs_count = count};

    begin(replies, exchange, &request, false);
}
