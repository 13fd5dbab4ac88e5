// Connections of callers with tokens: what one tenant may have, and the administrator's places.
#include "net/rpc/service_state.h"
#include "tests/net/tls_fixture.h"

#define PLACES 32 // connections_max: 8 for a tenant, 31 for those who are no administrators

struct callers {
    struct tls_fixture *s;
    struct remote *remote[4 * PLACES];
    size_t count;
};

// Calls once with this token, so that the connection belongs to its tenant, and leaves it open.
static void add_caller(struct callers *callers, const char *token)
{
    struct tls_fixture *s = callers->s;

    s->f.remote = NULL;
    connect_as(s, "ours", "alice", token);
    expect_success(&s->f);
    callers->remote[callers->count++] = s->f.remote;
    s->f.remote = NULL;
}

static struct callers open_places(struct tls_fixture *s)
{
    remote_close(s->f.remote);
    s->f.remote = NULL;
    service_close(s->f.service);
    s->f.config.connections_max = PLACES;
    open_tls_service(s);
    return (struct callers){.s = s};
}

static void close_callers(struct callers *callers)
{
    for (size_t i = 0; i < callers->count; i++) {
        remote_close(callers->remote[i]);
    }
}

static size_t count_of(const struct tls_fixture *s, const char *tenant)
{
    struct party *party;

    HASH_FIND_STR(s->f.service->parties, tenant, party);
    return party ? party->connections : 0;
}

static char *add_token(struct tls_fixture *s, const char *tenant, enum caller_role role)
{
    char *token;

    assert_int_equal(tokens_add(s->tokens, tenant, role, s->now_s, 0, &token, NULL), 0);
    write_tokens(s);
    return token;
}

static void a_tenant_has_a_quarter_of_the_connections_at_most(void **state)
{
    struct tls_fixture *s = *state;
    struct callers callers = open_places(s);

    add_caller(&callers, s->observe_token);
    for (int i = 0; i < PLACES; i++) {
        add_caller(&callers, s->submit_token);
        assert_true(count_of(s, "alice") <= PLACES / 4);
    }
    assert_int_equal(count_of(s, "olga"), 1);
    assert_string_equal(s->f.refusal,
                        "its tenant has too many connections, and it was used longest ago");
    close_callers(&callers);
}

static void the_administrator_always_finds_a_place(void **state)
{
    static const char *const tenants[] = {"a", "b", "c", "d", "e"};
    struct tls_fixture *s = *state;
    char *admin = add_token(s, "root", CALLER_ADMIN);
    char *token[ARRAY_LEN(tenants)];

    for (size_t t = 0; t < ARRAY_LEN(tenants); t++) {
        token[t] = add_token(s, tenants[t], CALLER_SUBMIT);
    }
    struct callers callers = open_places(s);
    for (int i = 0; i < PLACES / 4; i++) {
        for (size_t t = 0; t < ARRAY_LEN(tenants); t++) {
            add_caller(&callers, token[t]);
        }
    }
    // All their places are taken, of which each tenant has its part.
    assert_int_equal(s->f.service->ordinary_count, PLACES - 1);
    for (size_t t = 0; t < ARRAY_LEN(tenants); t++) {
        assert_in_range(count_of(s, tenants[t]), PLACES / 6, PLACES / 4);
    }
    for (int i = 0; i < 3; i++) {
        add_caller(&callers, admin);
    }
    assert_int_equal(count_of(s, "root"), 3);
    assert_true(s->f.service->connection_count <= PLACES + 1);
    close_callers(&callers);
    for (size_t t = 0; t < ARRAY_LEN(tenants); t++) {
        free(token[t]);
    }
    free(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_tenant_has_a_quarter_of_the_connections_at_most),
        TLS_TEST(the_administrator_always_finds_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
