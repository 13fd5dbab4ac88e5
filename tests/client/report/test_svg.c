#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/report/report_text.h"
#include "client/report/svg.h"
#include "common/mem.h"
#include "tests/client/report/report_markup.h"
#include <math.h>
#include <stdlib.h>

static struct svg_frame frame_of(double min, double max)
{
    struct svg_frame frame = {.width = 400,
                              .height = 300,
                              .left = 40,
                              .right = 10,
                              .top = 20,
                              .bottom = 40,
                              .hover = true};
    svg_axis_linear(&frame.x, min, max, 5, "x <title> & \"quotes\"");
    svg_axis_log2(&frame.y, min, max, 5, "y");
    return frame;
}

static void draw_all(struct strbuf *out, const struct svg_frame *frame,
                     const struct svg_point *point, size_t count)
{
    svg_begin(out, frame, "name <script>", "description & more");
    svg_axes(out, frame);
    svg_band(out, frame, "band", point, count, true);
    svg_band(out, frame, "band", point, count, false);
    svg_line(out, frame, "line", point, count, true);
    svg_line(out, frame, "line", point, count, false);
    svg_points(out, frame, "blue", point, count, 3);
    for (size_t i = 0; i < count && i < 3; i++) {
        svg_rect(out, frame, "cell", point[i].x, point[i].y, 1, 1);
        svg_segment(out, frame, "rule", point[i].x, point[i].y, 1, 1);
        svg_label(out, frame, "mark", point[i].x, point[i].y, 2, 2, "end", "<b>label</b>");
    }
    static const struct svg_key key[] = {{"blue", "dots & more", false}, {"line", "line", true}};
    svg_legend(out, frame, key, 2);
    svg_end(out);
}

static void assert_good(const char *text)
{
    assert_true(markup_balanced(text));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<b>"));
}

static void axis_ticks_are_round_and_inside(void **state)
{
    (void)state;
    static const double range[][2] = {
        {0, 1},       {0, 0},       {-3, 7},     {1e-9, 2e-9},          {0, 9742},
        {5, -5},      {NAN, NAN},   {NAN, 3},    {-INFINITY, INFINITY}, {1e300, 1e301},
        {0.99, 1.01}, {1e15, 1e15}, {-1e-30, 0}, {2, INFINITY}};
    for (size_t i = 0; i < ARRAY_LEN(range); i++) {
        for (size_t wanted = 0; wanted < 10; wanted++) {
            for (int log2_scale = 0; log2_scale < 2; log2_scale++) {
                struct svg_axis axis;
                (log2_scale ? svg_axis_log2 : svg_axis_linear)(&axis, range[i][0], range[i][1],
                                                               wanted, NULL);
                assert_true(isfinite(axis.min) && isfinite(axis.max) && axis.min < axis.max);
                assert_in_range(axis.tick_count, 1, 10);
                for (size_t t = 0; t < axis.tick_count; t++) {
                    double air = 1e-6 * (axis.max - axis.min);
                    assert_true(axis.tick[t].at >= axis.min - air &&
                                axis.tick[t].at <= axis.max + air);
                    assert_true(t == 0 || axis.tick[t].at > axis.tick[t - 1].at);
                    if (t > 0 && strcmp(axis.tick[t].label, axis.tick[t - 1].label) == 0) {
                        fail_msg("range %zu, %zu wanted, log2 %d: \"%s\" twice", i, wanted,
                                 log2_scale, axis.tick[t].label);
                    }
                }
            }
        }
    }
}

static void tick_labels_are_what_people_write(void **state)
{
    (void)state;
    struct svg_axis axis;
    svg_axis_linear(&axis, 0, 9742, 5, NULL);
    assert_string_equal(axis.tick[1].label, "2,000");
    svg_axis_linear(&axis, 0, 1, 5, NULL);
    assert_string_equal(axis.tick[1].label, "0.2");
    svg_axis_log2(&axis, -2, 2, 6, NULL);
    assert_string_equal(axis.tick[0].label, "0.25\xC3\x97");
    assert_string_equal(axis.tick[2].label, "1\xC3\x97");
    svg_axis_log2(&axis, 0, 1.2, 6, NULL);
    assert_string_equal(axis.tick[0].label, "1.00\xC3\x97");
    svg_axis_log2(&axis, 0, 2.2, 6, NULL);
    assert_string_equal(axis.tick[1].label, "1.5\xC3\x97");
    svg_axis_log2(&axis, 0, 12, 6, NULL);
    assert_string_equal(axis.tick[axis.tick_count - 1].label, "4,096\xC3\x97");
}

