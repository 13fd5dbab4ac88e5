// kcast tls init: makes a private certificate authority for a small team, a certificate for its
// servers and one for each caller. Files that exist already stay as they are, so that the same
// command adds callers later.
#include "client/command.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "net/auth/caller.h"
#include "net/tls/authority.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY_S 86400
#define CLOCK_SLACK_S 3600
#define HOSTS_MAX 64
#define HOST_NAME_SIZE 256

struct tls_options {
    char *hosts;
    char *clients;
    uint64_t days;
};

#define AT(field) offsetof(struct tls_options, field)
static const struct option_row rows[] = {
    {"hosts", 0, OPTION_TEXT, AT(hosts), "LIST", NULL, 0, 0, NULL,
     "names and addresses by which callers reach the servers, separated by commas; default: this "
     "host's name; localhost is always among them"},
    {"clients", 0, OPTION_TEXT, AT(clients), "LIST", NULL, 0, 0, NULL,
     "who gets a certificate to call with, separated by commas"},
    {"days", 0, OPTION_U64, AT(days), "N", "730", 1, 3650, NULL,
     "how long certificates are good for; the authority's own for ten years"},
    {0},
};

struct making {
    struct session *session;
    struct authority *authority;
    const char *dir;
    int64_t now_s;
    uint64_t days;
};

static void tell(const struct making *making, const char *what, const char *path, bool made)
{
    if (session_options(making->session)->json) {
        show_print(json_pack("{s:s, s:s, s:b}", "what", what, "path", path, "made", made));
    } else {
        printable_printf(stdout, "%-10s %s%s\n", what, path, made ? "" : " (was there)");
    }
}

static int issue(const struct making *making, const char *what, const char *place, const char *name,
                 const char *const *hosts, size_t host_count, struct err *err)
{
    struct certificate_spec spec = {
        .name = name,
        .hosts = hosts,
        .host_count = host_count,
        .from_s = making->now_s - CLOCK_SLACK_S,
        .to_s = making->now_s + (int64_t)making->days * DAY_S,
    };
    char *path = xasprintf("%s/%s", making->dir, place);
    bool made = false;
    int rc = authority_issue(making->authority, path, &spec, &made, err);

    if (rc == 0) {
        tell(making, what, path, made);
    }
    free(path);
    return rc;
}

// Issues the servers' certificate, for localhost and the hosts of list, which are separated by
// commas. list NULL: for localhost alone.
static int issue_server(const struct making *making, const char *list, struct err *err)
{
    const char *host[HOSTS_MAX] = {"localhost", "127.0.0.1", "::1"};
    size_t count = 3;
    char *copy = list ? xstrdup(list) : NULL;
    char *next = copy;
    char *name;
    int rc = 0;
    while ((name = strsep(&next, ","))) {
        if (count == HOSTS_MAX) {
            rc = err_set(err, ERR_USAGE, "--hosts has more than %d", HOSTS_MAX - 3);
            break;
        }
        host[count++] = name;
    }
    if (rc == 0) {
        rc = issue(making, "server", "server", "kernelcast server", host, count, err);
    }
    free(copy);
    return rc;
}

// Issues a certificate for each caller of list, which are separated by commas. With making NULL it
// only checks the names, before anything is made.
static int issue_clients(const struct making *making, const char *list, struct err *err)
{
    char *copy = xstrdup(list);
    char *next = copy;
    char *name;
    int rc = 0;
    while (rc == 0 && (name = strsep(&next, ","))) {
        char *place = xasprintf("clients/%s", name);
        rc = caller_check_tenant(name, err);
        if (rc == 0 && making) {
            rc = issue(making, "client", place, name, NULL, 0, err);
        }
        free(place);
    }
    free(copy);
    return rc;
}

static void explain(const struct making *making)
{
    const char *dir = making->dir;

    printable_printf(stdout, "\nKeep %s/ca-key.pem here: who has it can let anybody in.\n", dir);
    printable_printf(stdout, "To each server, as /etc/kernelcast/tls: %s/server; then\n", dir);
    printable_print_lines(
        stdout,
        "  kcast token add NAME --role submit --tokens /etc/kernelcast/tokens\n"
        "  kcastd --listen tls://0.0.0.0:7410 --tls-ca /etc/kernelcast/tls/ca.pem \\\n"
        "    --tls-cert /etc/kernelcast/tls/cert.pem --tls-key /etc/kernelcast/tls/key.pem \\\n"
        "    --tokens /etc/kernelcast/tokens\n");
    printable_printf(stdout,
                     "To each client, as ~/.config/kernelcast: %s/clients/NAME, and the token in "
                     "the file\n",
                     dir);
    printable_print_lines(stdout, "token there (chmod 600); then\n"
                                  "  kcast --pool tls://HOST:7410 status\n");
}

// Issues the servers' certificate for the hosts of --hosts. Without --hosts it is for this host,
// and an existing certificate stays.
static int make_server(const struct making *making, const char *hosts, struct err *err)
{
    char name[HOST_NAME_SIZE] = "localhost";
    char *path = xasprintf("%s/server/cert.pem", making->dir);
    (void)gethostname(name, sizeof(name) - 1);
    if (!hosts && !file_exists(path)) {
        hosts = name;
    }
    free(path);
    return issue_server(making, hosts, err);
}

static int make_all(struct making *making, const struct tls_options *options, struct err *err)
{
    int rc = options->clients ? issue_clients(NULL, options->clients, err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = file_make_dirs(making->dir, err);
    if (rc != 0) {
        return rc;
    }
    bool made = false;
    rc = authority_open(&making->authority, making->dir, making->now_s, &made, err);
    if (rc != 0) {
        return rc;
    }
    char *path = xasprintf("%s/ca.pem", making->dir);
    tell(making, "authority", path, made);
    free(path);
    rc = make_server(making, options->hosts, err);
    return rc == 0 && options->clients ? issue_clients(making, options->clients, err) : rc;
}

static int run_init(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    (void)count;
    const struct tls_options *options = own;
    struct making making = {
        .session = session,
        .dir = argument[0],
        .now_s = clock_wall_ns(&clock_system) / (int64_t)NS_PER_S,
        .days = options->days,
    };
    int rc = make_all(&making, options, err);
    if (rc == 0 && !session_options(session)->json && !session_options(session)->quiet) {
        explain(&making);
    }
    authority_free(making.authority);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_tls_init = {
    .name = "tls init",
    .arguments = "DIR",
    .help = "Make a private authority and certificates for servers and clients; never overwrites",
    .option = rows,
    .options_size = sizeof(struct tls_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_init,
};
