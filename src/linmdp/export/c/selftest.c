/* selftest.c: see selftest.h. */
#include "selftest.h"

#include <stddef.h>

#ifndef LINMDP_ALONE
#include "linmdp_policy.h"
#endif
#include "selftest_vectors.h"

#ifndef LINMDP_FAR
#define LINMDP_FAR 0 /* the share of steps at which rounding may decide */
#endif

/* Calls that must be refused, and change nothing. */
static void bad_calls(linmdp_learner *learner, linmdp_report *report)
{
    const linmdp_recorded *record = &linmdp_recorded_step[0];
    const linmdp_state state = linmdp_recall(&record->state), next = linmdp_recall(&record->next);
    const linmdp_real zero = record->reward - record->reward, nan = zero / zero;
    linmdp_real q[LINMDP_A];
    enum { RIGHT = 7 }; /* the only one that is not to be refused */
    const int status[] = {
        linmdp_init(NULL, 0),
        linmdp_act(learner, LINMDP_H, state),
        linmdp_act(NULL, 0, state),
        linmdp_act(learner, 0, LINMDP_NO_STATE),
        linmdp_q_values(learner, LINMDP_H, state, q),
        linmdp_q_values(learner, 0, state, NULL),
        linmdp_observe(learner, 0, state, 0, record->reward, next, 0), /* no episode has begun */
        linmdp_begin_episode(learner),                                 /* number RIGHT */
        linmdp_observe(learner, LINMDP_H, state, 0, record->reward, next, 0),
        linmdp_observe(learner, 0, state, LINMDP_A, record->reward, next, 0),
        linmdp_observe(learner, 0, state, -1, record->reward, next, 0),
        linmdp_observe(learner, 0, state, 0, nan, next, 0),
        linmdp_observe(learner, 0, state, 0, record->reward, LINMDP_NO_STATE, 0),
    };
    for (size_t i = 0; i < sizeof status / sizeof status[0]; i++)
        report->refused += (status[i] < 0) != (i != RIGHT);
}

static double distance(double x, double y) { return x < y ? y - x : x - y; }

/* Compare Q and the action of one recorded step. */
static void compare(const linmdp_learner *learner, unsigned h, const linmdp_recorded *record, linmdp_report *report)
{
    linmdp_real q[LINMDP_A];
    double largest = record->q[0], off = 0;
    const int action = linmdp_act(learner, h, linmdp_recall(&record->state));
    if (action < 0 || linmdp_q_values(learner, h, linmdp_recall(&record->state), q) != LINMDP_OK) {
        report->refused++;
        return;
    }
    for (unsigned a = 0; a < LINMDP_A; a++) {
        const double error = distance((double)q[a], record->q[a]);
        if (!(error <= off))
            off = error;
        if (record->q[a] > largest)
            largest = record->q[a];
    }
    if (!(off <= report->largest_error))
        report->largest_error = off;
    report->far += !(off <= LINMDP_CLOSE);
    if (action != record->action) {
        if (record->q[action] < largest - LINMDP_CLOSE)
            report->other_actions++;
        else
            report->close_calls++;
    }
}

int linmdp_selftest(linmdp_learner *learner, linmdp_report *report)
{
    const linmdp_report nothing = {0, 0, 0, 0, 0, 0, 0, 0.0};
    unsigned h = 0;
    *report = nothing;
    report->refused += linmdp_init(learner, 0) != LINMDP_OK;
    bad_calls(learner, report);
    report->refused += linmdp_init(learner, linmdp_recorded_seed) != LINMDP_OK;
    for (unsigned long i = 0; i < linmdp_recorded_steps; i++, h++) {
        const linmdp_recorded *record = &linmdp_recorded_step[i];
        if (record->first) {
            h = 0;
            report->refused += i > 0 && linmdp_end_episode(learner) != LINMDP_OK;
            report->refused += linmdp_begin_episode(learner) != LINMDP_OK;
        }
        compare(learner, h, record, report);
        report->refused += linmdp_observe(learner, h, linmdp_recall(&record->state), record->action, record->reward,
                                          linmdp_recall(&record->next), record->terminated) != LINMDP_OK;
        report->steps++;
    }
#ifndef LINMDP_ALONE
    for (unsigned long i = 0; i < linmdp_decided_steps; i++) {
        const linmdp_decision *decided = &linmdp_decided_step[i];
        report->policy_mistakes += linmdp_policy(decided->h, linmdp_recall(&decided->state)) != decided->action;
        report->policy_steps++;
    }
#endif
    const double most = LINMDP_FAR * (double)report->steps;
    return (double)report->other_actions > most || (double)report->far > most || report->refused > 0 ||
           report->policy_mistakes > 0;
}
