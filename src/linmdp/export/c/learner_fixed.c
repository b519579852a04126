/* linmdp_learner.c: LSVI-UCB-Fixed (Algorithm 2 of the paper): phases of LINMDP_PHASE episodes.
 *
 * In every episode of a phase but the last all steps are planned again, with all samples of the phase. The last episode
 * only deletes them, stores nothing, and acts as the one before.
 */
#include <stddef.h>

#include "linmdp_common.h"
#include "linmdp_draws.h"

#if LINMDP_COUNTS
/* z = N V_{h+1} */
static int target(const linmdp_learner *m, unsigned h, linmdp_wide z[LINMDP_D])
{
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    for (unsigned s = 0; s < LINMDP_S; s++) {
        const linmdp_wide *column = m->past[h].N[s];
        size_t i = 0;
        while (i < LINMDP_D && !(column[i] < 0) && !(column[i] > 0))
            i++;
        if (i == LINMDP_D)
            continue; /* no sample ended here */
        linmdp_look(s, &seen);
        if (linmdp_optimistic(m->step[h + 1].q.w, m->factor, h + 1, &seen, q) != 0)
            return LINMDP_NOT_A_NUMBER;
        const linmdp_wide V = linmdp_largest(q);
        for (i = 0; i < LINMDP_D; i++)
            z[i] += V * column[i];
        LINMDP_COUNT_WIDE(LINMDP_D);
    }
    return LINMDP_OK;
}

static void store(linmdp_past *past, linmdp_state state, int action, const linmdp_real phi[LINMDP_D],
                  linmdp_state next_state, int terminated)
{
    (void)state;
    (void)action;
    if (!terminated) /* the value after the end is 0 */
        linmdp_add_scaled(past->N[next_state], 1, phi);
}

static void forget(linmdp_past *past)
{
    for (size_t s = 0; s < LINMDP_S; s++)
        for (size_t i = 0; i < LINMDP_D; i++)
            past->N[s][i] = 0;
}
#else
/* z = sum phi(s, a) V_{h+1}(s') over the samples */
static int target(const linmdp_learner *m, unsigned h, linmdp_wide z[LINMDP_D])
{
    const linmdp_past *past = &m->past[h];
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    linmdp_real phi[LINMDP_D];
    for (size_t i = 0; i < past->count; i++) {
        const linmdp_sample *sample = &past->sample[i];
        if (!sample->alive)
            continue;
        linmdp_look(linmdp_recall(&sample->next), &seen);
        if (linmdp_optimistic(m->step[h + 1].q.w, m->factor, h + 1, &seen, q) != 0)
            return LINMDP_NOT_A_NUMBER;
        linmdp_look(linmdp_recall(&sample->state), &seen);
        linmdp_phi(&seen, sample->action, phi);
        linmdp_add_scaled(z, linmdp_largest(q), phi);
    }
    return LINMDP_OK;
}

static void store(linmdp_past *past, linmdp_state state, int action, const linmdp_real phi[LINMDP_D],
                  linmdp_state next_state, int terminated)
{
    linmdp_sample *sample = &past->sample[past->count++];
    (void)phi;
    sample->state = linmdp_keep(state);
    sample->next = linmdp_keep(next_state);
    sample->action = (linmdp_index_a)action;
    sample->alive = !terminated;
}

static void forget(linmdp_past *past) { past->count = 0; }
#endif

/* Lines 17 to 19: delete the samples. w and its factor stay, and act until the next planning. */
static void reset(linmdp_learner *m)
{
    for (unsigned h = 0; h < LINMDP_H; h++)
        linmdp_clear_sums(&m->step[h]);
    for (unsigned h = 0; h + 1 < LINMDP_H; h++)
        forget(&m->past[h]);
}

/* Lines 7 to 15, backwards over the steps. */
static int plan(linmdp_learner *m)
{
    linmdp_wide z[LINMDP_D];
    for (unsigned h = LINMDP_H; h-- > 0;) {
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] = 0;
        if (h + 1 < LINMDP_H && target(m, h, z) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        if (linmdp_regress(&m->step[h], z, m->factor) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
    }
    return LINMDP_OK;
}

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    reset(m);
    for (unsigned h = 0; h < LINMDP_H; h++)
        linmdp_clear_weights(&m->step[h].q);
    m->seed = seed;
    m->draws = m->tie_key = m->phase = 0;
    m->next = LINMDP_H;
    m->learning = 0;
    return LINMDP_OK;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    if (m == NULL)
        return LINMDP_NULL;
    m->tie_key = linmdp_draw(m->seed, m->draws++);
    m->next = LINMDP_H;
    m->phase++;
    m->learning = m->phase < LINMDP_PHASE;
    if (!m->learning) {
        reset(m);
        m->phase = 0;
    } else if (plan(m) != LINMDP_OK) {
        return LINMDP_NOT_A_NUMBER;
    }
    m->next = 0;
    return LINMDP_OK;
}

int linmdp_observe(linmdp_learner *m, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated)
{
    linmdp_seen seen;
    linmdp_real phi[LINMDP_D];
    const int status = linmdp_check(m, h, state, action, reward, next_state);
    if (status != LINMDP_OK)
        return status;
    if (m->learning) {
        linmdp_look(state, &seen);
        linmdp_phi(&seen, (unsigned)action, phi);
        linmdp_add_sample(&m->step[h], phi, reward);
        if (h + 1 < LINMDP_H)
            store(&m->past[h], state, action, phi, next_state, terminated);
    }
    m->next = (uint16_t)(h + 1);
    return LINMDP_OK;
}
