#include "tests/soak/connect.h"
#include "common/file.h"
#include "common/mem.h"
#include "net/tls/tls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 4096

static const char *const names[SOAK_TENANTS + 1] = {"ann", "ben", "eva", "root"};

const char *soak_tenant_name(bool tls, unsigned number)
{
    return tls ? names[number] : "local";
}

bool soak_url_is_tls(const char *url)
{
    return strncmp(url, "tls://", 6) == 0;
}

static void fail(const struct err *err)
{
    fprintf(stderr, "soak: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static struct remote *connect_encrypted(uv_loop_t *loop, const char *url, const char *dir,
                                        const char *name)
{
    char *ca = xasprintf("%s/pool/clients/%s/ca.pem", dir, name);
    char *cert = xasprintf("%s/pool/clients/%s/cert.pem", dir, name);
    char *key = xasprintf("%s/pool/clients/%s/key.pem", dir, name);
    char *token = xasprintf("%s/pool/clients/%s/token", dir, name);
    struct tls_files files = {.ca = ca, .cert = cert, .key = key};
    struct bytes secret = {0};
    struct tls *tls = NULL;
    struct err err = ERR_INIT;

    if (tls_create(&tls, TLS_CALLER, &files, &err) != 0 ||
        file_read(&secret, token, TOKEN_MAX, &err) != 0) {
        fail(&err);
    }
    secret.data[strcspn((char *)secret.data, "\n")] = '\0';
    struct remote *remote = NULL;
    if (remote_create_tls(&remote, loop, url, tls, (char *)secret.data, &err) != 0) {
        fail(&err);
    }
    tls_release(tls);
    bytes_clear(&secret);
    free(token);
    free(key);
    free(cert);
    free(ca);
    return remote;
}

struct remote *soak_connect(uv_loop_t *loop, const char *url, const char *dir, unsigned number)
{
    if (soak_url_is_tls(url)) {
        return connect_encrypted(loop, url, dir, names[number]);
    }
    struct remote *remote = NULL;
    struct err err = ERR_INIT;
    if (remote_create(&remote, loop, url, &err) != 0) {
        fail(&err);
    }
    return remote;
}
