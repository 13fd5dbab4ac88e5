// Certificates and tokens for the soak test, made by kcast.
#include "common/file.h"
#include "common/mem.h"
#include "tests/soak/connect.h"
#include "tests/soak/soak.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Runs kcast, which must succeed, and returns what it prints; the caller frees it.
static char *ask_kcast(const char *const *argv)
{
    struct program program;

    program_init(&program);
    program_start(&program, argv, NULL);
    if (program_wait(&program) != 0) {
        char *log = program_log(&program);

        fprintf(stderr, "soak: kcast %s: %s\n", argv[1], log);
        exit(EXIT_FAILURE);
    }
    char *output = program_output(&program);
    program_release(&program);
    return output;
}

static void make_token(const char *kcast, const char *pool, unsigned number)
{
    const char *name = soak_tenant_name(true, number);
    char *tokens = xasprintf("%s/tokens", pool);
    char *path = xasprintf("%s/clients/%s/token", pool, name);
    const char *argv[] = {
        kcast,      "token", "add", name, "--role", number == SOAK_ADMIN ? "admin" : "submit",
        "--tokens", tokens,  "-q",  NULL};
    char *token = ask_kcast(argv);
    struct err err = ERR_INIT;

    if (file_replace(path, token, strlen(token), false, &err) != 0) {
        fprintf(stderr, "soak: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    free(token);
    free(path);
    free(tokens);
}

void soak_make_certificates(struct soak *soak)
{
    char *kcast = program_path("kcast");
    char *pool = xasprintf("%s/pool", soak->dir);
    char *host = xstrdup(strstr(soak->url, "://") + 3);
    struct strbuf clients = STRBUF_INIT;
    const char *argv[] = {kcast, "tls", "init", pool, "--hosts", host, "--clients", NULL, NULL};

    for (unsigned i = 0; i <= SOAK_ADMIN; i++) {
        strbuf_addf(&clients, "%s%s", i ? "," : "", soak_tenant_name(true, i));
    }
    host[strcspn(host, ":")] = '\0';
    argv[7] = strbuf_text(&clients);
    free(ask_kcast(argv));
    for (unsigned i = 0; i <= SOAK_ADMIN; i++) {
        make_token(kcast, pool, i);
    }
    strbuf_release(&clients);
    free(host);
    free(pool);
    free(kcast);
}
