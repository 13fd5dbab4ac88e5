// The Venn-Abers predictor against a direct computation of its two isotonic fits.
#include "worker/calibration/venn_abers.h"

#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// The value of the isotonic least-squares fit at one point: the maximum over all beginnings at or
// before it of the minimum over all ends at or after it of the mean in between.
static double isotonic(const double *y, const double *w, size_t n, size_t at)
{
    double best = -INFINITY;
    for (size_t a = 0; a <= at; a++) {
        double least = INFINITY, sum = 0, weight = 0;
        for (size_t b = a; b < n; b++) {
            sum += w[b] * y[b];
            weight += w[b];
            if (b >= at) {
                least = fmin(least, sum / weight);
            }
        }
        best = fmax(best, least);
    }
    return best;
}

static void venn_abers_is_two_isotonic_fits(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 9);
    struct venn_abers predictor = {0};
    for (size_t round = 0; round < 300; round++) {
        double score[30], weight[30], y[31], w[31], sum = 0, square = 0;
        bool event[30];
        size_t n = 1 + stats_rng_below(&rng, 30), groups = 0, at = 0;
        // A score, or a value between scores.
        double asked = 1 + (double)stats_rng_below(&rng, 41) / 2;
        for (size_t i = 0; i < n; i++) {
            score[i] = (i > 0 ? score[i - 1] : 1) + (double)stats_rng_below(&rng, 2);
            weight[i] = 1 + (double)stats_rng_below(&rng, 3);
            event[i] = stats_rng_unit(&rng) < score[i] / 20;
            sum += weight[i];
            square += weight[i] * weight[i];
        }
        venn_abers_fit(&predictor, score, weight, event, n);
        struct venn_abers_answer answer = venn_abers_ask(&predictor, asked);
        for (int as = 0; as < 2; as++) { // inserts the asked point and joins equal scores
            double own = square / sum, last = -1;
            groups = 0;
            bool in = false;
            for (size_t i = 0; i <= n; i++) {
                if (!in && (i == n || score[i] >= asked)) {
                    at = groups++;
                    w[at] = own;
                    y[at] = as;
                    in = true;
                    last = asked;
                }
                if (i == n) {
                    break;
                }
                if (groups == 0 || score[i] > last || score[i] < last) {
                    w[groups] = y[groups] = 0;
                    groups++;
                    last = score[i];
                }
                size_t g = groups - 1;
                y[g] = (y[g] * w[g] + weight[i] * event[i]) / (w[g] + weight[i]);
                w[g] += weight[i];
            }
            assert_near(as == 0 ? answer.p0 : answer.p1, isotonic(y, w, groups, at), 1e-12);
        }
        assert_true(answer.p >= answer.p0 - 1e-12 && answer.p <= answer.p1 + 1e-12);
    }
    venn_abers_release(&predictor);
    struct venn_abers_answer empty = venn_abers_ask(&predictor, 0.3);
    assert_true(empty.p0 == 0 && empty.p1 == 1 && empty.p == 0.5 && empty.width == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(venn_abers_is_two_isotonic_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
