// A look-up goes through the entries one after the other. A zero-length timer begins it, so that
// the callback never runs inside hosts_look_up, not even when there is no name to look up.
#include "client/pool/hosts.h"

#include "common/file.h"
#include "common/mem.h"
#include "net/rpc/resolve.h"
#include "net/url.h"
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SCHEME "dns://"
#define TLS_NAME_SCHEME "dns+tls://"
#define FILE_SCHEME "file:"

#define BETWEEN ", \t\r\n" // what divides the entries of a list
#define FILE_BYTES_MAX ((size_t)1 << 16)

_Static_assert(HOSTS_MAX >= RESOLVE_MAX, "an entry has room for all addresses of a name");

enum entry_kind { ENTRY_URL, ENTRY_NAME, ENTRY_FILE };

struct entry {
    char *text; // the entry as it was given
    enum entry_kind kind;
    bool tls;       // it is dns+tls://
    struct url url; // of a url or a name
    // The url itself, or the latest urls of a name or a file.
    char *address[HOSTS_MAX];
    size_t address_count;
};

struct hosts {
    struct entry *entry;
    size_t count;
    uv_loop_t *loop;
    uv_timer_t *timer; // NULL when no look-up is under way; freed by its close callback
    size_t next;       // index of the next entry to look up
    struct resolve *resolve;
    struct err why; // the first failure of the look-up
    hosts_callback *callback;
    void *owner;
};

// ---- the list ----

static int add_entry(struct hosts *hosts, const char *text, size_t len, struct err *err)
{
    hosts->entry = xrealloc(hosts->entry, hosts->count + 1, sizeof(*hosts->entry));
    struct entry *entry = &hosts->entry[hosts->count++];
    *entry = (struct entry){.text = xstrndup(text, len)};
    if (strncmp(entry->text, FILE_SCHEME, strlen(FILE_SCHEME)) == 0) {
        entry->kind = ENTRY_FILE;
        return entry->text[strlen(FILE_SCHEME)] != '\0'
                   ? 0
                   : err_set(err, ERR_INVALID, "\"%s\" names no file; write " FILE_SCHEME "PATH",
                             entry->text);
    }
    entry->tls = strncmp(entry->text, TLS_NAME_SCHEME, strlen(TLS_NAME_SCHEME)) == 0;
    if (!entry->tls && strncmp(entry->text, NAME_SCHEME, strlen(NAME_SCHEME)) != 0) {
        int rc = url_parse(&entry->url, entry->text, err);
        if (rc == 0) {
            entry->address[entry->address_count++] = url_text(&entry->url);
        }
        return rc;
    }
    entry->kind = ENTRY_NAME;
    char *tcp =
        xasprintf("tcp://%s", entry->text + strlen(entry->tls ? TLS_NAME_SCHEME : NAME_SCHEME));
    int rc = url_parse(&entry->url, tcp, NULL);
    free(tcp);
    return rc == 0 ? 0
                   : err_set(err, ERR_INVALID, "\"%s\" names no daemons; write %sNAME:PORT",
                             entry->text, entry->tls ? TLS_NAME_SCHEME : NAME_SCHEME);
}

int hosts_create(struct hosts **ret, const char *list, struct err *err)
{
    struct hosts *hosts = xcalloc(1, sizeof(*hosts));
    int rc = 0;
    while (*list != '\0' && rc == 0) {
        list += strspn(list, BETWEEN);
        size_t len = strcspn(list, BETWEEN);
        if (len > 0) {
            rc = add_entry(hosts, list, len, err);
        }
        list += len;
    }
    if (rc == 0 && hosts->count == 0) {
        rc = err_set(err, ERR_USAGE,
                     "no address of a kcastd is given; write --pool tcp://HOST:PORT");
    }
    if (rc != 0) {
        hosts_free(hosts);
        return rc;
    }
    *ret = hosts;
    return 0;
}

static void forget_addresses(struct entry *entry)
{
    while (entry->address_count > 0) {
        free(entry->address[--entry->address_count]);
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void end_look_up(struct hosts *hosts)
{
    if (hosts->timer) {
        resolve_cancel(hosts->resolve);
        hosts->resolve = NULL;
        uv_close((uv_handle_t *)hosts->timer, on_closed);
        hosts->timer = NULL;
    }
}

void hosts_free(struct hosts *hosts)
{
    if (!hosts) {
        return;
    }
    end_look_up(hosts);
    for (size_t i = 0; i < hosts->count; i++) {
        forget_addresses(&hosts->entry[i]);
        free(hosts->entry[i].text);
    }
    free(hosts->entry);
    free(hosts);
}

bool hosts_may_change(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->entry[i].kind != ENTRY_URL) {
            return true;
        }
    }
    return false;
}

bool hosts_are_several(const struct hosts *hosts)
{
    return hosts->count > 1 || hosts_may_change(hosts);
}

// ---- files ----