static void pictures_of_no_and_one_point_are_well_formed(void **state)
{
    (void)state;
    struct svg_point one = {0.5, 0.5, 0.4, 0.6, "k1 <script>alert(1)</script>"};
    for (size_t count = 0; count < 2; count++) {
        struct svg_frame frame = frame_of(0, 1);
        struct strbuf out = STRBUF_INIT;
        draw_all(&out, &frame, &one, count);
        assert_good(strbuf_text(&out));
        assert_int_equal(markup_count(strbuf_text(&out), "<circle"), count);
        assert_non_null(strstr(strbuf_text(&out), "name &lt;script&gt;"));
        strbuf_release(&out);
    }
}

static void what_is_not_finite_is_left_out(void **state)
{
    (void)state;
    const double odd[] = {NAN, INFINITY, -INFINITY, 0.5, 1e300, -1e300};
    const size_t n = ARRAY_LEN(odd);
    struct svg_point point[216];
    for (size_t i = 0; i < n * n * n; i++) {
        point[i] =
            (struct svg_point){odd[i / 36], odd[i / 6 % n], odd[i % n], odd[(i + 1) % n], NULL};
    }
    for (size_t i = 0; i < n; i++) {
        struct svg_frame frame = frame_of(odd[i], odd[(i + 1) % n]);
        struct strbuf out = STRBUF_INIT;
        draw_all(&out, &frame, point, ARRAY_LEN(point));
        assert_good(strbuf_text(&out));
        strbuf_release(&out);
    }
}

static void size_does_not_grow_with_ten_thousand_points(void **state)
{
    (void)state;
    const size_t count = 10000;
    struct svg_point *point = xcalloc(count, sizeof *point);
    for (size_t i = 0; i < count; i++) {
        double x = (double)i / (double)count;
        point[i] = (struct svg_point){x, fabs(sin(37 * x)), x - 0.01, x + 0.01, NULL};
    }
    struct svg_frame frame = frame_of(0, 1);
    struct strbuf out = STRBUF_INIT;
    draw_all(&out, &frame, point, count);
    assert_good(strbuf_text(&out));
    assert_true(out.len < 120000);
    strbuf_reset(&out);
    svg_line(&out, &frame, "line", point, count, true); // the last point is never dropped
    char end[40];
    snprintf(end, sizeof end, "V%.1f\"/>", svg_y(&frame, point[count - 1].y));
    assert_non_null(strstr(strbuf_text(&out), end));
    strbuf_release(&out);
    free(point);
}

static void text_is_escaped_and_made_valid(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } row[] = {
        {"<script>&\"'", "&lt;script&gt;&amp;&quot;&#39;"},
        {"\xFFz\xC3", "\xEF\xBF\xBDz\xEF\xBF\xBD"},               // invalid UTF-8
        {"\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"},                 // overlong <
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, // surrogate
        {"a\x1B[31m\tb\n", "a\xEF\xBF\xBD[31m\tb\n"},
        {"\xE2\x89\xA4 2\xC3\x97", "\xE2\x89\xA4 2\xC3\x97"},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct strbuf out = STRBUF_INIT;
        text_add_markup(&out, row[i].in);
        assert_string_equal(strbuf_text(&out), row[i].out);
        strbuf_release(&out);
    }
}

static void numbers_are_written_for_people(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    text_add_count(&out, 1234567);
    strbuf_addc(&out, '|');
    text_add_count(&out, 12);
    strbuf_addc(&out, '|');
    text_add_speedup(&out, 1.5);
    strbuf_addc(&out, '|');
    text_add_speedup(&out, 12);
    strbuf_addc(&out, '|');
    text_add_speedup(&out, -5);
    strbuf_addc(&out, '|');
    text_add_speedup(&out, NAN);
    strbuf_addc(&out, '|');
    text_add_time(&out, NAN);
    strbuf_addc(&out, '|');
    text_add_time(&out, 1.79e9);
    assert_string_equal(
        strbuf_text(&out),
        "1,234,567|12|2.83\xC3\x97|4,096\xC3\x97|0.0312\xC3\x97|\xE2\x80\x93|\xE2\x80\x93|"
        "2026-09-21 14:13 UTC");
    strbuf_reset(&out);
    for (double x = 1e-12; x < 1e20; x *= 7) {
        text_add_seconds(&out, x);
        text_add_nanoseconds(&out, x);
        text_add_percent(&out, x);
        text_add_speedup(&out, x);
    }
    assert_null(strstr(strbuf_text(&out), "e+"));
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axis_ticks_are_round_and_inside),
        cmocka_unit_test(tick_labels_are_what_people_write),
        cmocka_unit_test(pictures_of_no_and_one_point_are_well_formed),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(size_does_not_grow_with_ten_thousand_points),
        cmocka_unit_test(text_is_escaped_and_made_valid),
        cmocka_unit_test(numbers_are_written_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
