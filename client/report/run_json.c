#include "client/report/run_json.h"

#include "client/policy/allocation.h"
#include "client/policy/guarantee.h"
#include "client/policy/play_off.h"
#include "client/policy/risk.h"
#include "client/propose/generator_list.h"
#include "client/run/wall_time.h"
#include "client/show.h"
#include <math.h>
#include <stdlib.h>

json_t *run_json_guarantee(const struct run_state *run_state)
{
    const struct run_started *started = &run_state->started;
    const struct run_certified *last = &run_state->certified;
    char *sentence = risk_sentence(run_state);
    json_t *object = json_null();

    if (sentence) {
        object = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "kind",
                           show_text(started->guarantee), "alpha", show_number(started->alpha),
                           "delta", show_number(started->delta), "threshold",
                           show_number(run_state->certifications > 0 ? last->threshold : NAN),
                           "alarms", (json_int_t)last->alarms, "changes",
                           (json_int_t)run_state->certifications, "text", show_text(sentence));
    }
    free(sentence);
    return object;
}

json_t *run_json_trust(const struct run_state *run_state)
{
    json_t *ret = json_array();
    for (size_t i = 0; i < run_state->trust_count; i++) {
        const struct run_trusted *t = &run_state->trust[i];
        json_array_append_new(
            ret, json_pack("{s:o, s:I, s:o, s:I, s:I, s:o, s:I, s:o, s:I, s:o}", "forecaster",
                           show_text(t->forecaster), "after", (json_int_t)t->after, "cut",
                           show_number(t->cut), "calls", (json_int_t)t->calls, "improvers",
                           (json_int_t)t->improvers, "expected", show_number(t->expected), "below",
                           (json_int_t)t->below, "skill", show_number(t->skill), "alarms",
                           (json_int_t)t->alarms, "text", show_text(t->text)));
    }
    return ret;
}

json_t *run_json_left(const struct run_state *run_state)
{
    struct guarantee g = guarantee_of_run(run_state);
    if (run_state->surveys == 0) {
        return json_null();
    }
    return json_pack("{s:I, s:I, s:o, s:o, s:f, s:s}", "unmeasured", (json_int_t)g.unmeasured,
                     "forecast", (json_int_t)g.forecast, "none_faster_than",
                     show_ratio(g.stated_log2), "estimate", show_ratio(g.beyond_log2), "confidence",
                     GUARANTEE_CONFIDENCE, "text", g.text);
}

static json_t *contestant_json(const struct play_off_contestant *one)
{
    static const char *const place[] = {
        [PLAY_OFF_LEADS] = "leads",   [PLAY_OFF_OPEN] = "open",     [PLAY_OFF_TIED] = "tied",
        [PLAY_OFF_SLOWER] = "slower", [PLAY_OFF_FAILED] = "failed",
    };
    const struct estimate over = {.log2 = one->log2, .lo = one->lo, .hi = one->hi};
    return json_pack("{s:I, s:s, s:I, s:o, s:o}", "candidate", (json_int_t)one->candidate, "place",
                     place[one->place], "games", (json_int_t)one->games, "over_leader",
                     show_ratio(one->log2), "interval", show_interval(&over));
}

json_t *run_json_play_off(const struct run_state *run_state)
{
    struct play_off play_off;
    play_off_standings(run_state, &play_off);
    if (play_off.count == 0) {
        return json_null();
    }
    json_t *contestants = json_array();
    for (size_t i = 0; i < play_off.count; i++) {
        json_array_append_new(contestants, contestant_json(&play_off.contestant[i]));
    }
    const struct run_played_off *end = &run_state->played_off;
    struct strbuf text = STRBUF_INIT;
    play_off_describe(run_state, &text);
    json_t *ret =
        json_pack("{s:o, s:I, s:b, s:o, s:o, s:f, s:o, s:s}", "candidates", contestants, "games",
                  (json_int_t)(run_state->game_count - run_state->first_game), "over",
                  (int)run_state->has_played_off, "winner",
                  end->winner > 0 ? json_integer((json_int_t)end->winner) : json_null(), "reason",
                  end->reason ? show_text(end->reason) : json_null(), "device_seconds",
                  run_state->play_off_seconds, "device_seconds_max",
                  show_number(run_state->play_off.seconds_max), "text", strbuf_text(&text));
    strbuf_release(&text);
    return ret;
}

json_t *run_json_generators(const struct run_state *run_state)
{
    struct generator_list list;
    json_t *ret = json_array();
    if (generator_list_parse(&list, run_state->started.generator, NULL) != 0) {
        return ret;
    }
    struct allocation_share share[GENERATOR_LIST_MAX];
    allocation_shares(run_state, run_state->candidate_count, list.count, share);
    for (size_t i = 0; i < list.count; i++) {
        const struct allocation_share *s = &share[i];
        json_array_append_new(
            ret, json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "generator",
                           show_text(list.kind[i]), "considered", (json_int_t)s->considered,
                           "measured", (json_int_t)s->measured, "improvements",
                           (json_int_t)s->improvements, "gain_log2", show_number(s->gain_log2),
                           "device_seconds", show_number(s->device_seconds), "compile_seconds",
                           show_number(s->compile_seconds), "tokens", (json_int_t)s->tokens,
                           "money", show_number(s->money), "cost", show_number(s->cost)));
    }
    generator_list_release(&list);
    return ret;
}

json_t *run_json_wall(const struct run_state *run_state)
{
    double seconds[WALL_PART_COUNT];
    bool recorded = wall_time_is_recorded(run_state);
    json_t *ret = json_object();
    wall_time_parts(run_state, seconds);
    json_object_set_new(ret, "recorded", json_boolean(recorded));
    for (enum wall_part part = 0; part < WALL_PART_COUNT; part++) {
        bool known = recorded || part == WALL_NOT_RECORDED;
        json_object_set_new(ret, wall_part_name(part), show_number(known ? seconds[part] : NAN));
    }
    return ret;
}

json_t *run_json_work(const struct run_state *run_state)
{
    struct work_seconds work = work_seconds_of(run_state);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "asking",
                     show_number(work.asking), "forecasting", show_number(work.forecasting),
                     "compiling", show_number(work.compiling), "queued", show_number(work.queued),
                     "held", show_number(work.held), "start", show_number(work.start), "inputs",
                     show_number(work.inputs), "verify", show_number(work.verify), "time",
                     show_number(work.time));
}

json_t *run_json_devices(const struct run_state *run_state)
{
    double wall = run_state->wall_seconds;
    json_t *ret = json_array();
    for (size_t i = 0; i < run_state->device_count; i++) {
        const struct run_state_device *device = &run_state->device[i];
        json_array_append_new(
            ret, json_pack("{s:o, s:o, s:I, s:o, s:o}", "pool", show_text(device->pool), "device",
                           show_text(device->name), "runs", (json_int_t)device->runs,
                           "held_seconds", show_number(device->held_seconds), "utilisation",
                           show_number(wall > 0 ? device->held_seconds / wall : NAN)));
    }
    return ret;
}
