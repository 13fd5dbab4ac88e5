#include "client/pool/daemons.h"

#include "client/pool/hosts.h"
#include "common/mem.h"
#include "common/version.h"
#include <stdlib.h>
#include <string.h>

// The look-up of --pool, while it is waited for.
struct looking {
    struct daemons *daemons;
    struct err why; // about a name that is not known
    bool done;
};

// A HELLO under way.
struct greeting {
    struct daemon_link *link;
    size_t *pending;
};

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct looking *looking = owner;
    struct daemons *daemons = looking->daemons;
    daemons->link = xcalloc(count + 1, sizeof(*daemons->link));
    for (size_t i = 0; i < count; i++) {
        daemons->link[daemons->count++] = (struct daemon_link){
            .url = xstrdup(host[i].url),
            .name = host[i].name ? xstrdup(host[i].name) : NULL,
        };
    }
    looking->why = *why;
    looking->done = true;
}

static void on_greeted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct greeting *greeting = owner;
    (void)retry_after_ms;
    (void)reply;
    if (error) {
        greeting->link->why = *error;
    }
    --*greeting->pending;
}

// Greets all daemons. Those that do not answer are left without a connection.
static int greet_all(struct daemons *daemons, struct session *session, struct err *err)
{
    struct greeting *greeting = xcalloc(daemons->count + 1, sizeof(*greeting));
    size_t pending = 0;
    int rc = 0;
    for (size_t i = 0; i < daemons->count && rc == 0; i++) {
        struct daemon_link *link = &daemons->link[i];
        rc = session_remote(session, link->url, &link->remote, err);
        if (rc == 0) {
            if (link->name) {
                remote_expect(link->remote, link->name);
            }
            greeting[i] = (struct greeting){.link = link, .pending = &pending};
            pending++;
            remote_hello(link->remote, "kcastd", on_greeted, &greeting[i]);
        }
    }
    while (rc == 0 && pending > 0 && !session_interrupted(session)) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
    for (size_t i = 0; i < daemons->count; i++) { // also ends calls after an interruption
        struct daemon_link *link = &daemons->link[i];
        if (link->remote && (pending > 0 || link->why.code != ERR_NONE)) {
            remote_close(link->remote);
            link->remote = NULL;
        }
    }
    free(greeting);
    return rc != 0                        ? rc
           : session_interrupted(session) ? err_set(err, ERR_STOPPED, "interrupted")
                                          : 0;
}

static int connect_several(struct daemons *daemons, struct hosts *hosts, struct session *session,
                           struct err *err)
{
    struct looking looking = {.daemons = daemons};
    hosts_look_up(hosts, session_loop(session), on_hosts, &looking);
    while (!looking.done && !session_interrupted(session)) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
    int rc = session_interrupted(session) ? err_set(err, ERR_STOPPED, "interrupted")
                                          : greet_all(daemons, session, err);
    const struct err *last = &looking.why;
    for (size_t i = 0; i < daemons->count && rc == 0; i++) {
        if (daemons->link[i].remote) {
            return 0;
        }
        last = &daemons->link[i].why;
    }
    return rc != 0 ? rc : err_set(err, last->code, "%s", last->text);
}

int daemons_connect(struct daemons *ret, struct session *session, struct err *err)
{
    const struct session_options *options = session_options(session);
    struct hosts *hosts = NULL;
    struct daemons daemons = {0};
    int rc = options->local
                 ? 0
                 : hosts_create(&hosts, options->pool ? options->pool : KCAST_DEFAULT_POOL, err);
    daemons.several = hosts && hosts_are_several(hosts);
    if (rc == 0 && daemons.several) {
        rc = connect_several(&daemons, hosts, session, err);
    } else if (rc == 0) {
        struct remote *remote;
        rc = session_daemon(session, &remote, err);
        if (rc == 0) {
            daemons.link = xcalloc(1, sizeof(*daemons.link));
            daemons.link[0] =
                (struct daemon_link){.url = xstrdup(remote_url(remote)), .remote = remote};
            daemons.count = 1;
        }
    }
    hosts_free(hosts);
    if (rc != 0) {
        daemons_release(&daemons);
        return rc;
    }
    *ret = daemons;
    return 0;
}

void daemons_release(struct daemons *daemons)
{
    for (size_t i = 0; i < daemons->count; i++) {
        if (daemons->several) { // a single connection is the session's
            remote_close(daemons->link[i].remote);
        }
        free(daemons->link[i].url);
        free(daemons->link[i].name);
    }
    free(daemons->link);
    *daemons = (struct daemons){0};
}

// ---- names ----

// How well a word names a url. 0: not at all, 1: by the host alone, 2: exactly.
static int matches(const char *url, const char *word, size_t len)
{
    const char *address = strstr(url, "://");
    address = address ? address + 3 : url;
    const char *port = strrchr(address, ':');
    if ((strlen(url) == len && strncmp(url, word, len) == 0) ||
        (strlen(address) == len && strncmp(address, word, len) == 0)) {
        return 2;
    }
    return port && (size_t)(port - address) == len && strncmp(address, word, len) == 0;
}

int daemons_find(const struct daemons *daemons, const char *word, const struct daemon_link **ret,
                 const char **ret_rest, struct err *err)
{
    const char *slash = strrchr(word, '/');
    size_t len = slash ? (size_t)(slash - word) : 0;
    const struct daemon_link *found = NULL;
    if (len == 0 && !daemons->several) {
        found = &daemons->link[0];
    } else if (len == 0) {
        return err_set(err, ERR_USAGE,
                       "\"%.200s\" could be at each of the daemons; write HOST:PORT/%.200s", word,
                       word);
    }
    int best = 0;
    for (size_t i = 0; i < daemons->count && len > 0; i++) {
        int match = matches(daemons->link[i].url, word, len);
        if (match == 1 && best == 1) {
            return err_set(err, ERR_USAGE, "\"%.*s\" has several daemons; write HOST:PORT",
                           (int)len, word);
        }
        if (match > best) {
            best = match;
            found = &daemons->link[i];
        }
    }
    if (!found) {
        return err_set(err, ERR_NOT_FOUND, "--pool names no daemon \"%.*s\"", (int)len, word);
    }
    if (!found->remote) {
        return err_set(err, found->why.code, "%s", found->why.text);
    }
    *ret = found;
    *ret_rest = slash ? slash + 1 : word;
    return 0;
}

int daemons_group_arguments(struct daemon_arguments **ret, const struct daemons *daemons,
                            char **word, size_t count, struct err *err)
{
    struct daemon_arguments *arguments = xcalloc(daemons->count + 1, sizeof(*arguments));
    for (size_t i = 0; i < daemons->count; i++) {
        arguments[i].word = xcalloc(count + 1, sizeof(*arguments[i].word));
    }
    const struct daemon_link *link;
    const char *rest;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = daemons_find(daemons, word[i], &link, &rest, err);
        if (rc == 0) {
            struct daemon_arguments *of = &arguments[link - daemons->link];
            of->word[of->count++] = word[i] + (rest - word[i]);
        }
    }
    if (rc != 0) {
        daemon_arguments_free(arguments, daemons->count);
        return rc;
    }
    *ret = arguments;
    return 0;
}

void daemon_arguments_free(struct daemon_arguments *arguments, size_t daemons)
{
    for (size_t i = 0; arguments && i < daemons; i++) {
        free(arguments[i].word);
    }
    free(arguments);
}