// Reads the urls of a file into ret->address, also before a failure.
static int read_urls(struct entry *ret, const char *path, struct err *err)
{
    struct bytes bytes = {0};
    int rc = file_read(&bytes, path, FILE_BYTES_MAX, err);
    if (rc != 0) {
        return rc;
    }
    const char *text = (const char *)bytes.data, *at = text;
    size_t line = 1;
    while (rc == 0 && *at != '\0') {
        size_t len = strcspn(at, BETWEEN);
        char *word = xstrndup(at, len);
        struct url url;
        if (len > 0) {
            rc = url_parse(&url, word, err);
        }
        if (rc != 0) {
            err_wrap(err, "%s:%zu", path, line);
        } else if (len > 0 && ret->address_count < HOSTS_MAX) {
            ret->address[ret->address_count++] = url_text(&url);
        }
        free(word);
        at += len;
        line += *at == '\n';
        at += *at != '\0';
    }
    if (rc == 0 && (ret->address_count == 0 || at != text + bytes.len)) {
        rc = err_set(err, ERR_INVALID,
                     "%s: no list of addresses; it is to have a tcp:// or tls:// url in each line",
                     path);
    }
    bytes_clear(&bytes);
    return rc;
}

static void read_entry(struct hosts *hosts, struct entry *entry)
{
    struct entry new = {0};
    struct err err = ERR_INIT;
    if (read_urls(&new, entry->text + strlen(FILE_SCHEME), &err) == 0) {
        forget_addresses(entry);
        memcpy(entry->address, new.address, sizeof(new.address));
        entry->address_count = new.address_count;
        return;
    }
    forget_addresses(&new);
    err_set(&hosts->why, err.code, "%s%s", err.text,
            entry->address_count > 0 ? "; going on with the addresses that it had" : "");
}

// ---- looking up ----

static void look_up_next(struct hosts *hosts);

// Writes an address as a url, malloc'd; NULL when that fails.
static char *url_of(const struct sockaddr_storage *address, bool tls)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return NULL;
    }
    bool v6 = address->ss_family == AF_INET6;
    return xasprintf("%s://%s%s%s:%s", tls ? "tls" : "tcp", v6 ? "[" : "", host, v6 ? "]" : "",
                     port);
}

static void on_resolved(void *owner, const struct sockaddr_storage *addresses, size_t count,
                        const struct err *why)
{
    struct hosts *hosts = owner;
    struct entry *entry = &hosts->entry[hosts->next++];
    hosts->resolve = NULL;
    if (count == 0) {
        err_set(&hosts->why, ERR_UNREACHABLE, "%s: host \"%s\" is not known: %s", entry->text,
                entry->url.host, why->text);
    } else {
        forget_addresses(entry);
    }
    for (size_t i = 0; i < count; i++) {
        char *url = url_of(&addresses[i], entry->tls);
        if (url) {
            entry->address[entry->address_count++] = url;
        }
    }
    look_up_next(hosts);
}

bool host_is_same(const struct host *host, const char *url, const char *name)
{
    return strcmp(host->url, url) == 0 &&
           (!host->name || !name ? host->name == name : strcmp(host->name, name) == 0);
}

static void add_once(struct host *host, size_t *count, const char *url, const char *name)
{
    for (size_t i = 0; i < *count; i++) {
        if (host_is_same(&host[i], url, name)) {
            return;
        }
    }
    if (*count < HOSTS_MAX) {
        host[(*count)++] = (struct host){.url = url, .name = name};
    }
}

static void finish(struct hosts *hosts)
{
    struct host host[HOSTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct entry *entry = &hosts->entry[i];
        for (size_t j = 0; j < entry->address_count; j++) {
            add_once(host, &count, entry->address[j], entry->tls ? entry->url.host : NULL);
        }
    }
    end_look_up(hosts);
    hosts->callback(hosts->owner, host, count, &hosts->why);
}

static void on_begin(uv_timer_t *timer)
{
    uv_stop(timer->loop);
    look_up_next(timer->data);
}

static void look_up_next(struct hosts *hosts)
{
    while (hosts->next < hosts->count && hosts->entry[hosts->next].kind != ENTRY_NAME) {
        if (hosts->entry[hosts->next].kind == ENTRY_FILE) {
            read_entry(hosts, &hosts->entry[hosts->next]);
        }
        hosts->next++;
    }
    struct err err = ERR_INIT;
    if (hosts->next == hosts->count) {
        finish(hosts);
    } else if (resolve_start(&hosts->resolve, hosts->loop, &hosts->entry[hosts->next].url,
                             on_resolved, hosts, &err) != 0) {
        on_resolved(hosts, NULL, 0, &err);
    }
}

void hosts_look_up(struct hosts *hosts, uv_loop_t *loop, hosts_callback *callback, void *owner)
{
    hosts->loop = loop;
    hosts->callback = callback;
    hosts->owner = owner;
    hosts->next = 0;
    err_clear(&hosts->why);
    hosts->timer = xcalloc(1, sizeof(*hosts->timer));
    uv_timer_init(loop, hosts->timer);
    hosts->timer->data = hosts;
    uv_timer_start(hosts->timer, on_begin, 0, 0);
}

bool hosts_are_looked_up(const struct hosts *hosts)
{
    return hosts->timer;
}
